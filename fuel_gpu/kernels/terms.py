"""How many terms an operation sums into one element: what its rounding error grows with."""

from collections.abc import Callable
from math import prod
from typing import Final

from fuel_gpu.kernels import costs_contrib, costs_products
from fuel_gpu.kernels.families import family_of
from fuel_gpu.kernels.operands import Operands


def summed_terms(operands: Operands) -> int:
    """Give the length of the longest sum behind an element of the output, at least 1."""
    op = operands.node.op
    if op in _VARIADIC:
        return max(len(operands.inputs) - 1, 1)
    count = _CONTRACTED.get(op) or _TERMS.get(family_of(op))
    return max(count(operands), 1) if count and operands.inputs else 1


def _reduced(operands: Operands) -> int:
    """Input elements for each output element; all along the axis for a running sum."""
    data = operands.inputs[0]
    if operands.node.op in ("CumSum", "CumProd"):
        return max(data.shape, default=1)
    return data.elements // max(operands.elements, 1)


def _pooled(operands: Operands) -> int:
    if operands.node.op.startswith("Global"):
        return prod(operands.inputs[0].shape[2:])
    window: list[int] = operands.attributes.get("kernel_shape", [1])
    return prod(window)


def _softmax(operands: Operands) -> int:
    """Everything from the axis on: what opset 12 and before sums, and no less than later ones."""
    shape = operands.inputs[0].shape
    axis = operands.integer("axis", -1)
    return prod(shape[axis:] if shape else ())


def _normalised(operands: Operands) -> int:
    """Elements that share a mean, at most: LRN's window, a scale and shift, else all but batch."""
    shape = operands.inputs[0].shape
    if operands.node.op == "BatchNormalization":
        return prod(shape) // max(shape[1], 1) if operands.integer("training_mode") else 1
    if operands.node.op == "LRN":
        return operands.integer("size", 1)
    if operands.node.op == "InstanceNormalization":
        return prod(shape[2:])
    if operands.node.op in ("GroupNormalization", "com.microsoft.GroupNorm"):
        groups = operands.integer("num_groups") or operands.integer("groups") or 1
        return prod(shape[1:]) // groups
    if operands.node.op == "MeanVarianceNormalization":
        return prod(shape)
    axis = operands.integer("axis", -1)
    return prod(shape[axis:] if shape else ())


def _scattered(operands: Operands) -> int:
    """All updates may meet in one element where they are reduced; else none is summed."""
    if operands.attributes.get("reduction", "none") in ("none", "max", "min"):
        return 1
    return operands.inputs[2].elements + 1


def _attention(operands: Operands) -> int:
    """The head's depth for the scores, then the keys for the weighted sum of values."""
    query = operands.inputs[0].shape
    heads = operands.integer("q_num_heads") or operands.integer("num_heads") or 1
    depth = query[-1] if len(query) == 4 else query[-1] // heads
    key = operands.at(1)
    keys = key.shape[-2] if key is not None and len(key.shape) > 2 else query[-2]
    past = operands.at(4)
    return depth + keys + (past.shape[-2] if past is not None and len(past.shape) > 2 else 0)


def _recurrent(operands: Operands) -> int:
    """Inputs, state and two biases of one gate in one step."""
    weight, recurrence = operands.inputs[1].shape, operands.inputs[2].shape
    return weight[2] + recurrence[2] + 2


def _resampled(operands: Operands) -> int:
    axes = max(len(operands.inputs[0].shape) - 2, 1)
    return int(4**axes)


def _transformed(operands: Operands) -> int:
    """Sums as deep as the transform is long, at most."""
    return max(operands.inputs[0].shape, default=1)


_CONTRACTED: Final = {**costs_products.CONTRACTED, **costs_contrib.CONTRACTED}

_VARIADIC: Final = frozenset({"Sum", "Mean"})

_TERMS: Final[dict[str, Callable[[Operands], int]]] = {
    "attention": _attention,
    "recurrent": _recurrent,
    "reduction": _reduced,
    "pooling": _pooled,
    "softmax": _softmax,
    "normalisation": _normalised,
    "resample": _resampled,
    "scatter": _scattered,
    "fourier": _transformed,
}
