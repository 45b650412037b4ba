"""FLOPs of normalisations, softmax, pooling, reductions, sorting and resampling."""

from functools import partial
from math import prod
from typing import Final

from fuel_gpu.kernels.costs_elementwise import SOFTMAX, TRANSCENDENTAL
from fuel_gpu.kernels.operands import FlopFormula, Operands


def times_input(operands: Operands, count: int) -> int:
    return count * operands.inputs[0].elements


def _times_output(operands: Operands, count: int) -> int:
    return count * operands.elements


def _batch_normalization(operands: Operands) -> int:
    """One scale and one shift an element; in training the mean and the variance as well."""
    training = operands.integer("training_mode")
    return (7 if training else 2) * operands.elements


def mean_variance(operands: Operands) -> int:
    """Mean 1, centring 1, squares summed 2, times 1/sigma 1; scale and bias 1 each if given."""
    return (5 + min(len(operands.inputs) - 1, 2)) * operands.inputs[0].elements


def root_mean_square(operands: Operands) -> int:
    """Squares summed 2, times 1/rms 1, scale 1."""
    return (3 + min(len(operands.inputs) - 1, 1)) * operands.inputs[0].elements


def _local_response(operands: Operands) -> int:
    """Square, window sum, scale and bias, power, division (AlexNet's LRN)."""
    window = operands.integer("size", 1)
    return (1 + window + 2 + TRANSCENDENTAL + 1) * operands.elements


def pool(operands: Operands, count: int = 1) -> int:
    """One operation for each element of each window; padding counts as elements."""
    window: list[int] = operands.attributes.get("kernel_shape", [1])
    return count * prod(window) * operands.elements


def _topk(operands: Operands) -> int:
    """Count a heap of K: about log2 K comparisons an element, and one to look at it."""
    axis = operands.integer("axis", -1)
    kept = operands.outputs[0].shape[axis] if operands.outputs[0].shape else 1
    return operands.inputs[0].elements * (1 + max(kept - 1, 0).bit_length())


def _sort(operands: Operands) -> int:
    """N log2 N comparisons."""
    count = operands.inputs[0].elements
    return count * max(count - 1, 0).bit_length()


def _suppression(operands: Operands) -> int:
    """NonMaxSuppression: every box against each kept one, 12 operations for their overlap.

    The output's rows are the most that can be kept, over all classes.
    """
    return 12 * operands.inputs[0].shape[1] * operands.outputs[0].shape[0]


def _resample(operands: Operands) -> int:
    """Two operations for each neighbour read: 1 (nearest: none), 2 or 4 along a resized axis."""
    neighbours = {"nearest": 0, "linear": 2, "cubic": 4}.get(operands.attributes.get("mode", ""), 0)
    source, target = operands.inputs[0].shape, operands.outputs[0].shape
    axes = sum(a != b for a, b in zip(source, target, strict=True))
    each: int = 2 * neighbours**axes if neighbours else 0
    return each * operands.elements


def _determinant(operands: Operands) -> int:
    """2/3 n³ for the LU factors of each n by n matrix."""
    data = operands.inputs[0]
    return 2 * data.elements * data.shape[-1] // 3


def _multinomial(operands: Operands) -> int:
    """A softmax and a running sum over the classes, then a draw and a search for each sample."""
    classes = operands.inputs[0].shape[-1]
    each = 40 + max(classes - 1, 0).bit_length()
    return (SOFTMAX + 1) * operands.inputs[0].elements + each * operands.elements


def _grid_sample(operands: Operands) -> int:
    axes = len(operands.outputs[0].shape) - 2
    mode = operands.attributes.get("mode", "linear")
    neighbours = {"nearest": 1, "cubic": 4, "bicubic": 4}.get(mode, 2)
    each: int = 2 * neighbours**axes + 4 * axes
    return each * operands.elements


def _region_pool(operands: Operands) -> int:
    """RoiAlign: four neighbours, weight and sum each, for every sample of every bin."""
    ratio = operands.integer("sampling_ratio") or 2
    return 8 * ratio * ratio * operands.elements


def _fourier(operands: Operands) -> int:
    """5 N log2 N for each transform of length N (Cooley and Tukey's radix-2 count)."""
    data = operands.inputs[0]
    axis = operands.integer("axis", -2)
    length = max(data.shape[axis], 1) if data.shape else 1
    signals = operands.outputs[0].elements // 2
    return 5 * signals * (length - 1).bit_length()


FLOPS: Final[dict[str, FlopFormula]] = {
    # normalisation
    "BatchNormalization": _batch_normalization,
    "InstanceNormalization": mean_variance,
    "GroupNormalization": mean_variance,
    "LayerNormalization": mean_variance,
    "MeanVarianceNormalization": mean_variance,
    "RMSNormalization": root_mean_square,
    "LRN": _local_response,
    "LpNormalization": partial(times_input, count=3),
    # softmax
    "Softmax": partial(times_input, count=SOFTMAX),
    "LogSoftmax": partial(times_input, count=SOFTMAX),
    "Hardmax": partial(times_input, count=1),
    "SoftmaxCrossEntropyLoss": partial(times_input, count=SOFTMAX),
    "NegativeLogLikelihoodLoss": partial(times_input, count=1),
    # pooling
    "MaxPool": pool,
    "AveragePool": pool,
    "LpPool": partial(pool, count=2),
    "GlobalMaxPool": partial(times_input, count=1),
    "GlobalAveragePool": partial(times_input, count=1),
    "GlobalLpPool": partial(times_input, count=2),
    "MaxRoiPool": partial(times_input, count=1),
    "RoiAlign": _region_pool,
    "MaxUnpool": partial(times_input, count=0),
    # reductions
    "ReduceSum": partial(times_input, count=1),
    "ReduceMean": partial(times_input, count=1),
    "ReduceMax": partial(times_input, count=1),
    "ReduceMin": partial(times_input, count=1),
    "ReduceProd": partial(times_input, count=1),
    "ReduceL1": partial(times_input, count=2),
    "ReduceL2": partial(times_input, count=2),
    "ReduceSumSquare": partial(times_input, count=2),
    "ReduceLogSum": partial(times_input, count=1),
    "ReduceLogSumExp": partial(times_input, count=3 + TRANSCENDENTAL),
    "ArgMax": partial(times_input, count=1),
    "ArgMin": partial(times_input, count=1),
    # sorting and choosing
    "TopK": _topk,
    "Unique": _sort,
    "NonMaxSuppression": _suppression,
    # resampling and transforms
    "Resize": _resample,
    "Upsample": _resample,
    "GridSample": _grid_sample,
    "AffineGrid": partial(times_input, count=0),
    "Det": _determinant,
    "Multinomial": _multinomial,
    "MelWeightMatrix": partial(_times_output, count=6),
    "DFT": _fourier,
    "STFT": _fourier,
}
"""FLOPs by operator."""
