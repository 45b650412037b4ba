"""The summary of a table: what stands beside copies and rates, and under which conditions."""

import pytest

from fuel_gpu.calibration.table import (
    FORMAT_VERSION,
    Conditions,
    Duplex,
    Machine,
    NodeStream,
    Rate,
    Table,
)
from fuel_gpu.cli.calibration_view import print_summary

HOT = Conditions(
    link_generation=4,
    link_width=16,
    sm_clock_mhz=(1200, 1700),
    memory_clock_mhz=(900, 900),
    throttled=("thermal slowdown",),
)


def shown(capsys: pytest.CaptureFixture[str], **parts: object) -> str:
    rate = Rate(
        device="cuda:0",
        dtype="float32",
        flops_per_ns=1000.0,
        bytes_per_ns=None,
        launch_ns=5000,
        provenance="measured",
        **parts.pop("rate", {}),  # type: ignore[arg-type]
    )
    table = Table(
        version=FORMAT_VERSION,
        machine=Machine(fingerprint="abc"),
        created="",
        devices=(),
        transfers=(),
        rates=(rate,),
        **parts,  # type: ignore[arg-type]
    )
    print_summary(table)
    return " ".join(capsys.readouterr().out.split())


def test_copies_both_ways_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    duplex = Duplex(
        ends=("cpu:0", "cuda:0"),
        memory="pinned",
        bytes=2**28,
        bytes_per_ns=42.5,
        provenance="measured",
        flags=("unsettled",),
    )
    text = shown(capsys, duplex=(duplex,))
    assert "cpu:0 and cuda:0 copies both ways at once, pinned, 256 MiB each 42.5 ~ measured" in text
    assert "~ doubtful" in text


def test_each_memory_node_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    node = NodeStream(node=1, cpus="8-15", bytes_per_ns=16.0)
    text = shown(capsys, rate={"nodes": (node,)})
    assert "cuda:0 memory node 1, processors 8-15, float32 16 measured" in text
    assert "doubtful" not in text


def test_link_and_clocks_are_those_of_the_measurements(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        "cuda:0 while it was measured: PCIe 4 x16, clock 1200 to 1700 MHz, "
        "memory 900 MHz, held back by thermal slowdown"
    ) in shown(capsys, rate={"flops_conditions": HOT, "launch_conditions": Conditions()})


def test_counters_that_told_nothing_are_not_spoken_of(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, rate={"flops_conditions": Conditions()})
    assert "while it was measured" not in text
    assert "both ways" not in text
