"""FLOPs of sums of products: convolutions, matrix products, attention; a multiply-add is two."""

from functools import partial
from math import prod
from typing import Final

from fuel_gpu.graph.arena import TensorType
from fuel_gpu.kernels.costs_elementwise import SOFTMAX, TRANSCENDENTAL
from fuel_gpu.kernels.operands import FlopFormula, Operands


def window_products(weight: TensorType) -> int:
    """Products for one output element: input channels of a group times the kernel's window."""
    return prod(weight.shape[1:])


def conv(operands: Operands, weight: int = 1, bias: int = 2) -> int:
    """2 · outputs · (C/groups) · window, plus one addition for a bias; padding counts as data.

    `weight` and `bias` are the positions of those inputs.
    """
    with_bias = operands.at(bias) is not None
    return (2 * window_products(operands.inputs[weight]) + int(with_bias)) * operands.elements


def _conv_transpose(operands: Operands) -> int:
    """Every input element is multiplied into (C_out/groups) · window outputs."""
    data, weight = operands.inputs[0], operands.inputs[1]
    bias = operands.elements if len(operands.inputs) > 2 else 0
    return 2 * data.elements * window_products(weight) + bias


def _deform_conv(operands: Operands) -> int:
    """Count the convolution, and bilinear sampling (4 multiply-adds) of each value it reads."""
    data, weight = operands.inputs[0], operands.inputs[1]
    positions = operands.elements // max(weight.shape[0], 1)
    samples = positions * data.shape[1] * prod(weight.shape[2:])
    return 2 * window_products(weight) * operands.elements + 8 * samples


def gemm_k(operands: Operands) -> int:
    a = operands.inputs[0]
    return a.shape[0] if operands.integer("transA") else a.shape[-1]


def gemm(operands: Operands) -> int:
    """2 · M · N · K, plus one for each element that C, alpha or beta touches."""
    scaled = operands.attributes.get("alpha", 1.0) != 1.0
    bias = operands.at(2) is not None
    beta = bias and operands.attributes.get("beta", 1.0) != 1.0
    each = 2 * gemm_k(operands) + int(bias) + int(scaled) + int(beta)
    return each * operands.elements


def matmul_k(operands: Operands) -> int:
    """Give the contracted length: the last dimension of A; batch dimensions broadcast."""
    a = operands.inputs[0]
    if not a.shape:
        return 0
    if operands.integer("transA") and len(a.shape) > 1:
        return a.shape[0] if operands.integer("transBatchA") else a.shape[-2]
    return a.shape[-1]


def matmul(operands: Operands, extra: int = 0) -> int:
    return (2 * matmul_k(operands) + extra) * operands.elements


