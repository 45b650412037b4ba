"""Which ONNX operators only give their input another shape, so that no byte moves."""

from collections.abc import Mapping
from typing import Any, Final

from fuel_gpu.graph.arena import TensorType

_ALWAYS: Final = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"})
_ONE_INPUT_IS_IDENTITY: Final = frozenset({"Concat", "Sum", "Max", "Min", "Mean"})


def is_view(
    op: str,
    attributes: Mapping[str, Any],
    inputs: tuple[TensorType, ...],
    output: TensorType,
    outputs_used: int,
) -> bool:
    """Tell whether an operator shares the bytes of its first input.

    `inputs` are the types of the inputs present, in order. Dropout counts as at inference.
    """
    if not inputs or inputs[0].dtype != output.dtype or inputs[0].elements != output.elements:
        return False
    if op in _ALWAYS:
        return True
    if op in _ONE_INPUT_IS_IDENTITY:
        return len(inputs) == 1
    if op == "Dropout":
        return outputs_used <= 1
    if op in ("Cast", "CastLike", "Expand"):
        return inputs[0].shape == output.shape
    if op == "Transpose":
        return _keeps_order(attributes.get("perm"), inputs[0].shape)
    return False


def _keeps_order(perm: list[int] | None, shape: tuple[int, ...]) -> bool:
    """Whether a permutation moves only dimensions of size 1."""
    order = range(len(shape))[::-1] if perm is None else perm
    moved = [axis for axis in order if shape[axis] != 1]
    return moved == sorted(moved)
