"""Runs untrusted code in child processes: a crash, a hang or a flood ends as one sentence.

A child hands its result back as the last record of its standard output: `MARK`, then the payload.
Whatever a driver prints there before is ignored; `claim_stdout` sends what it prints after to
standard error. Both streams are temporary files, so that nobody waits for a pipe that a
grandchild keeps open, and a child that writes too much is seen by its file's size.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

import psutil

MARK: Final = b"\x1e"
"""Begins the result: the record separator of JSON text sequences (RFC 7464)."""

MAX_OUTPUT_BYTES: Final = 8 << 20
MAX_MEMORY_BYTES: Final = 4 << 30
_POLL_S: Final = 0.005
_PARENT: Final = "FUEL_GPU_PARENT"
"""The variable that tells a child the process that waits for it."""

_PARENT_POLL_S: Final = 0.1
_PR_SET_PDEATHSIG: Final = 1
_KILL_WAIT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended.

    Parameters
    ----------
    payload
        What it handed back; None if it did not.
    failure
        If it did not: why, as the rest of a sentence about it ("crashed with SIGSEGV").
    """

    payload: bytes | None
    failure: str = ""


@dataclass(slots=True)
class _Child:
    process: subprocess.Popen[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]
    resident_bytes: Callable[[], int] = field(repr=False)


def run_isolated(
    commands: Mapping[str, Sequence[str]],
    *,
    timeout_s: float,
    max_output_bytes: int = MAX_OUTPUT_BYTES,
    max_memory_bytes: int = MAX_MEMORY_BYTES,
) -> dict[str, Ending]:
    """Run Python children side by side and tell how each ended.

    Parameters
    ----------
    commands
        What follows ``python`` for each child, by a name of the caller's choice. A child imports
        from where this process does.
    timeout_s
        Seconds that each may take; then it and the processes it started are killed.
    max_output_bytes, max_memory_bytes
        A child that prints more, or holds more resident memory, is killed.

    Returns
    -------
    dict
        An `Ending` for each name. If this call is interrupted, all children are killed first.
    """
    children: dict[str, _Child] = {}
    endings: dict[str, Ending] = {}
    with contextlib.ExitStack() as cleanup:
        for name, command in commands.items():
            stdout = cleanup.enter_context(TemporaryFile())
            stderr = cleanup.enter_context(TemporaryFile())
            try:
                children[name] = _start(command, stdout, stderr)
            except OSError as error:
                endings[name] = Ending(None, f"could not be started: {error}")
            else:
                cleanup.callback(_kill_if_running, children[name].process)
        deadline = time.monotonic() + timeout_s
        while len(endings) < len(commands):
            for name, child in children.items():
                if name in endings:
                    continue
                if child.process.poll() is not None:
                    endings[name] = _ending(child, max_output_bytes)
                    continue
                excess = _excess(child, deadline, timeout_s, max_output_bytes, max_memory_bytes)
                if excess:
                    dead = kill_group(child.process)
                    endings[name] = Ending(None, excess + ("" if dead else " and cannot be killed"))
            time.sleep(_POLL_S)
    return endings


def claim_stdout() -> IO[bytes]:
    """In a child: take standard output for the result, and send later prints to standard error."""
    sys.stdout.flush()
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return channel


def hand_back(channel: IO[bytes], payload: bytes) -> None:
    """In a child: give the result and end, without the exit handlers that drivers crash in."""
    channel.write(MARK + payload)
    channel.flush()
    os._exit(0)


def end_with_deadline(seconds: float) -> None:
    """In a child: let the system end it, so that it cannot outlive a parent that was killed.

    The default action of SIGALRM ends the process in native code too, where Python's own signal
    handlers never run.
    """
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))


def end_with_parent() -> None:
    """In a child: end as soon as the parent does, however that ends.

    Linux kills the child itself, even inside a driver's call (prctl(2), PR_SET_PDEATHSIG).
    Elsewhere, and where the parent was gone before that was asked for, a thread looks.
    """
    parent = int(os.environ.get(_PARENT, os.getppid()))
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_end_without, args=(parent,), daemon=True).start()


def leave_no_core_file() -> None:
    """In a child: a crash is expected, and its memory is of no use to anyone."""
    try:
        import resource
    except ImportError:  # Windows has neither the module nor core files
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def kill_group(process: subprocess.Popen[bytes]) -> bool:
    """Kill a child and the processes it started; False if it does not die.

    A process inside a driver call that cannot be interrupted outlives even SIGKILL.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    try:
        process.wait(_KILL_WAIT_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def start_python(
    command: Sequence[str], *, stdin: int, stdout: int | IO[bytes], stderr: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a Python child in a session of its own, which imports from where this process does."""
    search_path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
    return subprocess.Popen(
        [sys.executable, "-P", *command],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, "PYTHONPATH": search_path, _PARENT: str(os.getpid())},
        start_new_session=True,
    )


def describe_exit(status: int) -> str:
    """Say how a child ended, as the rest of a sentence about it."""
    if status >= 0:
        return f"exited with status {status} before it reported"
    try:
        return f"crashed with {signal.Signals(-status).name}"
    except ValueError:
        return f"crashed with signal {-status}"


def last_words(stderr: IO[bytes]) -> str:
    """Give the last line of a dead child's standard error in brackets; empty if there is none."""
    stderr.seek(max(0, _size(stderr) - 2000))
    lines = [line.strip() for line in stderr.read().decode(errors="replace").splitlines()]
    last = next((line for line in reversed(lines) if line), "")
    return f" ({last[:200]})" if last else ""


def _end_without(parent: int) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        handle = psutil.Process(parent)
        while handle.is_running() and handle.status() != psutil.STATUS_ZOMBIE:
            time.sleep(_PARENT_POLL_S)
    os._exit(1)


def _start(command: Sequence[str], stdout: IO[bytes], stderr: IO[bytes]) -> _Child:
    process = start_python(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
    handle = psutil.Process(process.pid)
    return _Child(process, stdout, stderr, lambda: int(handle.memory_info().rss))


def _kill_if_running(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        kill_group(process)


def _excess(
    child: _Child,
    deadline: float,
    timeout_s: float,
    max_output_bytes: int,
    max_memory_bytes: int,
) -> str:
    if time.monotonic() > deadline:
        return f"did not answer within {timeout_s:g} s and was stopped"
    if max(_size(child.stdout), _size(child.stderr)) > max_output_bytes:
        return f"printed more than {max_output_bytes >> 20} MiB and was stopped"
    with contextlib.suppress(psutil.Error):
        if child.resident_bytes() > max_memory_bytes:
            return f"took more than {max_memory_bytes >> 20} MiB of memory and was stopped"
    return ""


def _size(stream: IO[bytes]) -> int:
    return os.fstat(stream.fileno()).st_size


def _ending(child: _Child, max_output_bytes: int) -> Ending:
    status = child.process.returncode
    if status != 0:
        kill_group(child.process)
        return Ending(None, describe_exit(status) + last_words(child.stderr))
    if max(_size(child.stdout), _size(child.stderr)) > max_output_bytes:
        return Ending(None, f"printed more than {max_output_bytes >> 20} MiB")
    child.stdout.seek(0)
    _, mark, payload = child.stdout.read().rpartition(MARK)
    if not mark:
        return Ending(None, "exited before it reported" + last_words(child.stderr))
    return Ending(payload)
