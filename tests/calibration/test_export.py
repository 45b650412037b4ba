"""Exports: every figure once, with its unit, interval and provenance."""

import csv
import io

import msgspec
import pytest

from fuel_gpu.calibration.curves import line_curve
from fuel_gpu.calibration.export import export_table
from fuel_gpu.calibration.table import FORMAT_VERSION, Machine, Point, Rate, Table, Transfer
from fuel_gpu.calibration.table_file import decode_table
from fuel_gpu.errors import UsageError
from fuel_gpu.probes.report import DeviceInfo

TABLE = Table(
    version=FORMAT_VERSION,
    machine=Machine(fingerprint="abc", cpu="a processor"),
    created="2025-01-01T00:00:00+00:00",
    devices=(
        DeviceInfo(id="cpu:0", backend="cpu", name="a | processor", memory_bytes=2**34),
        DeviceInfo(id="cuda:0", backend="cuda", name="a card", memory_bytes=3 * 2**32, driver="d"),
    ),
    transfers=(
        Transfer(
            src="cpu:0",
            dst="cuda:0",
            points=(
                Point(
                    bytes=4096,
                    ns=10_000,
                    samples=(9_000, 10_000, 12_000),
                    interval=(9_000, 12_000),
                    flags=("drift", "unsettled"),
                ),
                Point(bytes=2**28, ns=2**25),
            ),
            curve=line_curve(9_000, 8.0),
            provenance="measured",
        ),
    ),
    rates=(
        Rate(
            device="cuda:0",
            dtype="float16",
            flops_per_ns=1234.5,
            bytes_per_ns=None,
            launch_ns=5_000,
            provenance="datasheet",
            flags=("flops: bimodal", "launch: drift"),
        ),
    ),
    notes=("cuda:0: something",),
)


def test_json_is_the_table_itself() -> None:
    assert decode_table(export_table(TABLE, "json").encode()) == TABLE


def test_csv_has_one_figure_a_row() -> None:
    rows = list(csv.DictReader(io.StringIO(export_table(TABLE, "csv"))))
    assert [(r["kind"], r["src"], r["dst"], r["bytes"], r["value"], r["unit"]) for r in rows] == [
        ("copy", "cpu:0", "cuda:0", "4096", "10000", "ns"),
        ("copy", "cpu:0", "cuda:0", "268435456", "33554432", "ns"),
        ("compute", "cuda:0", "", "", "1234.5", "FLOP/ns"),
        ("launch", "cuda:0", "", "", "5000", "ns"),
    ]
    assert (rows[0]["low"], rows[0]["high"], rows[0]["samples"]) == ("9000", "12000", "3")
    assert rows[0]["flags"] == "drift unsettled"
    assert (rows[1]["low"], rows[1]["samples"]) == ("", "0")
    assert (rows[2]["dtype"], rows[2]["provenance"], rows[2]["flags"]) == (
        *("float16", "datasheet", "bimodal"),
    )
    assert rows[3]["flags"] == "drift"


def test_markdown_has_matrices_and_long_tables() -> None:
    text = export_table(TABLE, "markdown")
    for line in (
        "- cuda:0: something",
        "| cpu:0 | a / processor | 16 GiB |  |",
        "| cuda:0 | a card | 12 GiB | d |",
        "| cpu:0 |  | 8 (256 MiB, measured) |",  # 2**28 bytes in 2**25 ns
        "| cpu:0 |  | 10 us (4 KiB, measured) |",
        "| cpu:0 | cuda:0 | pageable | 4 KiB | 10000 | 9000 .. 12000 | 0.41 | measured "
        "| drift unsettled |",
        "| cuda:0 | float16 | compute | 1234 | FLOP/ns |  | datasheet | bimodal |",
    ):
        assert line in text.splitlines()


def test_each_kind_of_host_memory_has_its_own_matrix() -> None:
    pinned = msgspec.structs.replace(TABLE.transfers[0], memory="pinned")
    both = msgspec.structs.replace(TABLE, transfers=(*TABLE.transfers, pinned))
    text = export_table(both, "markdown")
    assert "## Copies, pageable memory: GB/s at the largest size" in text
    assert "## Copies, pinned memory: GB/s at the largest size" in text


def test_an_unknown_format_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="'xml' is no export format; there are json, csv, markd"):
        export_table(TABLE, "xml")
