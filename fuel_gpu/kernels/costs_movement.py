"""Bytes of operations that move data: those that read only part of what they are given."""

from typing import Final

from fuel_gpu.graph.arena import TensorType
from fuel_gpu.kernels.operands import ByteFormula, FlopFormula, Operands

NO_FLOPS: Final = frozenset(
    {
        "Transpose",
        "Concat",
        "Split",
        "Slice",
        "Gather",
        "GatherElements",
        "GatherND",
        "Scatter",
        "ScatterElements",
        "ScatterND",
        "TensorScatter",
        "Pad",
        "Tile",
        "Expand",
        "DepthToSpace",
        "SpaceToDepth",
        "Reshape",
        "Flatten",
        "Squeeze",
        "Unsqueeze",
        "ReverseSequence",
        "CenterCropPad",
        "Compress",
        "OneHot",
        "Constant",
        "ConstantOfShape",
        "Col2Im",
        "Im2Col",
        "Shape",
        "Size",
        "SequenceAt",
        "SequenceConstruct",
        "SequenceInsert",
        "SequenceErase",
        "SequenceEmpty",
        "SequenceLength",
        "SplitToSequence",
        "ConcatFromSequence",
        "Optional",
        "OptionalGetElement",
        "OptionalHasElement",
    }
)
"""Operators that compute nothing: their price is their bytes."""


def _bytes(types: tuple[TensorType, ...]) -> int:
    return sum(t.bytes for t in types)


def _reads_what_it_gives(operands: Operands) -> int:
    """Gather and Slice read as much of the data as they write, and their indices."""
    return 2 * _bytes(operands.outputs) + _bytes(operands.inputs[1:])


def _reads_nothing(operands: Operands) -> int:
    """Only the output is written: the inputs are shapes."""
    return _bytes(operands.outputs)


def _scatter(operands: Operands) -> int:
    """Copy the data, read indices and updates, write the updates over the copy."""
    data, indices, updates = operands.inputs[:3]
    return 2 * data.bytes + indices.bytes + 2 * updates.bytes


BYTES: Final[dict[str, ByteFormula]] = {
    "Gather": _reads_what_it_gives,
    "GatherElements": _reads_what_it_gives,
    "GatherND": _reads_what_it_gives,
    "Slice": _reads_what_it_gives,
    "CenterCropPad": _reads_what_it_gives,
    "SequenceAt": _reads_what_it_gives,
    "Scatter": _scatter,
    "ScatterElements": _scatter,
    "ScatterND": _scatter,
    "RandomNormalLike": _reads_nothing,
    "RandomUniformLike": _reads_nothing,
    "EyeLike": _reads_nothing,
    "ConstantOfShape": _reads_nothing,
    "Shape": _reads_nothing,
    "Size": _reads_nothing,
}
"""Bytes by operator, where they are not each input and output once."""

FLOPS: Final[dict[str, FlopFormula]] = dict.fromkeys(NO_FLOPS, lambda operands: 0)
"""FLOPs by operator: none."""
