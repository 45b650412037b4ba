"""Upper bounds of shapes that depend on data: NonZero, TopK with a computed K, and the like."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from fuel_gpu.graph.onnx_types import PartialType
from fuel_gpu.graph.onnx_values import Array, Value

Inputs = Sequence[Value | None]


def bounded_outputs(
    op: str, attributes: dict[str, Any], inputs: Inputs, found: Sequence[PartialType]
) -> list[PartialType]:
    """Replace open dimensions by the most that they can be, where the operator bounds them."""
    bound = _BOUNDS.get(op)
    if bound is None or not inputs or inputs[0] is None:
        return list(found)
    shapes = bound(attributes, inputs, found)
    return [
        PartialType(known.dtype, _fill(known.shape, shape))
        for known, shape in zip(found, shapes, strict=True)
    ]


def _fill(
    known: tuple[int | None, ...] | None, most: tuple[int, ...] | None
) -> tuple[int | None, ...] | None:
    if most is None or known is None:
        return most if known is None else known
    if len(known) != len(most):
        return known
    return tuple(m if k is None else k for k, m in zip(known, most, strict=True))


Shapes = list[tuple[int, ...] | None]


def _shape(inputs: Inputs, position: int = 0) -> tuple[int, ...]:
    value = inputs[position] if position < len(inputs) else None
    return value.type.shape if value is not None else ()


def _contents(inputs: Inputs, position: int) -> Array | None:
    value = inputs[position] if position < len(inputs) else None
    return value.contents if value is not None else None


def _every_element(
    attributes: dict[str, Any], inputs: Inputs, found: Sequence[PartialType]
) -> Shapes:
    """NonZero: one column for each element."""
    assert inputs[0] is not None
    return [(max(len(_shape(inputs)), 1), inputs[0].type.elements)]


def _like_data(attributes: dict[str, Any], inputs: Inputs, found: Sequence[PartialType]) -> Shapes:
    """Slice, TopK, Split and CenterCropPad with computed limits: no more than the data."""
    return [_shape(inputs)] * len(found)


def _compress(attributes: dict[str, Any], inputs: Inputs, found: Sequence[PartialType]) -> Shapes:
    assert inputs[0] is not None
    data, condition = _shape(inputs), _shape(inputs, 1)
    axis = attributes.get("axis")
    if axis is None:
        return [(min(inputs[0].type.elements, *condition),)]
    kept = min(data[axis], *condition)
    return [tuple(kept if k == axis % len(data) else d for k, d in enumerate(data))]


def _unique(attributes: dict[str, Any], inputs: Inputs, found: Sequence[PartialType]) -> Shapes:
    assert inputs[0] is not None
    data, axis = _shape(inputs), attributes.get("axis")
    elements = inputs[0].type.elements
    if axis is None:
        return [(elements,)] * len(found)
    return [data, *[(data[axis],)] * (len(found) - 1)]


def _boxes(attributes: dict[str, Any], inputs: Inputs, found: Sequence[PartialType]) -> Shapes:
    """NonMaxSuppression: the most boxes of a class, for every class of every image."""
    batch, classes, boxes = _shape(inputs, 1)
    most = _contents(inputs, 2)
    kept = boxes if most is None else min(boxes, int(most.reshape(-1)[0]))
    return [(batch * classes * kept, 3)]


_BOUNDS: Final[dict[str, Callable[[dict[str, Any], Inputs, Sequence[PartialType]], Shapes]]] = {
    "NonZero": _every_element,
    "Slice": _like_data,
    "TopK": _like_data,
    "Split": _like_data,
    "Compress": _compress,
    "Unique": _unique,
    "NonMaxSuppression": _boxes,
}
