"""FLOPs of operations that treat every element by itself."""

from functools import partial
from math import prod
from typing import Final

from fuel_gpu.kernels.operands import FlopFormula, Operands

TRANSCENDENTAL: Final = 8
"""FLOPs counted for one exp, log, sine, tanh, erf or power: a range reduction and a polynomial
of degree five or six. Division and square root count as one, as hardware has them."""

SOFTMAX: Final = 4 + TRANSCENDENTAL
"""FLOPs of softmax for one element: maximum, difference, exp, sum, division."""

FLOPS_PER_ELEMENT: Final[dict[str, int]] = {
    # copies and choices of bits: no arithmetic
    "Cast": 0,
    "CastLike": 0,
    "BitCast": 0,
    "Where": 0,
    "Dropout": 0,
    "Identity": 0,
    "EyeLike": 0,
    "Trilu": 0,
    # one operation
    "Abs": 1,
    "Neg": 1,
    "Sign": 1,
    "Ceil": 1,
    "Floor": 1,
    "Round": 1,
    "Reciprocal": 1,
    "Sqrt": 1,
    "Relu": 1,
    "Add": 1,
    "Sub": 1,
    "Mul": 1,
    "Div": 1,
    "Mod": 1,
    "Not": 1,
    "And": 1,
    "Or": 1,
    "Xor": 1,
    "BitShift": 1,
    "BitwiseAnd": 1,
    "BitwiseOr": 1,
    "BitwiseXor": 1,
    "BitwiseNot": 1,
    "Equal": 1,
    "Greater": 1,
    "GreaterOrEqual": 1,
    "Less": 1,
    "LessOrEqual": 1,
    "IsNaN": 1,
    "IsInf": 2,
    "PRelu": 2,
    "LeakyRelu": 2,
    "ThresholdedRelu": 1,
    "Clip": 2,
    "Shrink": 2,
    "Range": 2,
    "Affine": 2,
    "ImageScaler": 2,
    "HardSigmoid": 4,  # scale, shift, two clamps
    "HardSwish": 5,  # the same, times x
    "Softsign": 3,  # |x|, + 1, /
    # transcendental
    "Exp": TRANSCENDENTAL,
    "Log": TRANSCENDENTAL,
    "Sin": TRANSCENDENTAL,
    "Cos": TRANSCENDENTAL,
    "Tan": TRANSCENDENTAL,
    "Asin": TRANSCENDENTAL,
    "Acos": TRANSCENDENTAL,
    "Atan": TRANSCENDENTAL,
    "Sinh": TRANSCENDENTAL,
    "Cosh": TRANSCENDENTAL,
    "Asinh": TRANSCENDENTAL,
    "Acosh": TRANSCENDENTAL,
    "Atanh": TRANSCENDENTAL,
    "Tanh": TRANSCENDENTAL,
    "Erf": TRANSCENDENTAL,
    "Pow": TRANSCENDENTAL,
    "ScaledTanh": TRANSCENDENTAL + 2,
    "ParametricSoftplus": 2 * TRANSCENDENTAL + 3,
    "Sigmoid": TRANSCENDENTAL + 3,  # negate, exp, + 1, /
    "Elu": TRANSCENDENTAL + 2,
    "Selu": TRANSCENDENTAL + 3,
    "Celu": TRANSCENDENTAL + 4,
    "Softplus": 2 * TRANSCENDENTAL + 1,
    "Mish": 3 * TRANSCENDENTAL + 2,
    "Swish": TRANSCENDENTAL + 5,  # alpha x, sigmoid, times x
    "SwiGLU": TRANSCENDENTAL + 6,
    "HannWindow": TRANSCENDENTAL + 3,
    "HammingWindow": TRANSCENDENTAL + 3,
    "BlackmanWindow": 2 * TRANSCENDENTAL + 5,
    "Gelu": TRANSCENDENTAL + 4,  # x / sqrt 2, erf, + 1, times x, / 2
    # to and from quantised numbers: scale, round, shift, clamp
    "QuantizeLinear": 4,
    "DequantizeLinear": 2,
    "DynamicQuantizeLinear": 6,  # and the smallest and largest element
    # drawn by chance: a counter-based generator, about ten rounds of four operations
    "RandomUniform": 40,
    "RandomUniformLike": 40,
    "RandomNormal": 40 + 2 * TRANSCENDENTAL,
    "RandomNormalLike": 40 + 2 * TRANSCENDENTAL,
    "Bernoulli": 41,
    "RotaryEmbedding": 3,  # two products and a sum for each element
}


def per_element(operands: Operands, count: int) -> int:
    return count * operands.elements


def _variadic(operands: Operands) -> int:
    """Sum, Max, Min: one operation for each further input."""
    return (len(operands.inputs) - 1) * operands.elements


def _mean(operands: Operands) -> int:
    return len(operands.inputs) * operands.elements


def _per_input_element(operands: Operands, count: int) -> int:
    return count * prod(operands.inputs[0].shape)


FLOPS: Final[dict[str, FlopFormula]] = {
    **{op: partial(per_element, count=count) for op, count in FLOPS_PER_ELEMENT.items()},
    "Sum": _variadic,
    "Max": _variadic,
    "Min": _variadic,
    "Mean": _mean,
    "CumSum": partial(_per_input_element, count=1),
    "CumProd": partial(_per_input_element, count=1),
    "NonZero": partial(_per_input_element, count=1),
}
"""FLOPs by operator."""
