"""The table's file: read with every value checked, written so that no earlier table is lost."""

import json
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock, Timeout

from fuel_gpu.calibration.table import FORMAT_VERSION, Table
from fuel_gpu.calibration.table_checks import impossible_value
from fuel_gpu.errors import TableError
from fuel_gpu.files import replace_atomically

_MEND = "mend that field, or run `fuel-gpu calibrate` to measure again"
_LOCK_TIMEOUT_S = 30.0


def default_table_path() -> Path:
    """Where this machine's own table lies: in the user's cache folder."""
    from platformdirs import user_cache_path

    return user_cache_path("fuel-gpu", appauthor=False) / "table.json"


def load_table(path: Path | str | None = None) -> Table:
    """Read a calibration table and check every value in it.

    Parameters
    ----------
    path
        A table's file; None for this machine's own.

    Raises
    ------
    TableError
        If the file is missing, is not a table, or holds an impossible value; the message names the
        file, the field and what to do.
    """
    file = default_table_path() if path is None else Path(path)
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        hint = "run `fuel-gpu calibrate` to make it" if path is None else "is the path right?"
        raise TableError(f"{file}: there is no such table; {hint}") from None
    except OSError as error:
        raise TableError(f"{file}: cannot be read: {error.strerror or error}") from None
    return decode_table(text, name=str(file))


def decode_table(text: bytes, *, name: str = "table") -> Table:
    """Read a table from the text of its file; `name` stands for the file in messages.

    Raises
    ------
    TableError
        As `load_table`.
    """
    _check_version(text, name)
    try:
        table = msgspec.json.decode(text, type=Table)
    except msgspec.ValidationError as error:
        raise TableError(f"{name}: {error}; {_MEND}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TableError(f"{name}: {_malformed(text, str(error))}") from None
    if (wrong := impossible_value(table)) is not None:
        raise TableError(f"{name}: {wrong}; {_MEND}")
    return table


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
    TableError
        If it cannot be written; the earlier table, if there was one, is still there.
    """
    file = default_table_path() if path is None else Path(path)
    text = encode_table(table)
    try:
        file = file.resolve()  # a link stays a link; what it points to is replaced
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(file.with_name(f".{file.name}.lock"), timeout=_LOCK_TIMEOUT_S):
            replace_atomically(file, text)
    except Timeout:
        raise TableError(
            f"{file}: another process holds its lock; the table was not written. "
            "Wait for it to end, or name another file with --table"
        ) from None
    except OSError as error:
        raise TableError(
            f"{file}: cannot be written: {error.strerror or error}; an earlier table is kept. "
            "Free some space, or name another file with --table"
        ) from None
    return file


def encode_table(table: Table) -> bytes:
    """Give the text of a table's file."""
    return msgspec.json.format(msgspec.json.encode(table), indent=1) + b"\n"


def _check_version(text: bytes, name: str) -> None:
    """Refuse another format by its number, before its fields look wrong."""

    class Head(msgspec.Struct):
        version: int

    try:
        version = msgspec.json.decode(text, type=Head).version
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return
    if version != FORMAT_VERSION:
        raise TableError(
            f"{name}: version is {version}, this fuel-gpu reads {FORMAT_VERSION}; "
            "run `fuel-gpu calibrate` to measure again"
        )


def _malformed(text: bytes, error: str) -> str:
    """Say what is wrong with text that is not JSON; NaN and Infinity get their field's name."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return (
            f"not a whole JSON document ({error}): truncated or damaged; "
            "run `fuel-gpu calibrate` to measure again"
        )
    where = _path_of_non_finite(document, "$")
    return f"a number is not finite - at `{where}`; {_MEND}" if where else f"{error}; {_MEND}"


def _path_of_non_finite(value: Any, path: str) -> str | None:
    if isinstance(value, float):
        return path if value != value or value in (float("inf"), float("-inf")) else None
    children: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        children = [(f"{path}.{key}", child) for key, child in value.items()]
    elif isinstance(value, list):
        children = [(f"{path}[{i}]", child) for i, child in enumerate(value)]
    found = (_path_of_non_finite(child, where) for where, child in children)
    return next((where for where in found if where), None)
