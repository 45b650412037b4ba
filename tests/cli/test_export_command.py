"""``fuel-gpu export``: every format, to standard output, a file or a folder; what is refused."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from fuel_gpu.cli.main import run

TABLES = Path(__file__).parents[2] / "examples" / "tables"
DESKTOP, SERVER = TABLES / "desktop.json", TABLES / "server.json"


def export(*arguments: str, table: Path = DESKTOP) -> int:
    return run(["export", "--table", str(table), *arguments])


def test_json_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert export() == 0
    assert json.loads(capsys.readouterr().out) == json.loads(DESKTOP.read_text())


def test_csv_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "desktop.csv"
    assert export("--format", "csv", "--out", str(out)) == 0
    assert capsys.readouterr().out == ""
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    launch = next(r for r in rows if r["kind"] == "launch" and r["src"] == "cuda:0")
    assert (launch["value"], launch["unit"], launch["provenance"]) == ("5000", "ns", "datasheet")


def test_a_matrix_at_a_size(capsys: pytest.CaptureFixture[str]) -> None:
    """1 MiB takes 10,000 ns and 2**20 bytes at 15.75 a nanosecond: 76,576 ns."""
    assert export("--format", "csv", "--layout", "matrix", "--size", "1MiB") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert (rows[0]["bytes"], rows[0]["cuda:0"]) == ("1048576", "13.6933")


def test_markdown_names_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert export("--format", "markdown") == 0
    assert capsys.readouterr().out.startswith("# AMD Ryzen 9 7950X")


def test_fuel_bandwidth_says_on_standard_error_what_it_leaves_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert export("--format", "fuel-bandwidth", table=SERVER) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["measurement_bytes"] == 16 * 2**20
    assert "note: cuda:1 is left out: cuda:0 stands for the backend cuda\n" in shown.err
    assert "note: cpu:0 to cuda:0, 16 MiB: datasheet\n" in shown.err


def test_starpu_writes_two_files_into_a_folder_that_it_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STARPU_HOSTNAME", "elsewhere")
    folder = tmp_path / "bus"
    for _ in range(2):  # into one that is there, too
        assert export("--format", "starpu", "--out", str(folder)) == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "elsewhere.bandwidth",
        "elsewhere.latency",
    ]
    assert f"written: {folder / 'elsewhere.latency'}" in capsys.readouterr().err


def test_starpu_takes_the_hosts_name_without_its_domain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STARPU_HOSTNAME", raising=False)
    monkeypatch.setattr("socket.gethostname", lambda: "node7.cluster.example")
    assert export("--format", "starpu", "--out", str(tmp_path)) == 0
    assert (tmp_path / "node7.bandwidth").is_file()


def test_a_plot_goes_to_a_file(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "curves.png"
    assert export("--format", "png", "--out", str(out)) == 0
    assert out.read_bytes()[:4] == b"\x89PNG"


def test_a_plot_goes_through_a_pipe(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    pytest.importorskip("matplotlib")
    assert export("--format", "svg") == 0
    assert b"<svg" in capfdbinary.readouterr().out


def test_a_png_is_not_poured_onto_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert export("--format", "png") == 2
    assert "png is no text for a terminal: name a file with --out" in capsys.readouterr().err


def test_without_matplotlib_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert export("--format", "svg") == 1
    assert "pip install 'fuel-gpu[plot]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "xml"], "'xml' is no export format; there are json, csv, markdown"),
        (["--format", "csv", "--layout", "wide"], "'wide' is no layout; there are matrix, long"),
        (["--format", "png", "--layout", "long"], "png has one layout only"),
        (["--format", "csv", "--size", "1MiB"], "a size chooses the bandwidths of a matrix"),
        (["--format", "fuel-bandwidth", "--size", "big"], "'big' is not a size"),
        (["--format", "starpu"], "starpu is two files: name a folder for them with --out"),
    ],
)
def test_wrong_usage_is_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(*arguments) == 2
    shown = capsys.readouterr()
    assert (shown.out, message in shown.err) == ("", True)
    assert shown.err.count("\n") == 1


def test_a_missing_table_is_status_1_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "--table", "/nowhere/t.json"]) == 1
    assert "/nowhere/t.json: there is no such table" in capsys.readouterr().err


@pytest.mark.parametrize("format", ["csv", "starpu"])
def test_a_place_that_cannot_be_written_is_named(
    format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "no folder" / "t"
    assert export("--format", format, "--out", str(out)) == 1
    assert f"fuel-gpu: {out}: cannot be" in capsys.readouterr().err


def test_a_folder_where_a_file_is_wanted_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export("--format", "csv", "--out", str(tmp_path)) == 1
    assert f"fuel-gpu: {tmp_path}: cannot be written: Is a directory" in capsys.readouterr().err


def test_a_file_where_a_folder_is_wanted_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "file"
    out.write_text("mine")
    assert export("--format", "starpu", "--out", str(out)) == 1
    assert f"{out}: cannot be a folder to write into" in capsys.readouterr().err
    assert out.read_text() == "mine"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert export("--format", "csv", "--out", "/dev/full") == 1
    assert "/dev/full: cannot be written: No space left on device" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_standard_output_is_one_line() -> None:
    command = [sys.executable, "-m", "fuel_gpu.cli.main", "export", "--table", str(DESKTOP)]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (
        1,
        "fuel-gpu: standard output: cannot be written: No space left on device\n",
    )


def test_a_reader_that_goes_away_is_no_message() -> None:
    command = [sys.executable, "-m", "fuel_gpu.cli.main", "export", "--table", str(SERVER)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    assert child.stderr.read() == ""
    child.stderr.close()
    assert child.wait(timeout=60) == 1


def test_the_table_that_is_read_is_never_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.json"
    table.write_bytes(DESKTOP.read_bytes())
    assert export("--format", "csv", "--out", str(table), table=table) == 2
    assert "is a file that is read: name another" in capsys.readouterr().err
    assert table.read_bytes() == DESKTOP.read_bytes()
