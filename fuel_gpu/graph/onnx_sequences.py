"""Sequences and optionals: the types of the tensors that they hold, followed one by one."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fuel_gpu.graph.arena import TensorType
from fuel_gpu.graph.onnx_values import Array, Value

Tensors = tuple[TensorType, ...]
Result = TensorType | Tensors | None
"""A tensor, a sequence of tensors, or nothing that can be known."""

SEQUENCE_OPS: Final = frozenset(
    {
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceInsert",
        "SequenceErase",
        "SequenceAt",
        "SplitToSequence",
        "ConcatFromSequence",
        "Optional",
        "OptionalGetElement",
    }
)
"""Operators that `sequence_output` knows."""


def sequence_output(
    op: str,
    attributes: Mapping[str, Any],
    inputs: Sequence[Value | None],
    opened: Sequence[Array | None],
) -> Result:
    """Give what an operator on sequences or optionals gives.

    Parameters
    ----------
    op, attributes
        The operator.
    inputs
        What it reads.
    opened
        The contents of each input, where known: positions and split sizes.
    """
    values = [v for v in inputs if v is not None]
    if op == "SequenceEmpty":
        return ()
    if not values:
        return None
    first = values[0]
    held = first.sequence
    if op in ("Optional", "OptionalGetElement"):
        return first.type if held is None else held
    if op == "SequenceConstruct":
        return tuple(v.type for v in values)
    if op == "SplitToSequence":
        return _split(attributes, first.type, opened[1] if len(inputs) > 1 else None, len(inputs))
    if held is None:
        return None
    where = opened[-1] if len(inputs) > 1 else None
    position = None if where is None else int(where.reshape(-1)[0])
    if op == "SequenceInsert":
        place = len(held) if position is None else position
        return (*held[:place], values[1].type, *held[place:])
    if op == "SequenceErase":
        place = (len(held) - 1 if position is None else position) % max(len(held), 1)
        return (*held[:place], *held[place + 1 :])
    if op == "SequenceAt":
        return _pick(held, position)
    return _concatenated(attributes, held)


def _split(
    attributes: Mapping[str, Any], data: TensorType, sizes: Array | None, inputs: int
) -> Result:
    axis = int(attributes.get("axis", 0)) % max(len(data.shape), 1)
    length = data.shape[axis]
    before, after = data.shape[:axis], data.shape[axis + 1 :]
    if inputs < 2:
        kept = (1,) if attributes.get("keepdims", 1) else ()
        return (TensorType(data.dtype, (*before, *kept, *after)),) * length
    if sizes is None:
        return None
    if sizes.ndim == 0:
        size = max(int(sizes), 1)
        parts = [min(size, length - start) for start in range(0, length, size)]
    else:
        parts = [int(s) for s in sizes]
    return tuple(TensorType(data.dtype, (*before, part, *after)) for part in parts)


def _pick(held: Tensors, position: int | None) -> Result:
    """Give the tensor at a position; at an unknown one, that of the most elements."""
    if not held:
        return None
    if position is not None and -len(held) <= position < len(held):
        return held[position]
    return max(held, key=lambda t: t.elements)


def _concatenated(attributes: Mapping[str, Any], held: Tensors) -> Result:
    if not held:
        return None
    axis, shape = int(attributes["axis"]), held[0].shape
    if attributes.get("new_axis"):
        place = axis % (len(shape) + 1)
        return TensorType(held[0].dtype, (*shape[:place], len(held), *shape[place:]))
    place = axis % len(shape)
    total = sum(t.shape[place] for t in held)
    return TensorType(held[0].dtype, (*shape[:place], total, *shape[place + 1 :]))
