"""Where a table is to be written: found writable and locked before anything is measured."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from fuel_gpu.errors import TableError
from fuel_gpu.files import replace_atomically

_ANOTHER = "name another file with --table"


def checked_target(path: Path) -> Path:
    """Find the file that a table is to be written to, and make sure that it can be.

    Its folder is made if it is missing. A link stays a link: what it points to is written.

    Raises
    ------
    TableError
        If nothing can be written there; the message names the cause.
    """
    try:
        file = path.resolve()
        if file.is_dir():
            raise TableError(f"{path}: cannot be written: it is a folder; name a file in it")
        if file.exists() and not file.is_file():
            raise TableError(
                f"{path}: cannot be written: a table is not written to a pipe or a device; "
                f"{_ANOTHER}"
            )
        if file.exists() and not os.access(file, os.W_OK):
            raise TableError(f"{path}: cannot be written: it is read-only; {_ANOTHER}")
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except (FileExistsError, NotADirectoryError):
        above = (one for one in path.absolute().parents if one.exists() and not one.is_dir())
        folder = next(above, path.parent)
        raise TableError(
            f"{path}: cannot be written: {folder} is not a folder; {_ANOTHER}"
        ) from None
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a null byte in it
        raise TableError(f"{path}: cannot be written: {_cause(error)}") from None
    return file


@contextmanager
def locked(file: Path, wait_s: float) -> Iterator[None]:
    """Hold the lock beside a file; it ends with this process, however that ends.

    Raises
    ------
    TableError
        If another process holds it for longer than `wait_s`, or it cannot be made.
    """
    lock = FileLock(file.with_name(f".{file.name}.lock"), timeout=wait_s)
    try:
        lock.acquire()
    except Timeout:
        raise TableError(
            f"{file}: another process is measuring for it or writing it (it holds "
            f"{lock.lock_file}); nothing was written. Wait for it to end, or {_ANOTHER}"
        ) from None
    except (OSError, NotImplementedError) as error:
        raise TableError(f"{file}: cannot be locked: {_cause(error)}") from None
    try:
        yield
    finally:
        lock.release()


def replace_target(file: Path, text: bytes) -> None:
    """Write atomically.

    Raises
    ------
    TableError
        If it cannot be written; the message names the cause, and whether there is an earlier table.
    """
    try:
        replace_atomically(file, text)
    except OSError as error:
        kept = "; what was there is kept" if file.exists() else ""
        raise TableError(f"{file}: cannot be written: {_cause(error)}{kept}") from None


def _cause(error: Exception) -> str:
    if isinstance(error, OSError):
        words = error.strerror or str(error)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        return f"{words}; {'free some space, or ' if full else ''}{_ANOTHER}"
    return f"{error}; {_ANOTHER}"
