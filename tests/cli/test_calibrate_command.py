"""``fuel-gpu calibrate``: what it prints, writes, refuses, and keeps when it is stopped."""

import errno
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from measured_tables import REPORT, measured, of_another_machine, slower

import fuel_gpu.calibration.calibrate as calibration
import fuel_gpu.calibration.table_file as table_file
import fuel_gpu.calibration.verify as verification
import fuel_gpu.probes.machine as machine
from fuel_gpu.calibration.progress import DeviceEnded, Interrupted
from fuel_gpu.calibration.table import Point, Table
from fuel_gpu.calibration.table_file import hold_table, load_table, save_table
from fuel_gpu.calibration.table_text import decode_table, encode_table
from fuel_gpu.calibration.verify import HeldOut, PathVerdict, Verification
from fuel_gpu.cli.main import run
from fuel_gpu.device import Device
from fuel_gpu.probes.report import ProbeReport


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Put a calibration that only notes how it was called in place of the real one."""
    noted: list[dict[str, Any]] = []

    def fake(report: ProbeReport, **options: Any) -> Table:
        noted.append({"report": report, **options})
        return measured()

    monkeypatch.setattr(machine, "probe", lambda *args, **options: REPORT)
    monkeypatch.setattr(calibration, "calibrate", fake)
    return noted


def test_the_table_is_written_and_summarised(
    calls: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.json"
    assert run(["calibrate", "--table", str(path)]) == 0
    assert load_table(path) == measured()
    shown = capsys.readouterr()
    line = next(text for text in shown.out.splitlines() if "pageable" in text).split()
    # from, to, memory, latency, then GB/s at 64 KiB (doubtful), at 1 MiB, at the largest size
    assert line[:9] == ["cpu:0", "cuda:0", "pageable", "8", "us", "2", "~", "8", "16"]
    line = next(text for text in shown.out.splitlines() if "float32" in text).split()
    assert line[:6] == ["cuda:0", "float32", "1234", "-", "5.50", "us"]
    assert "~ doubtful: the samples drift" in shown.out
    assert f"table written: {path}" in shown.err
    assert calls[0]["full"] is False
    assert calls[0]["devices"] is None
    assert calls[0]["earlier"] is None


@pytest.mark.parametrize(
    ("flags", "footnotes"),
    [((), 0), (("flops: drift",), 1), (("bytes: drift",), 0), (("launch: drift",), 0)],
    ids=["no flag", "shown", "of a figure that is not there", "not marked"],
)
def test_the_mark_of_doubt_is_explained_where_it_appears(
    calls: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    footnotes: int,
) -> None:
    (rate,) = measured().rates
    flagged = msgspec.structs.replace(rate, flags=flags)
    table = msgspec.structs.replace(measured(), transfers=(), rates=(flagged,))
    monkeypatch.setattr(calibration, "calibrate", lambda report, **options: table)
    assert run(["calibrate", "--table", str(tmp_path / "t.json")]) == 0
    shown = capsys.readouterr().out
    assert shown.count("~ doubtful: ") == footnotes
    assert shown.count("~") == 2 * footnotes


def test_incomplete_figures_are_marked(
    calls: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (rate,), (transfer,) = measured().rates, measured().transfers
    begun = msgspec.structs.replace(
        measured(),
        rates=(msgspec.structs.replace(rate, flags=("incomplete",)),),
        transfers=(msgspec.structs.replace(transfer, notes="incomplete: not measured to the end"),),
    )
    monkeypatch.setattr(calibration, "calibrate", lambda report, **options: begun)
    assert run(["calibrate", "--table", str(tmp_path / "t.json")]) == 0
    assert capsys.readouterr().out.count("measured, incomplete") == 2


def test_json_is_the_table_and_nothing_else(
    calls: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["calibrate", "--json", "--full", "--table", str(tmp_path / "t.json")]) == 0
    assert decode_table(capsys.readouterr().out.encode()) == measured()
    assert calls[0]["full"] is True


def test_an_earlier_table_is_handed_on(calls: list[dict[str, Any]], tmp_path: Path) -> None:
    path = save_table(slower(), tmp_path / "t.json")
    assert run(["calibrate", "--table", str(path)]) == 0
    assert calls[0]["earlier"] == slower()
    assert load_table(path) == measured()


@pytest.mark.parametrize(
    "unusable",
    [
        b'{"version": 1,',
        encode_table(measured()).replace(b'"version": 1,', b'"version": 99,'),
        encode_table(measured()).replace(b"5500", b"-5500"),
    ],
    ids=["truncated", "newer", "wrong"],
)
def test_an_unusable_earlier_table_is_kept_aside(
    calls: list[dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    unusable: bytes,
) -> None:
    path = tmp_path / "t.json"
    aside = [tmp_path / "t.json.unusable", tmp_path / "t.json.unusable-2"]
    for number, kept in enumerate(aside):
        path.write_bytes(unusable + b" " * number)
        assert run(["calibrate", "--table", str(path)]) == 0
        said = "the earlier table cannot be used and is replaced; it is kept as"
        assert f"{said} {kept}: {path}: " in capsys.readouterr().err
        assert load_table(path) == measured()
    assert [kept.read_bytes() for kept in aside] == [unusable, unusable + b" "]


@pytest.mark.parametrize("content", [b"\x08\x07\x12\x04onnx", b'{"total_ns": 5}', b"[]", b"notes"])
def test_what_never_was_a_table_is_left_as_it_is(
    calls: list[dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: bytes,
) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    assert run(["calibrate", "--table", str(path)]) == 1
    assert f"{path}: it is no calibration table; it is left as it is" in capsys.readouterr().err
    assert calls == []
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("model.onnx", content)]


def test_an_empty_file_is_no_earlier_table(calls: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.touch()
    assert run(["calibrate", "--table", str(path)]) == 0
    assert [p.name for p in tmp_path.glob("t.json*")] == ["t.json"]


def test_another_machines_table_is_left_as_it_is(
    calls: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save_table(of_another_machine(), tmp_path / "t.json")
    assert run(["calibrate", "--table", str(path)]) == 1
    assert "another machine's table: the table is of P, 1 GiB, this is" in capsys.readouterr().err
    assert calls == []
    assert load_table(path) == of_another_machine()


def test_in_its_own_place_another_machines_table_is_kept_aside(
    calls: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_table(of_another_machine(), tmp_path / "t.json")
    monkeypatch.setattr(table_file, "default_table_path", lambda: path)
    assert run(["calibrate"]) == 0
    assert load_table(path) == measured()
    assert load_table(tmp_path / "t.json.unusable") == of_another_machine()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("", "it is a folder"),
        ("file/t.json", "is not a folder"),
        ("/dev/full", "a table is not written to a pipe or a device"),
    ],
)
def test_a_target_that_cannot_be_written_is_told_before_measuring(
    calls: list[dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    target: str,
    message: str,
) -> None:
    (tmp_path / "file").touch()
    assert run(["calibrate", "--table", str(tmp_path / target)]) == 1
    assert message in capsys.readouterr().err
    assert calls == []
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_table_that_is_held_is_told_at_once(
    calls: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.json"
    with hold_table(path):
        assert run(["calibrate", "--table", str(path)]) == 1
    assert "another process is measuring for it" in capsys.readouterr().err
    assert calls == []


@pytest.mark.parametrize(
    ("options", "devices"),
    [
        (["--device", "cuda"], [Device("cuda", 0)]),
        (["--device", "cuda:0", "--device", "cpu:0"], [Device("cuda"), Device("cpu")]),
        (["--without-device", "cuda:0"], [Device("cpu")]),
    ],
)
def test_devices_are_chosen(
    calls: list[dict[str, Any]], tmp_path: Path, options: list[str], devices: list[Device]
) -> None:
    run(["calibrate", *options, "--table", str(tmp_path / "t.json")])
    assert calls[0]["devices"] == devices


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--device", "cuda:3"], "no device cuda:3 to measure; there are cpu:0, cuda:0"),
        (["--without-device", "opencl:0"], "no device opencl:0 to measure"),
        (["--device", "12"], "'12' is not a device"),
        (["--device", "cpu", "--without-device", "cpu"], "no device is left to measure"),
        (["--quick", "--full"], "--quick and --full exclude each other"),
        (["--table", ""], "--table is empty"),
        (["--verify", "--table", "."], "--table is empty, or the folder one is in"),
    ],
)
def test_wrong_usage_is_status_2(
    calls: list[dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    table = [] if "--table" in options else ["--table", str(tmp_path / "t.json")]
    assert run(["calibrate", *options, *table]) == 2
    assert message in capsys.readouterr().err
    assert calls == []


def test_checkpoints_are_saved_as_they_come(
    calls: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.json"

    def dies(report: ProbeReport, *, checkpoint: Callable[[Table], None], **options: Any) -> Table:
        checkpoint(measured("cuda:0: so far"))
        raise RuntimeError("the parent dies")

    monkeypatch.setattr(calibration, "calibrate", dies)
    assert run(["calibrate", "--table", str(path)]) == 1
    assert load_table(path).notes == ("cuda:0: so far",)


def test_an_interrupted_calibration_is_saved_and_is_status_1(
    calls: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "t.json"

    def interrupted(report: ProbeReport, *, progress: Callable[..., None], **options: Any) -> Table:
        progress(Interrupted("cuda:0"))
        return measured("cuda:0: interrupted by Ctrl-C; what was finished by then is kept")

    monkeypatch.setattr(calibration, "calibrate", interrupted)
    assert run(["calibrate", "--table", str(path)]) == 1
    shown = capsys.readouterr().err
    assert "interrupted while measuring cuda:0: what is finished is kept" in shown
    assert f"incomplete table written: {path}" in shown
    assert load_table(path).notes[0].startswith("cuda:0: interrupted")


def test_nothing_measured_is_an_error_that_leaves_the_earlier_table(
    calls: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = save_table(measured("cpu:0: of old"), tmp_path / "t.json")
    before = path.read_bytes()
    nothing_new = measured("cpu:0: of old", "cuda:0: its measuring process crashed")
    monkeypatch.setattr(calibration, "calibrate", lambda report, **options: nothing_new)
    assert run(["calibrate", "--table", str(path)]) == 1
    shown = capsys.readouterr().err
    assert f"nothing was measured: cuda:0: its measuring process crashed; {path} is as" in shown
    assert path.read_bytes() == before


@pytest.mark.parametrize(("options", "status"), [(["--device", "cpu:0"], 1), ([], 0)])
def test_a_named_device_of_which_nothing_was_measured_is_status_1(
    calls: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    status: int,
) -> None:
    def crashes(report: ProbeReport, *, progress: Callable[..., None], **_: Any) -> Table:
        progress(DeviceEnded("cpu:0", ("its measuring process crashed",), whole=False))
        return measured("cpu:0: its measuring process crashed")

    monkeypatch.setattr(calibration, "calibrate", crashes)
    path = tmp_path / "t.json"
    assert run(["calibrate", "--table", str(path), *options]) == status
    shown = capsys.readouterr().err
    assert "warning: cpu:0 was not measured to the end: its measuring process crashed" in shown
    assert ("nothing was measured of cpu:0" in shown) == (status == 1)
    assert load_table(path).rates == measured().rates


def test_a_full_disk_at_a_checkpoint_is_a_warning(
    calls: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sync = os.fsync

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def measure(report: ProbeReport, *, checkpoint: Callable[..., None], **_: Any) -> Table:
        monkeypatch.setattr(os, "fsync", full)
        checkpoint(measured())
        checkpoint(measured())
        monkeypatch.setattr(os, "fsync", sync)
        return measured()

    monkeypatch.setattr(calibration, "calibrate", measure)
    path = tmp_path / "t.json"
    assert run(["calibrate", "--table", str(path)]) == 0
    assert capsys.readouterr().err.count("warning: measuring goes on, but") == 1
    assert load_table(path) == measured()


def test_what_cannot_be_written_in_the_end_is_kept_elsewhere(
    calls: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    assert run(["calibrate", "--table", str(tmp_path / "t.json")]) == 1
    (kept,) = (tmp_path / "temporary").iterdir()
    assert load_table(kept) == measured()
    shown = capsys.readouterr().err
    assert "No space left on device; free some space, or name another file" in shown
    assert f"what was measured is kept as {kept}" in shown


def test_verify_prints_predicted_against_measured(
    calls: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = save_table(measured(), tmp_path / "t.json")
    point = Point(bytes=5792, ns=10_000, interval=(9_000, 11_000))
    held_out = HeldOut(
        src="cpu:0", dst="cuda:0", memory="pageable", predicted_ns=11_000, measured=point
    )
    verdict = PathVerdict("cpu:0", "cuda:0", "pageable", 1, 0.1, 0.1, 0.06, 0.25)
    found = Verification((held_out,), ("n",), (verdict,))
    asked: list[dict[str, Any]] = []

    def verify(table: Table, report: ProbeReport, **options: Any) -> Verification:
        asked.append(options)
        return found

    monkeypatch.setattr(verification, "verify", verify)
    assert run(["calibrate", "--verify", "--without-device", "cpu", "--table", str(path)]) == 0
    assert asked[0]["devices"] == [Device("cuda")]
    shown = capsys.readouterr().out
    assert "+10.0%" in shown
    assert "cpu:0 to cuda:0, pageable: median error 10.0%, worst 10.0% over 1 sizes" in shown
    assert "verdict: the table's copies hold" in shown
    assert "note: n" in shown
    assert calls == []
    found = replace(found, paths=(replace(verdict, worst_error=0.26),))
    assert run(["calibrate", "--verify", "--table", str(path)]) == 1
    shown = capsys.readouterr().out
    assert "verdict: the table's copies no longer hold: cpu:0 to cuda:0, pageable" in shown
    assert run(["calibrate", "--verify", "--json", "--table", str(path)]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["holds"], document["paths"][0]["worst_error"]) == (False, 0.26)
    assert document["held_out"][0]["error"] == pytest.approx(0.1)
    found = Verification((), ("n",))
    assert run(["calibrate", "--verify", "--table", str(path)]) == 1
    assert "verdict: nothing was verified" in capsys.readouterr().out
