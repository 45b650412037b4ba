"""What a model stores: whether a tensor holds as much as its shape says, and where it may lie."""

from collections.abc import Mapping
from pathlib import PureWindowsPath
from typing import Final

import onnx
from onnx.external_data_helper import uses_external_data

from fuel_gpu.dtypes import ITEMSIZE_BITS
from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import TensorType
from fuel_gpu.graph.onnx_types import dtype_name
from fuel_gpu.numbers import I64_MAX

_RAW: Final = 9
_FLOATS: Final = 4
_INT32S: Final = 5
_STRINGS: Final = 6
_INT64S: Final = 7
_DOUBLES: Final = 10
_UINT64S: Final = 11

_LIST: Final = {
    "float32": _FLOATS,
    "complex64": _FLOATS,
    "float64": _DOUBLES,
    "complex128": _DOUBLES,
    "int64": _INT64S,
    "uint32": _UINT64S,
    "uint64": _UINT64S,
    "string": _STRINGS,
}
"""The field of TensorProto that lists a dtype's elements; the others are in int32_data."""

_ITEM_BYTES: Final = {_FLOATS: 4, _DOUBLES: 8, _STRINGS: 1}
"""Bytes of one item; a number in any other list takes 1 to 10."""

_VARINT_BYTES: Final = 10


def stored_type(
    tensor: onnx.TensorProto, left_out: Mapping[int, int] | None, where: str
) -> TensorType:
    """Give the type of a stored tensor, after holding what is stored to it.

    Contents that are missing altogether (weights that were stripped, or lie in a file that is not
    here) are no fault: planning does not need them.

    Parameters
    ----------
    tensor
        The tensor, with its contents or without.
    left_out
        The bytes of each field of contents that was left out when the file was read (texts are
        counted), or None if none was.
    where
        What messages call it.

    Raises
    ------
    ModelError
        If a size is negative, the contents are more or fewer than the shape says, or external
        data lies before its file's start or outside of the model's folder.
    """
    dims = tuple(tensor.dims)
    if any(d < 0 for d in dims):
        raise _damaged(where, f"shape {list(dims)}, with a negative size")
    tensor_type = TensorType(dtype_name(tensor.data_type, where), dims)
    if uses_external_data(tensor):
        _check_external(tensor, tensor_type, where)
        return tensor_type
    held = _held(tensor) if left_out is None else left_out
    if not any(held.values()):
        return tensor_type
    if held.get(_RAW):
        least = most = tensor_type.bytes
        found, unit = held[_RAW], "bytes"
    else:
        field = _LIST.get(tensor_type.dtype, _INT32S)
        items = _items(tensor_type)
        found, unit = held.get(field, 0), "bytes of its elements"
        least = items * _ITEM_BYTES.get(field, 1)
        most = items * _ITEM_BYTES.get(field, 1 if left_out is None else _VARINT_BYTES)
    if tensor_type.dtype == "string" and held.get(_RAW):
        raise _damaged(where, "texts in raw_data, which holds only numbers")
    if not least <= found <= most:
        raise _damaged(
            where,
            f"{found} {unit} for {tensor_type.dtype} of shape {list(dims)}, which takes {least}",
        )
    return tensor_type


def _held(tensor: onnx.TensorProto) -> dict[int, int]:
    """Bytes by field of contents; of a list without a fixed item size, its length."""
    return {
        _RAW: len(tensor.raw_data),
        _FLOATS: 4 * len(tensor.float_data),
        _INT32S: len(tensor.int32_data),
        _STRINGS: len(tensor.string_data),
        _INT64S: len(tensor.int64_data),
        _DOUBLES: 8 * len(tensor.double_data),
        _UINT64S: len(tensor.uint64_data),
    }


def _items(tensor_type: TensorType) -> int:
    """Items of a typed list: two for a complex number, one for all that share a byte."""
    if tensor_type.dtype.startswith("complex"):
        return 2 * tensor_type.elements
    if ITEMSIZE_BITS[tensor_type.dtype] < 8:
        return tensor_type.bytes
    return tensor_type.elements


def _check_external(tensor: onnx.TensorProto, tensor_type: TensorType, where: str) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if not location:
        raise _damaged(where, "external data without a location")
    if _leaves_folder(location):
        raise ModelError(
            f"{where} points to external data at {location!r}, outside the model's folder, where "
            "no model may read: do not trust it; export it again with its data beside it"
        )
    for key in ("offset", "length"):
        value = entries.get(key, "0")
        if not (value.isascii() and value.isdecimal() and int(value) <= I64_MAX):
            raise _damaged(where, f"external data of {key} {value!r}, which is no count of bytes")
    length = int(entries.get("length", tensor_type.bytes))
    if length != tensor_type.bytes:
        raise _damaged(
            where,
            f"external data of {length} bytes for {tensor_type.dtype} of shape "
            f"{list(tensor_type.shape)}, which takes {tensor_type.bytes}",
        )


def _leaves_folder(location: str) -> bool:
    """Whether a path is absolute, or climbs above where it starts, on any system."""
    path = PureWindowsPath(location)  # knows drives, and both kinds of slashes
    depth = 0
    for part in path.parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return bool(path.drive or path.root)


def _damaged(where: str, what: str) -> ModelError:
    return ModelError(f"{where} has {what}: the model is damaged; export it again")
