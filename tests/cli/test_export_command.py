"""``fuel-gpu export``: to standard output or a file, from any table."""

import csv
import io
import json
from pathlib import Path

import pytest

from fuel_gpu.cli.main import run

DESKTOP = Path(__file__).parents[2] / "examples" / "tables" / "desktop.json"


def test_json_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "--table", str(DESKTOP)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(DESKTOP.read_text())


def test_csv_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "desktop.csv"
    assert run(["export", "--format", "csv", "--out", str(out), "--table", str(DESKTOP)]) == 0
    assert capsys.readouterr().out == ""
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    launch = next(r for r in rows if r["kind"] == "launch" and r["src"] == "cuda:0")
    assert (launch["value"], launch["unit"], launch["provenance"]) == ("5000", "ns", "datasheet")


def test_markdown_names_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "--format", "markdown", "--table", str(DESKTOP)]) == 0
    assert capsys.readouterr().out.startswith("# AMD Ryzen 9 7950X")


def test_an_unknown_format_is_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "--format", "xml", "--table", str(DESKTOP)]) == 2
    assert "'xml' is no export format; there are json, csv, markdown" in capsys.readouterr().err


def test_a_missing_table_is_status_1_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "--table", "/nowhere/t.json"]) == 1
    assert "/nowhere/t.json: there is no such table" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "no folder" / "t.csv"
    assert run(["export", "--format", "csv", "--out", str(out), "--table", str(DESKTOP)]) == 1
    assert str(out) in capsys.readouterr().err
