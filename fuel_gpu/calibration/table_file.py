"""The table's file: where it lies, how it is read, and how it is held while it is written."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fuel_gpu.calibration.table import Table
from fuel_gpu.calibration.table_target import checked_target, locked, replace_target
from fuel_gpu.calibration.table_text import decode_table, encode_table
from fuel_gpu.errors import TableError, UsageError

MAX_BYTES: Final = 256 << 20
"""No table is as large: one of eight cards, measured in full, has some ten MiB."""

_LOCK_WAIT_S = 5.0
"""A table is written in milliseconds; who holds it for longer is measuring."""


def default_table_path() -> Path:
    """Where this machine's own table lies: in the user's cache folder."""
    from platformdirs import user_cache_path

    return user_cache_path("fuel-gpu", appauthor=False) / "table.json"


def load_table(path: Path | str | None = None) -> Table:
    """Read a calibration table and check every value in it.

    Parameters
    ----------
    path
        A table's file, or a pipe; None for this machine's own.

    Raises
    ------
    UsageError
        If `path` is no path.
    TableError
        If the file is missing, is not a table, or holds an impossible value; the message names the
        file, the field and what to do.
    """
    file = _named_file(path)
    try:
        text = read_text(file)
    except FileNotFoundError:
        hint = "run `fuel-gpu calibrate` to make it" if path is None else "is the path right?"
        raise TableError(f"{file}: there is no such table; {hint}") from None
    return decode_table(text, name=str(file))


def read_text(file: Path) -> bytes:
    """Read what may be a table: a file or a pipe of at most `MAX_BYTES`.

    Raises
    ------
    FileNotFoundError
        If there is nothing.
    TableError
        If it is a folder or a device, too large, or cannot be read.
    """
    try:
        mode = file.stat().st_mode
        if stat.S_ISDIR(mode):
            raise TableError(f"{file}: cannot be read: it is a folder; name a table's file")
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            raise TableError(f"{file}: cannot be read: it is neither a file nor a pipe")
        with file.open("rb") as stream:
            text = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise TableError(f"{file}: cannot be read: {_words(error)}") from None
    if len(text) > MAX_BYTES:
        raise TableError(f"{file}: larger than {MAX_BYTES >> 20} MiB, which no table is")
    return text


def save_table(table: Table, path: Path | str | None = None) -> Path:
    """Write a table under a lock, atomically: a full disk or a kill leaves the earlier file whole.

    Parameters
    ----------
    table
        What to write.
    path
        Where; None for this machine's own table.

    Returns
    -------
    Path
        Where it lies now.

    Raises
    ------
    UsageError
        If `table` is no table or `path` no path.
    TableError
        If the table holds what `load_table` would refuse, or the file cannot be written; the
        earlier table, if there was one, is still there.
    """
    file = _named_file(path)
    encode_table(table, name=str(file))  # before anything is made for it
    with hold_table(file, wait_s=_LOCK_WAIT_S) as save:
        return save(table)


@contextmanager
def hold_table(path: Path, *, wait_s: float = 0.0) -> Iterator[Callable[[Table], Path]]:
    """Hold a table's file for oneself, and give what saves a table there.

    Whoever measures holds the file from before the first measurement to after the last, so that
    two that measure at once neither lose each other's figures nor disturb them.

    Parameters
    ----------
    path
        The file; it and its folder may be missing.
    wait_s
        Seconds to wait for whoever holds it.

    Raises
    ------
    TableError
        If it cannot be written, or another process holds it; from the given function too.
    """
    target = checked_target(path)
    with locked(target, wait_s):

        def save(table: Table) -> Path:
            replace_target(target, encode_table(table, name=str(target)))
            return target

        yield save


def _named_file(path: object) -> Path:
    if path is None:
        return default_table_path()
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"path: {path!r} is no path of a table's file")
    file = Path(path)
    if file == Path():
        raise UsageError("the table's path is empty, or the folder one is in: name a file")
    return file


def _words(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
