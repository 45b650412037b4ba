"""Exports to JSON, CSV and Markdown: every figure once, with unit, interval and provenance."""

import csv
import io
import json

import msgspec
import pytest
from export_tables import MACHINE, MIB

from fuel_gpu.calibration.export import export_table
from fuel_gpu.calibration.table import Table
from fuel_gpu.calibration.table_text import decode_table
from fuel_gpu.errors import UsageError


def text(
    format: str,
    layout: str | None = None,
    *,
    table: Table = MACHINE,
    size_bytes: int | None = None,
) -> str:
    exported = export_table(table, format, layout=layout, size_bytes=size_bytes)
    (content,) = exported.files.values()
    return content.decode()


def rows(layout: str | None = None, size_bytes: int | None = None) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text("csv", layout, size_bytes=size_bytes))))


def test_json_is_the_table_itself() -> None:
    assert decode_table(text("json").encode()) == MACHINE


def test_csv_has_one_figure_a_row() -> None:
    found = rows()
    assert [
        (r["kind"], r["src"], r["dst"], r["memory"], r["bytes"], r["value"]) for r in found
    ] == [
        ("copy", "cpu:0", "cuda:0", "pageable", "4096", "11000"),
        ("copy", "cpu:0", "cuda:0", "pageable", "1048576", "131072"),
        ("copy", "cpu:0", "cuda:0", "pageable", "33554432", "4194304"),
        ("copy", "cuda:0", "cpu:0", "pageable", "4096", "9000"),
        ("copy", "cuda:0", "cpu:0", "pageable", "1048576", "262144"),
        ("copy", "cuda:0", "cpu:0", "pageable", "33554432", "8388608"),
        ("copy", "cpu:0", "cuda:0", "pinned", "4096", "9000"),
        ("copy", "cpu:0", "cuda:0", "pinned", "33554432", "2097152"),
        ("latency", "cpu:0", "opencl:0", "pageable", "", "1000"),
        ("bandwidth", "cpu:0", "opencl:0", "pageable", "", "16.0"),
        ("compute", "cuda:0", "", "", "", "1234.5"),
        ("launch", "cuda:0", "", "", "", "5000"),
    ]
    assert rows("long") == found


def test_a_figure_has_interval_runs_provenance_and_flags() -> None:
    found = rows()
    copy, line, compute, launch = found[0], found[8], found[10], found[11]
    assert (copy["unit"], copy["low"], copy["high"], copy["samples"]) == (
        *("ns", "10990", "11010", "3"),
    )
    assert (copy["provenance"], copy["measured"]) == ("measured", "2025-01-01T00:00:00+00:00")
    assert (line["low"], line["high"], line["samples"]) == ("", "", "0")
    assert (line["provenance"], line["measured"]) == ("datasheet", "")
    assert (compute["unit"], compute["low"], compute["high"]) == ("FLOP/ns", "1200.0", "1300.0")
    assert (compute["dtype"], compute["kernel"]) == ("float16", "tensor cores, n 4096")
    assert (compute["flags"], launch["flags"]) == ("bimodal", "drift")


def test_the_matrix_as_csv_is_one_table() -> None:
    found = rows("matrix")
    assert list(found[0]) == ["memory", "quantity", "bytes", "from", "cpu:0", "cuda:0", "opencl:0"]
    kinds = ["bandwidth_bytes_per_ns", "bandwidth_provenance", "latency_ns", "latency_provenance"]
    assert [(r["memory"], r["quantity"]) for r in found] == [
        (memory, kind) for memory in ("pageable", "pinned") for kind in kinds for _ in range(3)
    ]
    assert list(found[0].values()) == (
        ["pageable", "bandwidth_bytes_per_ns", "33554432", "cpu:0", "", "8.0", "15.9924"]
    )
    assert list(found[3].values())[3:] == ["cpu:0", "", "measured", "datasheet"]
    assert list(found[7].values())[2:] == ["4096", "cuda:0", "9000", "", "10256"]
    assert list(found[10].values())[3:] == ["cuda:0", "measured", "", "datasheet, through cpu:0"]


