"""Writes what a command gives: to standard output, a file, or files in a folder."""

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from fuel_gpu.errors import FuelGpuError, UsageError


def write_stdout(content: bytes) -> None:
    """Write to standard output, and reach it: a full disk behind it is seen here, not at exit.

    Raises
    ------
    FuelGpuError
        If it cannot be written; a reader that has gone away (`head`) is a `BrokenPipeError`.
    """
    if sys.stdout is None:
        raise FuelGpuError("standard output is closed: name a file with --out")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        silence_stdout()
        raise FuelGpuError(
            f"standard output: cannot be written: {error.strerror or error}"
        ) from None


def silence_stdout() -> None:
    """Send what is still buffered nowhere: it would fail once more when the interpreter ends."""
    with contextlib.suppress(OSError):  # a stream that is no file has no number
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def refuse_overwriting(out: Path | None, *inputs: Path | None) -> None:
    """Refuse to write a result over what it is made from.

    Raises
    ------
    UsageError
        If `out` is one of the files that are read.
    """
    if out is None or not out.is_file():
        return
    for read in inputs:
        if read is not None and read.exists() and out.samefile(read):
            raise UsageError(f"--out {out} is a file that is read: name another")


def write_folder(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files into a folder, which is made if its parent is there.

    Raises
    ------
    FuelGpuError
        If the folder cannot be made or a file cannot be written; the message names it.
    """
    from fuel_gpu.files import write_output

    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise FuelGpuError(
            f"{folder}: cannot be a folder to write into: {error.strerror or error}"
        ) from None
    for name, content in files.items():
        write_output(folder / name, content)
    return [folder / name for name in files]
