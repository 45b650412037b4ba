"""Files written whole or not at all: a full disk or a kill leaves the earlier file as it was."""

import contextlib
import os
from pathlib import Path

from fuel_gpu.errors import FuelGpuError


def replace_atomically(file: Path, text: bytes) -> None:
    """Write beside the file, reach the disk, then rename over it.

    What is no regular file (a terminal, a pipe, a device) is written to directly. A link stays a
    link: what it points to is replaced.

    Raises
    ------
    OSError
        If it cannot be written; what was there is unchanged.
    """
    if file.exists() and not file.is_file():
        file.write_bytes(text)
        return
    file = file.resolve()
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        if file.exists():
            temporary.chmod(file.stat().st_mode & 0o7777)
        temporary.replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def write_output(file: Path, text: bytes) -> None:
    """Write what a command was asked to write.

    Raises
    ------
    FuelGpuError
        If it cannot be written; the message names the file and the cause.
    """
    try:
        replace_atomically(file, text)
    except OSError as error:
        raise FuelGpuError(
            f"{file}: cannot be written: {error.strerror or error}; what was there is unchanged"
        ) from None
