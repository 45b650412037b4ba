"""The text of a table's file: read with every value checked, made only of what can be read back."""

import codecs
import json
import math
import re
from typing import Any, Final

import msgspec

from fuel_gpu.calibration.table import FORMAT_VERSION, Table
from fuel_gpu.calibration.table_checks import impossible_value
from fuel_gpu.errors import TableError, UsageError

_MEND: Final = "mend that field, or run `fuel-gpu calibrate` to measure again"
_MEASURE: Final = "run `fuel-gpu calibrate` to measure again"
_MARKS: Final = (
    (codecs.BOM_UTF8, "UTF-8 with a byte order mark"),
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
"""What a text's first bytes say of its encoding; UTF-32's begin as UTF-16's do."""

_BEGINNING: Final = re.compile(rb'\s*\{\s*"version"\s*:\s*-?\d*\s*,?\s*')
_SECOND_KEY: Final = b'"machine"'
_PARTS: Final = frozenset(("machine", "devices", "transfers", "rates"))


def decode_table(text: bytes, *, name: str = "table") -> Table:
    """Read a table from the text of its file; `name` stands for the file in messages.

    Raises
    ------
    TableError
        If it is not a table or holds an impossible value; the message names the field and what to
        do.
    """
    try:
        _check_version(text, name)
        table = msgspec.json.decode(text, type=Table)
        repeated = _repeated_key(text)
    except RecursionError:
        raise TableError(f"{name}: nested too deeply for a table; {_MEASURE}") from None
    except msgspec.ValidationError as error:
        raise TableError(f"{name}: {error}; {_MEND}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TableError(f"{name}: {_malformed(text, str(error))}") from None
    if repeated is not None:
        raise TableError(f"{name}: the key {repeated!r} occurs twice in one object; {_MEND}")
    if (wrong := impossible_value(table)) is not None:
        raise TableError(f"{name}: {wrong}; {_MEND}")
    return table


def encode_table(table: Table, *, name: str = "table") -> bytes:
    """Give the text of a table's file; `name` stands for the file in messages.

    Raises
    ------
    UsageError
        If `table` is no table.
    TableError
        If it holds what no table may hold, so that it could not be read back; the message names
        the field.
    """
    if not isinstance(table, Table):
        raise UsageError(
            f"table: {table!r:.60} is no table: `calibrate` makes one and `load_table` reads one"
        )
    try:
        _refuse_non_finite(msgspec.to_builtins(table), name)
        text = msgspec.json.format(msgspec.json.encode(table), indent=1) + b"\n"
        readable = msgspec.json.decode(text, type=Table)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise TableError(f"{name}: not written: {error}") from None
    if (wrong := impossible_value(readable)) is not None:
        raise TableError(f"{name}: not written: {wrong}")
    return text


def _refuse_non_finite(document: Any, name: str) -> None:
    """Refuse NaN and infinities, which msgspec would write as null."""
    try:
        json.dumps(document, allow_nan=False)
    except ValueError:
        where = _path_of_non_finite(document, "$")
        raise TableError(f"{name}: not written: a number is not finite - at `{where}`") from None


def was_a_table(text: bytes) -> bool:
    """Whether a text is a table, of whatever version and state, or what is left of one."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        beginning = _BEGINNING.match(text)
        if beginning is None:
            return False
        rest = text[beginning.end() :]
        return rest.startswith(_SECOND_KEY) or _SECOND_KEY.startswith(rest)
    return isinstance(document, dict) and "version" in document and bool(_PARTS & document.keys())


def _check_version(text: bytes, name: str) -> None:
    """Refuse another format by its number, before its fields look wrong."""

    class Head(msgspec.Struct):
        version: int

    try:
        version = msgspec.json.decode(text, type=Head).version
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return
    if version != FORMAT_VERSION:
        newer = "update fuel-gpu, or " if version > FORMAT_VERSION else ""
        raise TableError(
            f"{name}: version is {version}, this fuel-gpu reads {FORMAT_VERSION}; {newer}{_MEASURE}"
        )


def _repeated_key(text: bytes) -> str | None:
    """Give a key that one object has twice: of two values nobody knows which is meant."""
    repeated: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            repeated.extend(key for key in keys if keys.count(key) > 1)

    json.loads(text, object_pairs_hook=note)
    return repeated[0] if repeated else None


def _malformed(text: bytes, error: str) -> str:
    """Say what is wrong with text that is not JSON; NaN and Infinity get their field's name."""
    if (encoding := _other_encoding(text)) is not None:
        return f"its encoding is {encoding}, want UTF-8 alone: save it so, or {_MEASURE}"
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return f"not a whole JSON document ({error}): truncated or damaged; {_MEASURE}"
    where = _path_of_non_finite(document, "$")
    return f"a number is not finite - at `{where}`; {_MEND}" if where else f"{error}; {_MEND}"


def _other_encoding(text: bytes) -> str | None:
    for mark, encoding in _MARKS:
        if text.startswith(mark):
            return encoding
    return "UTF-16" if text[:2] in (b"{\0", b"\0{") else None


def _path_of_non_finite(value: Any, path: str) -> str | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else path
    children: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        children = [(f"{path}.{key}", child) for key, child in value.items()]
    elif isinstance(value, list | tuple):
        children = [(f"{path}[{i}]", child) for i, child in enumerate(value)]
    found = (_path_of_non_finite(child, where) for where, child in children)
    return next((where for where in found if where), None)
