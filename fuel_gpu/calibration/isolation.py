"""Measures a device in a child process: a crash, a hang or a flood costs what was unfinished."""

import contextlib
import math
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator
from typing import IO, Final

import msgspec
import psutil

from fuel_gpu.calibration.records import Doing, Finished, Note, Record, Request
from fuel_gpu.probes.cpu import host_memory_bytes
from fuel_gpu.probes.isolation import describe_exit, kill_group, last_words, start_python

MAX_LINE_BYTES: Final = 4 << 20
MAX_OUTPUT_BYTES: Final = 64 << 20
_MEMORY_SHARE: Final = 2
"""A child that holds more than this part of the memory that we may use is stopped."""

_POLL_S: Final = 0.1
_EXIT_WAIT_S: Final = 2.0
_LAST_LINES_S: Final = 1.0
"""How long a dead child's last lines may take to be read; a grandchild may keep the pipe open."""


def measure_in_child(
    request: Request, *, limit_s: float, command: tuple[str, ...] = ()
) -> Generator[Record, None, None]:
    """Yield a child's records as they come; a child that fails ends with a note that says how.

    Closing the iterator, or an interrupt, kills the child and whatever it started.

    Parameters
    ----------
    request
        What to measure.
    limit_s
        Seconds after which the child is taken to hang and is killed.
    command
        What follows ``python``, instead of the measuring child.
    """
    with tempfile.TemporaryFile() as stderr, contextlib.ExitStack() as cleanup:
        try:
            process = start_python(
                command or ("-m", "fuel_gpu.calibration.child"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        except OSError as error:
            yield Note(text=f"its measuring process could not be started: {error}")
            return
        cleanup.callback(_end, process)
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):  # a child that is dead already is reported below
            process.stdin.write(msgspec.json.encode(request) + b"\n")
            process.stdin.flush()
        lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
        yield from _follow(process, lines, stderr, limit_s)


def _follow(
    process: subprocess.Popen[bytes],
    lines: "queue.SimpleQueue[bytes]",
    stderr: IO[bytes],
    limit_s: float,
) -> Generator[Record, None, None]:
    deadline = time.monotonic() + limit_s
    doing, received, garbage, failure = "", 0, False, ""
    read_until = math.inf
    while True:
        try:
            line = lines.get(timeout=_POLL_S)
        except queue.Empty:
            line = None
        if line:
            received += len(line)
            record = _decoded(line)
            if record is not None:
                if isinstance(record, Doing):
                    doing = record.what
                yield record
                if isinstance(record, Finished):
                    return
            elif not garbage:
                garbage = True
                yield Note(text="its measuring process printed what is not a record")
        elif line == b"" or time.monotonic() > read_until:
            failure = failure or _how_it_ended(process, stderr)
            at = f" while measuring {doing}" if doing else ""
            yield Note(text=f"its measuring process {failure}{at}")
            return
        elif read_until == math.inf and process.poll() is not None:
            read_until = time.monotonic() + _LAST_LINES_S
        if not failure and (failure := _excess(process, deadline, limit_s, received, stderr)):
            kill_group(process)
            read_until = time.monotonic() + _LAST_LINES_S


def _decoded(line: bytes) -> Record | None:
    try:
        return msgspec.json.decode(line, type=Record)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _read(stream: IO[bytes], lines: "queue.SimpleQueue[bytes]") -> None:
    """Hand over line by line, and an empty line at the end."""
    with contextlib.suppress(OSError, ValueError):  # the parent closed it
        while line := stream.readline(MAX_LINE_BYTES):
            lines.put(line)
    lines.put(b"")


def _end(process: subprocess.Popen[bytes]) -> None:
    kill_group(process)
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()


def _excess(
    process: subprocess.Popen[bytes],
    deadline: float,
    limit_s: float,
    received: int,
    stderr: IO[bytes],
) -> str:
    if time.monotonic() > deadline:
        return f"did not finish within {limit_s:g} s and was stopped"
    if max(received, os.fstat(stderr.fileno()).st_size) > MAX_OUTPUT_BYTES:
        return f"printed more than {MAX_OUTPUT_BYTES >> 20} MiB and was stopped"
    limit = host_memory_bytes() // _MEMORY_SHARE
    with contextlib.suppress(psutil.Error):
        if psutil.Process(process.pid).memory_info().rss > limit:
            return f"took more than {limit >> 20} MiB of memory and was stopped"
    return ""


def _how_it_ended(process: subprocess.Popen[bytes], stderr: IO[bytes]) -> str:
    try:
        status = process.wait(_EXIT_WAIT_S)
    except subprocess.TimeoutExpired:
        return "closed its output and was stopped"
    return describe_exit(status) + last_words(stderr)