def test_the_matrix_of_another_size() -> None:
    found = rows("matrix", size_bytes=MIB)
    assert (found[0]["bytes"], found[0]["cuda:0"], found[1]["cpu:0"]) == ("1048576", "8.0", "4.0")
    assert found[6]["bytes"] == "4096"


def test_the_matrix_as_json_has_null_where_nothing_is_known() -> None:
    document = json.loads(text("json", "matrix"))
    assert document["machine"]["cpu"] == "a processor, 16 GiB"
    pageable = document["matrices"][0]
    assert pageable["devices"] == ["cpu:0", "cuda:0", "opencl:0"]
    assert pageable["bandwidth_bytes_per_ns"] == [
        [None, 8.0, 15.9924],
        [4.0, None, 3.19969],  # 2**25 bytes in 2**23 + 1,000 + 2**21 ns
        [None, None, None],
    ]
    assert pageable["bandwidth_provenance"][1] == ["measured", None, "datasheet, through cpu:0"]
    assert pageable["latency_ns"] == [[None, 11_000, 1_256], [9_000, None, 10_256], [None] * 3]


def test_long_json_has_an_object_a_figure() -> None:
    document = json.loads(text("json", "long"))
    assert len(document["figures"]) == 12
    first, line = document["figures"][0], document["figures"][8]
    assert (first["bytes"], first["value"], first["low"], first["high"]) == (
        *(4096, 11_000, 10_990, 11_010),
    )
    assert (line["kind"], line["bytes"], line["low"]) == ("latency", None, None)


def test_markdown_has_matrices_and_long_tables() -> None:
    found = text("markdown").splitlines()
    for line in (
        "# a processor, 16 GiB",
        "- cuda:0: something",
        "| cpu:0 | a \\| processor | 12 GiB |  |",
        "## Bandwidth, pageable host memory: GB/s, copies of 32 MiB",
        "| cpu:0 |  | 8 | 16 (datasheet) |",
        "| cuda:0 | 4 |  | 3.2 (datasheet, through cpu:0) |",
        "## Latency, pageable host memory: microseconds, copies of 4 KiB",
        "| cpu:0 |  | 11 | 1.26 (datasheet) |",
        "## Bandwidth, pinned host memory: GB/s, copies of 32 MiB",
        "| cpu:0 | cuda:0 | pageable | 4 KiB | 11,000 ns | 10,990 .. 11,010 | 3 | 0.372 | measured "
        "|  |",
        "| cpu:0 | opencl:0 | pageable | bandwidth | 16 byte/ns |  |  |  | datasheet |  |",
        "| cuda:0 | float16 | compute | 1,234 FLOP/ns | 1,200 .. 1,300 | 3 | tensor cores, n 4096 "
        "| measured | bimodal |",
    ):
        assert line in found


def test_markdown_of_one_layout_is_that_part_of_it() -> None:
    whole, matrix, long = (text("markdown", layout) for layout in (None, "matrix", "long"))
    assert "## Rates" not in matrix
    assert "## Bandwidth" not in long
    assert set(matrix.splitlines()) | set(long.splitlines()) == set(whole.splitlines())


def test_a_name_stays_in_its_cell_whatever_a_driver_put_into_it() -> None:
    names = [msgspec.structs.replace(d, name="two\nlines | here") for d in MACHINE.devices]
    table = msgspec.structs.replace(MACHINE, devices=tuple(names))
    assert (
        "| cpu:0 | two lines \\| here | 12 GiB |  |" in text("markdown", table=table).splitlines()
    )


@pytest.mark.parametrize(
    ("format", "layout", "size_bytes", "message"),
    [
        ("xml", None, None, "'xml' is no export format; there are json, csv, markdown, fuel-ban"),
        ("csv", "wide", None, "'wide' is no layout; there are matrix, long"),
        ("svg", "long", None, "svg has one layout only: leave out the layout 'long'"),
        ("starpu", "matrix", None, "starpu has one layout only"),
        ("csv", "long", 4096, "a size chooses the bandwidths of a matrix"),
        ("json", None, 4096, "a size chooses the bandwidths of a matrix"),
    ],
)
def test_what_does_not_go_together_is_refused(
    format: str, layout: str | None, size_bytes: int | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        export_table(MACHINE, format, layout=layout, size_bytes=size_bytes)
