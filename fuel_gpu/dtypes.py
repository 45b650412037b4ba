"""Element types by name, their sizes, and how many bits of mantissa each computes with."""

from typing import Final

from fuel_gpu.errors import UsageError

ITEMSIZE_BITS: Final[dict[str, int]] = {
    "float64": 64,
    "float32": 32,
    "float16": 16,
    "bfloat16": 16,
    "float8e4m3fn": 8,
    "float8e4m3fnuz": 8,
    "float8e5m2": 8,
    "float8e5m2fnuz": 8,
    "float8e8m0": 8,
    "float4e2m1": 4,
    "int64": 64,
    "int32": 32,
    "int16": 16,
    "int8": 8,
    "int4": 4,
    "int2": 2,
    "uint64": 64,
    "uint32": 32,
    "uint16": 16,
    "uint8": 8,
    "uint4": 4,
    "uint2": 2,
    "bool": 8,
    "complex64": 64,
    "complex128": 128,
    "string": 64,  # a pointer: the text itself lies elsewhere
}
"""Bits of one element of a tensor, by dtype name."""

UNIT_ROUNDOFF: Final[dict[str, float]] = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "tf32": 2.0**-11,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
}
"""Half the distance from 1 to the next number, by compute dtype (tf32 stores 10 bits)."""


def tensor_bytes(dtype: str, elements: int) -> int:
    """Bytes that `elements` of `dtype` take, packed, rounded up to a whole byte.

    Raises
    ------
    UsageError
        If `dtype` is not a known element type.
    """
    bits = ITEMSIZE_BITS.get(dtype)
    if bits is None:
        raise UsageError(f"unknown dtype {dtype!r}; known are {', '.join(sorted(ITEMSIZE_BITS))}")
    return (elements * bits + 7) // 8
