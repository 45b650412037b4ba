"""The long form has a row for every figure that a table holds, those of few machines too."""

from fuel_gpu.calibration.export import export_table
from fuel_gpu.calibration.export_figures import figures
from fuel_gpu.calibration.table import (
    FORMAT_VERSION,
    Duplex,
    Machine,
    NodeStream,
    Rate,
    Table,
)

RATE = Rate(
    device="cpu:0",
    dtype="float32",
    flops_per_ns=None,
    bytes_per_ns=40.0,
    launch_ns=600,
    provenance="measured",
    nodes=(
        NodeStream(node=0, cpus="0-7", bytes_per_ns=22.0, samples=(21.0, 22.0, 23.0)),
        NodeStream(node=1, cpus="8-15", bytes_per_ns=18.0, interval=(17.0, 19.0)),
    ),
)
DUPLEX = Duplex(
    ends=("cpu:0", "cuda:0"),
    memory="pinned",
    bytes=2**25,
    bytes_per_ns=44.0,
    provenance="measured",
    samples=(43.0, 44.0, 45.0),
    interval=(43.0, 45.0),
    copy_engines=2,
)
TABLE = Table(
    version=FORMAT_VERSION,
    machine=Machine(fingerprint="two sockets"),
    created="2026-01-01T00:00:00+00:00",
    devices=(),
    transfers=(),
    rates=(RATE,),
    duplex=(DUPLEX,),
)


def test_copies_both_ways_at_once_are_a_figure_of_their_pair() -> None:
    both = next(f for f in figures(TABLE) if f.kind == "both ways")
    assert (both.src, both.dst, both.memory) == ("cpu:0", "cuda:0", "pinned")
    assert (both.value, both.unit, both.low, both.high) == (44.0, "byte/ns", 43.0, 45.0)
    assert both.samples == 3


def test_every_numa_node_has_its_streaming_rate() -> None:
    nodes = [f for f in figures(TABLE) if f.kind.startswith("memory of node")]
    assert [(f.kind, f.value, f.kernel) for f in nodes] == [
        ("memory of node 0", 22.0, "processors 0-7"),
        ("memory of node 1", 18.0, "processors 8-15"),
    ]


def test_every_text_format_shows_them() -> None:
    for name in ("csv", "markdown"):
        (text,) = export_table(TABLE, name, layout="long").files.values()
        assert b"both ways" in text
        assert b"memory of node 1" in text
