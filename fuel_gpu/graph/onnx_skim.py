"""Cuts the contents of large initializers out of a model's bytes before it is parsed.

The wire format is protobuf's: a field is a tag (number << 3 | wire type) and a value; a message
inside a message is a length and that many bytes. ModelProto.graph is field 7, GraphProto's
initializers are field 5, and of a TensorProto only its contents are cut: raw_data (9) and the
typed lists. A model of any size is so read in as many bytes as its structure takes.
"""

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import onnx
from google.protobuf.message import DecodeError

from fuel_gpu.errors import ModelError

_KEEP_BYTES: Final = 1024
"""Initializers of at most so many bytes are kept whole: shapes are among them."""

_GRAPH: Final = 7
_INITIALIZER: Final = 5
_NAME: Final = 8
_TEXTS: Final = 6
_CONTENTS: Final = frozenset({4, 5, 6, 7, 9, 10, 11})

Buffer = bytes | mmap.mmap


class CutShortError(ValueError):
    """The bytes end inside a field, or hold what is no protobuf field."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Where in a file an initializer lies whose contents were not read.

    Parameters
    ----------
    path, offset, length
        The file, and the bytes of it that are the initializer.
    contents
        Bytes of the contents, by TensorProto field; of texts, how many.
    """

    path: Path
    offset: int
    length: int
    contents: Mapping[int, int]

    def read(self) -> onnx.TensorProto:
        """Read that one initializer.

        Raises
        ------
        ModelError
            If the file is gone or has changed.
        """
        tensor = onnx.TensorProto()
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                tensor.ParseFromString(file.read(self.length))
        except (OSError, DecodeError) as error:
            raise ModelError(f"{self.path} changed while it was read: {error}") from None
        return tensor


def skim(data: Buffer, path: Path) -> tuple[bytes, dict[str, Skipped]]:
    """Copy a serialised model without the contents of its large initializers.

    Returns
    -------
    bytes
        The smaller model: the same but for those contents.
    dict
        What was left out, by initializer name.

    Raises
    ------
    CutShortError
        If the bytes are no whole protobuf message.
    """
    parts: list[bytes] = []
    skipped: dict[str, Skipped] = {}
    for number, wire, start, content, end in _fields(data, 0, len(data)):
        if number == _GRAPH and wire == 2:
            graph = b"".join(_skim_graph(data, content, end, path, skipped))
            parts += [_tag(_GRAPH), _varint(len(graph)), graph]
        else:
            parts.append(data[start:end])
    return b"".join(parts), skipped


def _skim_graph(
    data: Buffer, start: int, end: int, path: Path, skipped: dict[str, Skipped]
) -> Iterator[bytes]:
    kept_from = start
    for number, wire, field, content, field_end in _fields(data, start, end):
        if number != _INITIALIZER or wire != 2 or field_end - content <= _KEEP_BYTES:
            continue
        yield data[kept_from:field]
        kept_from = field_end
        name, header, contents = _header(data, content, field_end)
        skipped[name] = Skipped(path, content, field_end - content, contents)
        yield _tag(_INITIALIZER) + _varint(len(header)) + header
    yield data[kept_from:end]


def _header(data: Buffer, start: int, end: int) -> tuple[str, bytes, dict[int, int]]:
    """Give a tensor's name, its bytes without its contents, and how many those are by field."""
    name, parts, contents = "", [], dict[int, int]()
    for number, wire, field, content, field_end in _fields(data, start, end):
        if number in _CONTENTS:
            more = 1 if number == _TEXTS else field_end - content
            contents[number] = contents.get(number, 0) + more
        else:
            parts.append(data[field:field_end])
        if number == _NAME and wire == 2:
            name = data[content:field_end].decode("utf-8", "replace")
    return name, b"".join(parts), contents


def _fields(data: Buffer, position: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Walk the fields of a message: number, wire type, start, start of the content, end."""
    while position < end:
        start = position
        tag, position = _read_varint(data, position, end)
        wire = tag & 7
        content = position
        if wire == 0:
            _, position = _read_varint(data, position, end)
        elif wire == 1:
            position += 8
        elif wire == 2:
            length, content = _read_varint(data, position, end)
            position = content + length
        elif wire == 5:
            position += 4
        else:
            raise CutShortError(f"no protobuf field at byte {start}")
        if position > end or tag >> 3 == 0:
            raise CutShortError(f"the field at byte {start} does not fit")
        yield tag >> 3, wire, start, content, position


def _read_varint(data: Buffer, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise CutShortError(f"no whole number at byte {position}")


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _tag(number: int) -> bytes:
    return _varint(number << 3 | 2)
