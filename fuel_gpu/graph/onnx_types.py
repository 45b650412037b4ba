"""Element types and shapes between ONNX protos and the arena."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import onnx

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import TensorType

DTYPE_NAMES: Final[dict[int, str]] = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "string",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
    17: "float8e4m3fn",
    18: "float8e4m3fnuz",
    19: "float8e5m2",
    20: "float8e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4e2m1",
    24: "float8e8m0",
    25: "uint2",
    26: "int2",
}
"""dtype name by TensorProto.DataType number (onnx.proto, message TensorProto)."""

DTYPE_NUMBERS: Final[dict[str, int]] = {name: number for number, name in DTYPE_NAMES.items()}


@dataclass(frozen=True, slots=True)
class PartialType:
    """What inference knows of a value: None marks a dtype, rank or dimension still unknown."""

    dtype: str | None = None
    shape: tuple[int | None, ...] | None = None
    is_sequence: bool = False

    def complete(self) -> TensorType | None:
        """Give the full type, or None while something is unknown."""
        if self.dtype is None or self.shape is None:
            return None
        known = tuple(d for d in self.shape if d is not None)
        return TensorType(self.dtype, known) if len(known) == len(self.shape) else None


UNKNOWN: Final = PartialType()


def dtype_name(number: int, where: str) -> str:
    """Name an ONNX element type.

    Raises
    ------
    ModelError
        If the number is no element type that is known here.
    """
    name = DTYPE_NAMES.get(number)
    if name is None:
        raise ModelError(
            f"{where} has element type {number}, which ONNX up to opset "
            f"{onnx.defs.onnx_opset_version()} does not define; export the model again"
        )
    return name


def partial_type(proto: onnx.TypeProto, where: str) -> PartialType:
    """Read a TypeProto; a sequence or an optional gives the type of its element."""
    kind = proto.WhichOneof("value")
    if kind == "sequence_type":
        inner = partial_type(proto.sequence_type.elem_type, where)
        return PartialType(inner.dtype, inner.shape, is_sequence=True)
    if kind == "optional_type":
        return partial_type(proto.optional_type.elem_type, where)
    if kind == "map_type":
        raise ModelError(
            f"{where} is a map, which has no place in device memory; "
            "export the model without it (for sklearn-onnx: the option zipmap=False)"
        )
    tensor = proto.sparse_tensor_type if kind == "sparse_tensor_type" else proto.tensor_type
    dtype = dtype_name(tensor.elem_type, where) if tensor.elem_type else None
    if not tensor.HasField("shape"):
        return PartialType(dtype)
    return PartialType(
        dtype,
        tuple(
            d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None
            for d in tensor.shape.dim
        ),
    )


def type_proto(dtype: str, shape: Sequence[int]) -> onnx.TypeProto:
    """Make a TypeProto of a dense tensor."""
    return onnx.helper.make_tensor_type_proto(DTYPE_NUMBERS[dtype], list(shape))
