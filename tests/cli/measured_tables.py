"""A machine with a card, and tables that a calibration of it could have made."""

import msgspec

from fuel_gpu.calibration.curves import line_curve
from fuel_gpu.calibration.staleness import describe_machine
from fuel_gpu.calibration.table import FORMAT_VERSION, Machine, Point, Rate, Table, Transfer
from fuel_gpu.probes.report import DeviceInfo, ProbeReport

CPU = DeviceInfo(id="cpu:0", backend="cpu", name="a processor", memory_bytes=2**34)
CARD = DeviceInfo(id="cuda:0", backend="cuda", name="a card", memory_bytes=2**33)
REPORT = ProbeReport(devices=(CPU, CARD))


def measured(*notes: str) -> Table:
    points = (
        Point(bytes=4096, ns=8_000),
        Point(bytes=65536, ns=32_768, flags=("drift",)),
        Point(bytes=2**20, ns=2**17),
        Point(bytes=2**28, ns=2**24),
    )
    return Table(
        version=FORMAT_VERSION,
        machine=describe_machine(REPORT),
        created="2025-01-01T00:00:00+00:00",
        devices=REPORT.devices,
        transfers=(
            Transfer(
                src="cpu:0",
                dst="cuda:0",
                points=points,
                curve=line_curve(8_000, 16.0),
                provenance="measured",
            ),
        ),
        rates=(
            Rate(
                device="cuda:0",
                dtype="float32",
                flops_per_ns=1234.0,
                bytes_per_ns=None,
                launch_ns=5_500,
                provenance="measured",
                flops_kernel="cuBLAS, n 4096",
            ),
        ),
        notes=notes,
    )


def slower() -> Table:
    (rate,) = measured().rates
    rates = (msgspec.structs.replace(rate, flops_per_ns=1.0),)
    return msgspec.structs.replace(measured(), rates=rates)


def of_another_machine() -> Table:
    there = Machine(fingerprint="another", cpu="P, 1 GiB")
    return msgspec.structs.replace(measured(), machine=there)
