"""A small table for the tests of its file and text."""

from fuel_gpu.calibration.curves import line_curve
from fuel_gpu.calibration.table import (
    FORMAT_VERSION,
    Conditions,
    Duplex,
    Machine,
    Point,
    Rate,
    Table,
    Transfer,
)
from fuel_gpu.probes.report import DeviceInfo

TABLE = Table(
    version=FORMAT_VERSION,
    machine=Machine(fingerprint="abc", cpu="a processor"),
    created="2025-01-01T00:00:00+00:00",
    devices=(
        DeviceInfo(id="cpu:0", backend="cpu", name="a processor", memory_bytes=2**34),
        DeviceInfo(id="cuda:0", backend="cuda", name="a card", memory_bytes=2**33),
    ),
    transfers=(
        Transfer(
            src="cpu:0",
            dst="cuda:0",
            points=(
                Point(bytes=4096, ns=10_000, samples=(9_000, 10_000), interval=(9_000, 11_000)),
                Point(bytes=8192, ns=10_500),
            ),
            curve=line_curve(9_000, 8.0),
            provenance="measured",
        ),
    ),
    rates=(
        Rate(
            device="cuda:0",
            dtype="float32",
            flops_per_ns=1e4,
            bytes_per_ns=500.0,
            launch_ns=5_000,
            provenance="measured",
            flops_conditions=Conditions(sm_clock_mhz=(1095, 1410), throttled=("board limit",)),
        ),
    ),
    duplex=(
        Duplex(
            ends=("cpu:0", "cuda:0"),
            memory="pinned",
            bytes=2**26,
            bytes_per_ns=40.0,
            provenance="measured",
            samples=(39.0, 40.0, 41.0),
            copy_engines=2,
            conditions=Conditions(link_generation=4, link_width=16),
        ),
    ),
)
