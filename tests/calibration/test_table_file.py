"""The table's file: written whole or not at all, held by one at a time, read if it is a file."""

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from a_table import TABLE
from filelock import FileLock

import fuel_gpu.calibration.table_file as table_file
from fuel_gpu.calibration.table_file import hold_table, load_table, save_table
from fuel_gpu.calibration.table_text import encode_table
from fuel_gpu.errors import TableError, UsageError


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "table.json"
    assert save_table(TABLE, path) == path
    assert load_table(path) == TABLE


def test_the_file_holds_what_other_programs_lean_on(tmp_path: Path) -> None:
    document = json.loads(save_table(TABLE, tmp_path / "t.json").read_bytes())
    assert document["version"] == 1
    assert document["devices"][1]["id"] == "cuda:0"
    first = document["transfers"][0]
    assert (first["src"], first["dst"]) == ("cpu:0", "cuda:0")
    assert first["points"][0].keys() >= {"bytes", "ns", "samples"}
    assert document["rates"][0].keys() >= {
        *("device", "dtype", "flops_per_ns", "bytes_per_ns", "launch_ns", "provenance"),
    }


def test_without_a_path_it_is_this_machines_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_file, "default_table_path", lambda: tmp_path / "own.json")
    with pytest.raises(TableError, match=r"own\.json: there is no such table; run `fuel-gpu cal"):
        load_table()
    assert save_table(TABLE) == tmp_path / "own.json"
    assert load_table() == TABLE


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"gone\.json: there is no such table"):
        load_table(tmp_path / "gone.json")


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="cannot be read: it is a folder"):
        load_table(tmp_path)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/null"])
def test_a_device_is_no_table(device: str) -> None:
    with pytest.raises(TableError, match=f"{device}: cannot be read: it is neither a file nor"):
        load_table(device)
    with pytest.raises(TableError, match=f"{device}: cannot be written: a table is not written"):
        save_table(TABLE, device)


def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    writer = threading.Thread(target=lambda: pipe.write_bytes(encode_table(TABLE)))
    writer.start()
    assert load_table(pipe) == TABLE
    writer.join()
    with pytest.raises(TableError, match="not written to a pipe or a device"):
        save_table(TABLE, pipe)


def test_a_file_too_large_for_a_table_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_file, "MAX_BYTES", 2**20)
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(2**40)  # of which the disk holds nothing
    with pytest.raises(TableError, match="larger than 1 MiB, which no table is"):
        load_table(large)


@pytest.mark.parametrize("path", ["", ".", Path()])
def test_an_empty_path_is_refused(path: str | Path) -> None:
    with pytest.raises(UsageError, match="the table's path is empty"):
        load_table(path)
    with pytest.raises(UsageError, match="the table's path is empty"):
        save_table(TABLE, path)


@pytest.mark.parametrize("path", [5, b"t.json", ["t.json"]])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(UsageError, match="is no path of a table's file"):
        load_table(path)


def test_a_table_that_could_not_be_read_back_leaves_the_file(tmp_path: Path) -> None:
    path = save_table(TABLE, tmp_path / "t.json")
    slow = msgspec.structs.replace(TABLE.rates[0], flops_per_ns=float("nan"))
    with pytest.raises(TableError, match=r"t\.json: not written: .*flops_per_ns"):
        save_table(msgspec.structs.replace(TABLE, rates=(slow,)), path)
    assert load_table(path) == TABLE
    with pytest.raises(UsageError, match="is no table"):
        save_table(None, tmp_path / "none.json")  # type: ignore[arg-type]  # what is tested
    assert [p.name for p in tmp_path.iterdir() if "none" in p.name] == []


def test_a_full_disk_loses_no_earlier_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_table(TABLE, tmp_path / "t.json")
    before = path.read_bytes()

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(TableError, match=r"left on device; free some space.*what was there is k"):
        save_table(TABLE, path)
    with pytest.raises(TableError, match="left on device") as raised:
        save_table(TABLE, tmp_path / "new.json")
    assert "kept" not in str(raised.value)  # for there was nothing
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".tmp"] == []


def test_a_table_that_is_being_written_is_waited_for_and_then_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_file, "_LOCK_WAIT_S", 0.05)
    path = tmp_path / "t.json"
    with (
        FileLock(tmp_path / ".t.json.lock"),
        pytest.raises(TableError, match="another process is measuring for it or writing"),
    ):
        save_table(TABLE, path)
    assert not path.exists()


def test_a_link_stays_a_link_and_permissions_stay(tmp_path: Path) -> None:
    target = tmp_path / "real.json"
    target.write_text("old")
    target.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(target)
    save_table(TABLE, link)
    assert link.is_symlink()
    assert load_table(target) == TABLE
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_readers_see_a_whole_table_at_any_moment(tmp_path: Path) -> None:
    path = save_table(TABLE, tmp_path / "t.json")
    done = threading.Event()

    def write() -> None:
        for _ in range(30):
            save_table(TABLE, path)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        assert load_table(path) == TABLE
    writer.join()


def test_nobody_else_writes_a_table_that_is_held(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    code = (
        "import sys; from fuel_gpu.calibration.table_file import *; "
        "hold_table(Path(sys.argv[1])).__enter__()"
    )
    command = [sys.executable, "-c", code, str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with hold_table(path) as save:
        save(TABLE)
        other = subprocess.run(command, env=environment, stderr=subprocess.PIPE, check=False)
        save(TABLE)
    assert b"another process is measuring for it" in other.stderr
    assert subprocess.run(command, env=environment, check=False).returncode == 0
    assert load_table(path) == TABLE


def test_a_target_that_cannot_be_written_is_told_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (loop := tmp_path / "loop").symlink_to(loop)
    folder = tmp_path / "folder"
    folder.mkdir()
    for path, cause in (
        (folder, "it is a folder; name a file in it"),
        (tmp_path / "file" / "t.json", f"{tmp_path / 'file'} is not a folder"),
        (tmp_path / "file" / "deeper" / "t.json", f"{tmp_path / 'file'} is not a folder"),
        (tmp_path / ("x" * 300), "File name too long"),
        (loop, "loop"),
    ):
        with pytest.raises(TableError, match=cause) as raised, hold_table(path):
            raise AssertionError("it is not to be held")
        assert "kept" not in str(raised.value)
        assert "space" not in str(raised.value)
    assert {p.name for p in tmp_path.rglob("*")} == {"file", "folder", "loop"}


def test_a_read_only_table_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_table(TABLE, tmp_path / "t.json")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everything
    with pytest.raises(TableError, match="it is read-only"):
        save_table(TABLE, path)
