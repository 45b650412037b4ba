"""The command line's own promises: version, exit status, streams that fail."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuel_gpu.cli import main as main_module
from fuel_gpu.cli.main import run

MAIN = [sys.executable, "-m", "fuel_gpu.cli.main"]
DESKTOP = str(Path(__file__).parents[2] / "examples" / "tables" / "desktop.json")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("fuel-gpu 0.")


@pytest.mark.parametrize("arguments", [[], ["plan"], ["nothing"], ["plan", "x", "--keep", "-1"]])
def test_wrong_usage_is_status_2(arguments: list[str]) -> None:
    assert run(arguments) == 2


@pytest.mark.parametrize("command", ["probe", "calibrate", "plan", "export", "diff", "doctor"])
def test_every_help_says_how_to_see_a_traceback(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "--help"]) == 0
    assert "--debug" in capsys.readouterr().out


def failing(error: BaseException) -> object:
    def app(**_: object) -> None:
        raise error

    return app


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt(), 1, "fuel-gpu: interrupted"),
        (SystemExit(130), 1, "fuel-gpu: interrupted"),
        (OSError(28, "No space left on device"), 1, "standard output: No space left on device"),
        (ZeroDivisionError("1/0"), 1, "unexpected ZeroDivisionError: 1/0; this is a fault of"),
        (BrokenPipeError(), 1, ""),
    ],
)
def test_every_end_has_its_status_and_one_line(
    error: BaseException,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(main_module, "app", failing(error))
    monkeypatch.setattr(main_module, "silence_stdout", lambda: None)
    assert run([]) == status
    printed = capsys.readouterr().err
    assert said in printed
    assert printed.count("\n") == (1 if said else 0)


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_module, "app", failing(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        run([], debug=True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_standard_output_is_said() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [*MAIN, "export", "--table", DESKTOP], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == 1
    assert ended.stderr == "fuel-gpu: standard output: cannot be written: No space left on device\n"


def test_a_reader_that_leaves_is_no_error_message() -> None:
    first = subprocess.Popen(
        [*MAIN, "export", "--table", DESKTOP], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert first.stdout is not None
    first.stdout.close()
    _, said = first.communicate()
    assert said == b""


def test_a_terminal_without_the_letters_gets_escapes() -> None:
    ended = subprocess.run(
        [*MAIN, "plan", "größe.onnx", "--table", DESKTOP],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert ended.returncode == 1
    assert b"gr\\xf6\\xdfe.onnx" in ended.stderr