def einsum_terms(equation: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[list[str], str]:
    """Read an equation into one index string per operand and one for the output.

    An ellipsis becomes capital letters that count from its last dimension, so that they
    broadcast; without an arrow the output holds the indices that occur once, in alphabetical
    order, after the ellipsis.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = []
    widest = ""
    for term, shape in zip(left.split(","), shapes, strict=True):
        dots = len(shape) - len(term.replace("...", ""))
        letters = "".join(chr(0x391 + k) for k in range(dots))[::-1]
        widest = max(widest, letters, key=len)
        terms.append(term.replace("...", letters))
    if arrow:
        return terms, right.replace("...", widest)
    joined = "".join(terms)
    once = sorted(c for c in set(joined) if joined.count(c) == 1 and c not in widest)
    return terms, widest + "".join(once)


def _einsum(operands: Operands) -> int:
    """Take operands pairwise from the left, as runtimes do.

    Two for each product that is summed, one for each where nothing is summed.
    """
    shapes = tuple(t.shape for t in operands.inputs)
    terms, output = einsum_terms(str(operands.attributes["equation"]), shapes)
    extent: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for index, size in zip(term, shape, strict=True):
            extent[index] = max(extent.get(index, 1), size)
    if len(terms) == 1:
        summed = set(terms[0]) - set(output)
        return prod(extent[i] for i in set(terms[0])) if summed else 0
    total, current = 0, set(terms[0])
    for k, term in enumerate(terms[1:], start=1):
        joined = current | set(term)
        wanted = set(output).union(*terms[k + 1 :])
        current = joined & wanted
        total += (2 if joined - wanted else 1) * prod(extent[i] for i in joined)
    return total


def _einsum_k(operands: Operands) -> int:
    shapes = tuple(t.shape for t in operands.inputs)
    terms, output = einsum_terms(str(operands.attributes["equation"]), shapes)
    extent: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        extent.update(zip(term, shape, strict=True))
    return prod(size for index, size in extent.items() if index not in output)


def attention_core(
    batch: int, heads: int, queries: int, keys: int, depth: int, value_depth: int
) -> int:
    """Q·Kᵀ, its scaling, the softmax, and the product with V; a causal mask saves nothing."""
    scores = batch * heads * queries * keys
    return scores * (2 * depth + 1 + SOFTMAX + 2 * value_depth)


def _heads_first(tensor: TensorType, heads: int) -> tuple[int, int, int, int]:
    """(batch, heads, length, depth) of a 4-D tensor, or of a 3-D one with heads in its width."""
    if len(tensor.shape) == 4:
        return tensor.shape[0], tensor.shape[1], tensor.shape[2], tensor.shape[3]
    batch, length, width = tensor.shape
    return batch, heads, length, width // max(heads, 1)


def _linear_attention(operands: Operands) -> int:
    """ONNX LinearAttention: k·vᵀ added into a (dk, dv) state and qᵀ read from it, each token.

    A gate multiplies the state once more; a delta rule reads it once more before it writes.
    """
    batch, tokens, width = operands.inputs[0].shape
    heads = operands.integer("q_num_heads", 1)
    kv_heads = operands.integer("kv_num_heads", heads)
    value_width = operands.inputs[2].shape[2] // kv_heads
    state = width // heads * value_width
    rule = str(operands.attributes.get("update_rule", "linear"))
    written = 2 + (1 if "gated" in rule else 0) + (2 if "delta" in rule else 0)
    return batch * tokens * state * (kv_heads * written + heads * 2)


def _causal_conv(operands: Operands) -> int:
    """ONNX CausalConvWithState: one kernel a channel, and Swish if it is asked for."""
    data, weight = operands.inputs[0], operands.inputs[1]
    activation = str(operands.attributes.get("activation", "none"))
    swish = TRANSCENDENTAL + 4 if activation in ("silu", "swish") else 0
    bias = operands.at(2) is not None
    return (2 * window_products(weight) + int(bias) + swish) * data.elements


def _attention(operands: Operands) -> int:
    """ONNX Attention: Q (B, Hq, Sq, D), K and V with Hkv heads shared by groups of queries."""
    heads = operands.integer("q_num_heads", 1)
    kv_heads = operands.integer("kv_num_heads", heads)
    batch, heads, queries, depth = _heads_first(operands.inputs[0], heads)
    _, _, keys, _ = _heads_first(operands.inputs[1], kv_heads)
    _, _, _, value_depth = _heads_first(operands.inputs[2], kv_heads)
    past = operands.at(4)
    keys += past.shape[2] if past is not None else 0
    return attention_core(batch, heads, queries, keys, depth, value_depth)


FLOPS: Final[dict[str, FlopFormula]] = {
    "Conv": conv,
    "ConvInteger": partial(conv, bias=4),  # it has none
    "QLinearConv": partial(conv, weight=3, bias=8),
    "ConvTranspose": _conv_transpose,
    "DeformConv": _deform_conv,
    "Gemm": gemm,
    "MatMul": matmul,
    "MatMulInteger": matmul,
    "QLinearMatMul": partial(matmul, extra=4),
    "Einsum": _einsum,
    "Attention": _attention,
    "LinearAttention": _linear_attention,
    "CausalConvWithState": _causal_conv,
}
"""FLOPs by operator."""

CONTRACTED: Final[dict[str, FlopFormula]] = {
    "Conv": lambda o: window_products(o.inputs[1]),
    "ConvInteger": lambda o: window_products(o.inputs[1]),
    "QLinearConv": lambda o: window_products(o.inputs[3]),
    "ConvTranspose": lambda o: o.inputs[1].shape[0] * prod(o.inputs[1].shape[2:]),
    "DeformConv": lambda o: window_products(o.inputs[1]),
    "CausalConvWithState": lambda o: window_products(o.inputs[1]),
    "Gemm": gemm_k,
    "MatMul": matmul_k,
    "MatMulInteger": matmul_k,
    "QLinearMatMul": matmul_k,
    "Einsum": _einsum_k,
}
"""How many products are summed into one element of the first output, by operator."""
