"""A measuring child may crash, hang, exit, print garbage, flood or fill memory: one note each."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import msgspec
import psutil
import pytest

import fuel_gpu.calibration.isolation as isolation
from fuel_gpu.calibration.isolation import measure_in_child
from fuel_gpu.calibration.records import Doing, Finished, Note, Record, Request
from fuel_gpu.probes.report import DeviceInfo

REQUEST = Request(
    device=DeviceInfo(id="cpu:0", backend="cpu", name="a processor", memory_bytes=2**34)
)
PREAMBLE = r"""
import os, signal, sys, time
def say(line): print(line, flush=True)
say('{"type":"doing","what":"copies, 4 KiB","spent":0.5}')
"""


def child(tmp_path: Path, script: str, *, limit_s: float = 60.0) -> list[Record]:
    path = tmp_path / "child.py"
    path.write_text(PREAMBLE + script)
    return list(measure_in_child(REQUEST, limit_s=limit_s, command=(str(path),)))


def past_the_limit_once_it_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the clock that limits a child jump far ahead after its first record, not before."""
    decode, told = msgspec.json.decode, threading.Event()

    def decode_and_tell(line: bytes, *, type: Any) -> Any:
        record = decode(line, type=type)
        told.set()
        return record

    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + (1e6 if told.is_set() else 0.0))
    monkeypatch.setattr(msgspec.json, "decode", decode_and_tell)
    monkeypatch.setattr("fuel_gpu.calibration.isolation.time", clock)


def last_note(records: list[Record]) -> str:
    assert records[0] == Doing(what="copies, 4 KiB", spent=0.5)
    assert isinstance(records[-1], Note)
    return records[-1].text


def test_finished_records_arrive_and_the_end_is_quiet(tmp_path: Path) -> None:
    assert child(tmp_path, """say('{"type":"finished"}')""") == [
        Doing(what="copies, 4 KiB", spent=0.5),
        Finished(),
    ]


def test_last_lines_that_are_read_late_are_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = isolation._read

    def read_late(stream: IO[bytes], lines: "queue.SimpleQueue[bytes]") -> None:
        time.sleep(0.6)  # the child has ended by then, and its end been seen
        read(stream, lines)

    monkeypatch.setattr(isolation, "_read", read_late)
    assert child(tmp_path, """say('{"type":"finished"}')""")[-1] == Finished()


def test_what_was_finished_before_a_flood_is_read_even_if_the_flood_is_seen_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = isolation._read

    def read_late(stream: IO[bytes], lines: "queue.SimpleQueue[bytes]") -> None:
        time.sleep(0.6)
        read(stream, lines)

    monkeypatch.setattr(isolation, "_read", read_late)
    monkeypatch.setattr(isolation, "MAX_OUTPUT_BYTES", 2**20)
    records = child(tmp_path, "os.write(2, b'x' * 2**21); time.sleep(60)")
    assert "printed more than 1 MiB" in last_note(records)


def test_a_crash_is_told_with_its_signal_and_what_was_measured(tmp_path: Path) -> None:
    records = child(tmp_path, "os.kill(os.getpid(), signal.SIGSEGV)")
    assert last_note(records) == (
        "its measuring process crashed with SIGSEGV while measuring copies, 4 KiB"
    )


def test_a_crash_brings_the_drivers_last_words(tmp_path: Path) -> None:
    script = "os.write(2, b'first line\\nPTHREAD ERROR in here\\n'); os.abort()"
    assert "crashed with SIGABRT (PTHREAD ERROR in here) while" in last_note(
        child(tmp_path, script)
    )


def test_an_exit_before_the_end_is_told(tmp_path: Path) -> None:
    assert "exited with status 3 before it reported while measuring copies, 4 KiB" in last_note(
        child(tmp_path, "sys.exit(3)")
    )


def test_a_hang_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    past_the_limit_once_it_measures(monkeypatch)
    records = child(tmp_path, "time.sleep(60)")
    assert "did not finish within 60 s and was stopped" in last_note(records)


def test_a_hang_that_ignores_signals_is_ended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    past_the_limit_once_it_measures(monkeypatch)
    assert "was stopped" in last_note(child(tmp_path, script))


def test_garbage_is_noted_once_and_the_rest_is_read(tmp_path: Path) -> None:
    records = child(
        tmp_path,
        """say('Segmentation fault?'); os.write(1, b'\\xff\\xfe\\n'); say('{"type":"doing"}')
say('{"type":"finished"}')""",
    )
    assert records[1:] == [
        Note(text="its measuring process printed what is not a record"),
        Finished(),
    ]


def test_a_flood_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "MAX_OUTPUT_BYTES", 2**20)
    records = child(tmp_path, "while True: os.write(1, b'x' * 65536)")
    assert "printed more than 1 MiB and was stopped" in last_note(records)


def test_a_flood_of_errors_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "MAX_OUTPUT_BYTES", 2**20)
    records = child(tmp_path, "while True: os.write(2, b'x' * 65536)")
    assert "printed more than 1 MiB and was stopped" in last_note(records)


def test_filling_the_memory_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "_MEMORY_SHARE", psutil.virtual_memory().total // 2**27)
    records = child(tmp_path, "hoard = bytearray(os.urandom(2**20) * 300); time.sleep(60)")
    assert "MiB of memory and was stopped" in last_note(records)


def test_a_grandchild_that_keeps_the_pipe_open_does_not_keep_us(tmp_path: Path) -> None:
    script = """
import subprocess
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])
os._exit(7)
"""
    assert "exited with status 7" in last_note(child(tmp_path, script))


def test_closing_the_iterator_kills_the_child(tmp_path: Path) -> None:
    path = tmp_path / "child.py"
    script = """say('{"type":"doing","what":"%d","spent":0}' % os.getpid()); time.sleep(60)"""
    path.write_text(PREAMBLE + script)
    records = measure_in_child(REQUEST, limit_s=30.0, command=(str(path),))
    next(records)
    second = next(records)
    assert isinstance(second, Doing)
    records.close()
    assert not psutil.pid_exists(int(second.what))


def test_a_program_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    (record,) = measure_in_child(REQUEST, limit_s=1.0)
    assert isinstance(record, Note)
    assert "could not be started" in record.text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs signals")
def test_a_measuring_child_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        """
from fuel_gpu.calibration.isolation import measure_in_child
from fuel_gpu.calibration.records import Request
from fuel_gpu.probes import cpu
for record in measure_in_child(
    Request(device=cpu.enumerate_devices().devices[0], full=True), limit_s=60.0
):
    print(record, flush=True)
"""
    )
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert parent.stdout is not None
    assert b"launch overhead" in parent.stdout.readline()
    (measuring,) = psutil.Process(parent.pid).children()
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert psutil.wait_procs([measuring], timeout=20)[1] == []
