"""The table's file: written whole or not at all, read with every value checked."""

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

import fuel_gpu.calibration.table_file as table_file
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
from fuel_gpu.calibration.table_file import decode_table, encode_table, load_table, save_table
from fuel_gpu.errors import TableError
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


def edited(*path: str | int, value: Any) -> bytes:
    """Give the table's text with one field changed by hand."""
    document = json.loads(encode_table(TABLE))
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(document).encode()


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
    with pytest.raises(TableError, match="cannot be read"):
        load_table(tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_file_is_told_from_a_wrong_field(tmp_path: Path, share: float) -> None:
    text = encode_table(TABLE)
    path = tmp_path / "cut.json"
    path.write_bytes(text[: int(share * len(text))])
    with pytest.raises(TableError, match=r"cut\.json: not a whole JSON document.*fuel-gpu calib"):
        load_table(path)


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b'{"version": 1, "machine": "\xff"}', b"[]"])
def test_other_files_are_no_tables(text: bytes) -> None:
    with pytest.raises(TableError, match="table: "):
        decode_table(text)


def test_another_format_is_refused_by_its_number() -> None:
    with pytest.raises(TableError, match="version is 2, this fuel-gpu reads 1"):
        decode_table(edited("version", value=2))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_named(number: float) -> None:
    with pytest.raises(TableError, match=r"not finite - at `\$\.rates\[0\]\.flops_per_ns`"):
        decode_table(edited("rates", 0, "flops_per_ns", value=number))


def test_a_number_too_large_for_any_float_is_named() -> None:
    text = encode_table(TABLE).replace(b"10000.0", b"1e999")
    with pytest.raises(TableError, match=r"out of range - at `\$\.rates\[0\]\.flops_per_ns`"):
        decode_table(text)


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (("rates", 0, "flops_per_ns"), -1.0, r"rates\[0\]\.flops_per_ns"),
        (("rates", 0, "bytes_per_ns"), 0, r"rates\[0\]\.bytes_per_ns"),
        (("rates", 0, "bytes_per_ns"), 1e300, r"rates\[0\]\.bytes_per_ns"),
        (("rates", 0, "flops_per_ns"), "fast", r"rates\[0\]\.flops_per_ns"),
        (("rates", 0, "launch_ns"), -5, r"rates\[0\]\.launch_ns"),
        (("rates", 0, "launch_ns"), 10**12, r"rates\[0\]\.launch_ns"),
        (("rates", 0, "device"), "cuda:9", r"rates\[0\]\.device"),
        (("rates", 0, "provenance"), "guessed", r"rates\[0\]\.provenance"),
        (("rates", 0, "colour"), "red", "colour"),
        (("transfers", 0, "dst"), "opencl:0", r"transfers\[0\]\.dst"),
        (("transfers", 0, "points", 1, "bytes"), 4096, r"transfers\[0\]\.points\[1\]\.bytes"),
        (("transfers", 0, "points", 0, "ns"), 0, r"transfers\[0\]\.points\[0\]\.ns"),
        (("transfers", 0, "points", 0, "bytes"), 2**64, r"points\[0\]\.bytes"),
        (("transfers", 0, "points", 0, "samples"), [-1], r"points\[0\]\.samples"),
        (("transfers", 0, "points", 0, "interval"), [9, 8], r"points\[0\]\.interval"),
        (("transfers", 0, "curve", "tail_bytes_per_ns"), 0.0, r"curve\.tail_bytes_per_ns"),
        (("transfers", 0, "curve", "knot_ns"), [], r"curve"),
        (("transfers", 0, "curve", "knot_bytes"), [5, 5], r"curve"),
        (("devices", 0, "id"), "CPU zero", r"devices\[0\]\.id"),
        (("devices", 0, "id"), "cpu", r"devices\[0\]\.id"),
        (("devices", 0, "backend"), "cuda", r"devices\[0\]\.backend"),
        (("rates", 0, "flops_interval"), [-1.0, 2.0], r"rates\[0\]\.flops_interval"),
        (("rates", 0, "bytes_samples"), [1.0, -2.0], r"rates\[0\]\.bytes_samples"),
        (("duplex", 0, "ends", 1), "cuda:9", r"duplex\[0\]\.ends\[1\]"),
        (("duplex", 0, "bytes"), 0, r"duplex\[0\]\.bytes"),
        (("duplex", 0, "bytes_per_ns"), 0.0, r"duplex\[0\]\.bytes_per_ns"),
        (("duplex", 0, "interval"), [2.0, 1.0], r"duplex\[0\]\.interval"),
        (("duplex", 0, "samples"), [-1.0], r"duplex\[0\]\.samples"),
        (("duplex", 0, "conditions", "sm_clock_mhz"), [1], r"conditions\.sm_clock_mhz"),
        (("devices", 0, "memory_bytes"), -1, r"devices\[0\]\.memory_bytes"),
    ],
)
def test_an_impossible_value_names_its_field_and_what_to_do(
    path: tuple[str | int, ...], value: object, where: str
) -> None:
    with pytest.raises(TableError, match=rf"mine\.json: .*{where}.*mend that field, or run"):
        decode_table(edited(*path, value=value), name="mine.json")


def test_falling_knots_are_refused() -> None:
    curve = {"knot_bytes": [0, 9], "knot_ns": [5, 4], "tail_bytes_per_ns": 1.0}
    with pytest.raises(TableError, match=r"must not fall.*curve\.knot_ns\[1\]"):
        decode_table(edited("transfers", 0, "curve", value=curve))


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("devices", "id cpu:0"),
        ("transfers", r"pair cpu:0 -> cuda:0 \(pageable\)"),
        ("rates", "device, dtype cuda:0 float32"),
        ("duplex", r"pair cpu:0 and cuda:0 \(pinned\)"),
    ],
)
def test_what_occurs_twice_is_refused(name: str, what: str) -> None:
    document = json.loads(encode_table(TABLE))
    twice = [document[name][0], *document[name]]
    with pytest.raises(TableError, match=rf"{what} occurs twice - at `\$\.{name}\[1\]`"):
        decode_table(edited(name, value=twice))


def test_a_missing_field_is_named() -> None:
    document = json.loads(encode_table(TABLE))
    del document["machine"]
    with pytest.raises(TableError, match="machine"):
        decode_table(json.dumps(document).encode())


def test_a_full_disk_loses_no_earlier_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_table(TABLE, tmp_path / "t.json")
    before = path.read_bytes()

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(TableError, match=r"t\.json: cannot be written: No space left.*Free some"):
        save_table(TABLE, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".tmp"] == []


def test_a_table_that_is_being_written_is_waited_for_and_then_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_file, "_LOCK_TIMEOUT_S", 0.05)
    path = tmp_path / "t.json"
    with (
        FileLock(tmp_path / ".t.json.lock"),
        pytest.raises(TableError, match="another process holds its lock"),
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
