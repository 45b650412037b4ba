"""Whatever a child does, its parent gets a result or one sentence, and nothing is left running."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from fuel_gpu.probes.isolation import Ending, run_isolated

LONG_S = 60.0
"""A limit that no child here may reach."""

HAND_BACK = """
from fuel_gpu.probes.isolation import claim_stdout, hand_back
channel = claim_stdout()
"""


def run(source: str, timeout_s: float = LONG_S, **limits: int) -> Ending:
    return run_isolated({"child": ("-c", source)}, timeout_s=timeout_s, **limits)["child"]


def past_the_limit_once(monkeypatch: pytest.MonkeyPatch, happened: Callable[[], bool]) -> None:
    """Let the clock that limits children jump far ahead when something has happened, not before."""

    def monotonic() -> float:
        return time.monotonic() + (10 * LONG_S if happened() else 0.0)

    clock = SimpleNamespace(monotonic=monotonic, sleep=time.sleep)
    monkeypatch.setattr("fuel_gpu.probes.isolation.time", clock)


def ends(pid: int) -> bool:
    """Whether a process that was killed is gone in the end; the system may take a moment."""
    deadline = time.monotonic() + LONG_S
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


def test_the_payload_comes_back_whatever_else_is_printed() -> None:
    ending = run(
        "print('noise before')"
        + HAND_BACK
        + "import os; print('noise'); os.write(1, b'native noise'); hand_back(channel, b'payload')"
    )
    assert ending == Ending(b"payload")


def test_a_driver_that_crashes_in_its_exit_handler_does_no_harm() -> None:
    ending = run(
        HAND_BACK + "import atexit, os\natexit.register(os.abort)\nhand_back(channel, b'payload')"
    )
    assert ending == Ending(b"payload")


def test_a_child_imports_from_where_its_parent_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("PAYLOAD = b'found'")
    monkeypatch.syspath_prepend(tmp_path)
    assert run(HAND_BACK + "import only_here; hand_back(channel, only_here.PAYLOAD)").payload == (
        b"found"
    )


@pytest.mark.parametrize(
    ("source", "failure"),
    [
        ("import os; os.kill(os.getpid(), 11)", "crashed with SIGSEGV"),
        ("import os; os.abort()", "crashed with SIGABRT"),
        ("raise SystemExit(3)", "exited with status 3 before it reported"),
        ("pass", "exited before it reported"),
        (
            "import sys; sys.exit('licence expired')",
            "exited with status 1 before it reported (licence expired)",
        ),
    ],
)
def test_an_end_without_a_result_is_one_sentence(source: str, failure: str) -> None:
    assert run(source) == Ending(None, failure)


def test_a_hanging_child_is_killed_with_the_processes_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    past_the_limit_once(monkeypatch, lambda: pids.exists() and " " in pids.read_text())
    ending = run(
        "import os, subprocess, sys, time\n"
        "other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{other.pid}}')\n"
        "time.sleep(600)",
    )
    assert ending == Ending(None, "did not answer within 60 s and was stopped")
    assert all(ends(int(pid)) for pid in pids.read_text().split())


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_child_that_prints_without_end_is_stopped(stream: str) -> None:
    ending = run(
        f"import sys\nwhile True: sys.{stream}.write('x' * 65536)", max_output_bytes=1 << 20
    )
    assert ending == Ending(None, "printed more than 1 MiB and was stopped")


def test_a_result_of_any_length_is_refused() -> None:
    ending = run(HAND_BACK + "hand_back(channel, b'x' * 3_000_000)", max_output_bytes=1 << 20)
    assert ending.payload is None
    assert ending.failure.startswith("printed more than 1 MiB")


def test_a_child_that_fills_memory_is_stopped() -> None:
    ending = run(
        "import time\nheld = b'x' * (400 << 20)\ntime.sleep(600)", max_memory_bytes=200 << 20
    )
    assert ending == Ending(None, "took more than 200 MiB of memory and was stopped")


def test_children_end_each_for_itself() -> None:
    endings = run_isolated(
        {
            "good": ("-c", HAND_BACK + "hand_back(channel, b'fine')"),
            "bad": ("-c", "import os; os.abort()"),
        },
        timeout_s=LONG_S,
    )
    assert endings == {"good": Ending(b"fine"), "bad": Ending(None, "crashed with SIGABRT")}


def test_a_child_that_cannot_start_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert "could not be started" in run("pass").failure


def test_an_interrupt_kills_the_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid_file = tmp_path / "pid"
    source = (
        f"import os, time\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    )
    sleep = time.sleep

    def interrupted_sleep(seconds: float) -> None:
        sleep(seconds)
        if pid_file.exists() and pid_file.read_text():
            monkeypatch.undo()
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted_sleep)
    with pytest.raises(KeyboardInterrupt):
        run(source)
    assert ends(int(pid_file.read_text()))


def test_a_child_does_not_outlive_its_deadline_when_nobody_stops_it() -> None:
    ending = run(
        "from fuel_gpu.probes.isolation import end_with_deadline\n"
        "import time\nend_with_deadline(0.1)\ntime.sleep(600)"
    )
    assert ending == Ending(None, "crashed with SIGALRM")


PARENT = """
import sys
from fuel_gpu.probes.isolation import run_isolated
run_isolated({"child": ("-c", sys.argv[1])}, timeout_s=600.0)
"""
HANG = """
import os, sys, time, ctypes
from fuel_gpu.probes.isolation import end_with_parent
if not LINUX: sys.platform = "another"
end_with_parent()
with open(PIDS, "w") as file: file.write(f"{os.getpid()}.")
if LINUX: ctypes.PyDLL(None).sleep(600)  # a driver that never lets go of the interpreter
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux to end the child")
@pytest.mark.parametrize("linux", [True, False])
@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGHUP", "SIGKILL"])
def test_a_child_ends_when_its_parent_is_killed(
    tmp_path: Path, linux: bool, signal_name: str
) -> None:
    pids = tmp_path / "pids"
    child = HANG.replace("LINUX", str(linux)).replace("PIDS", repr(str(pids)))
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, child],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    while not (pids.exists() and pids.read_text().endswith(".")):
        assert parent.poll() is None
        time.sleep(0.01)
    hanging = int(pids.read_text().rstrip("."))
    parent.send_signal(getattr(signal, signal_name))
    parent.wait()
    assert ends(hanging)
