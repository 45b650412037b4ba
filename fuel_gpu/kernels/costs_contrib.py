"""FLOPs of the operators that lie outside the ONNX standard: com.microsoft and ai.onnx.ml."""

from functools import partial
from typing import Final

from fuel_gpu.kernels.costs_elementwise import SOFTMAX, TRANSCENDENTAL, per_element
from fuel_gpu.kernels.costs_products import (
    attention_core,
    conv,
    gemm,
    gemm_k,
    matmul,
    matmul_k,
    window_products,
)
from fuel_gpu.kernels.costs_reductions import mean_variance, pool, root_mean_square, times_input
from fuel_gpu.kernels.operands import FlopFormula, Operands


def _fused_matmul(operands: Operands) -> int:
    scaled = operands.attributes.get("alpha", 1.0) != 1.0
    return (2 * matmul_k(operands) + int(scaled)) * operands.elements


def _matmul_nbits(operands: Operands) -> int:
    """Count the product, and scale and shift for each weight that is unpacked on the way."""
    k, n = operands.integer("K"), operands.integer("N")
    return 2 * k * operands.elements + 2 * k * n


def _attention_projected(operands: Operands, past_at: int = 4) -> int:
    """com.microsoft Attention: the projection to Q, K and V, then attention over them."""
    data, weight = operands.inputs[0], operands.inputs[1]
    batch, queries, _ = data.shape
    sizes = operands.attributes.get("qkv_hidden_sizes") or [weight.shape[1] // 3] * 3
    heads = operands.integer("num_heads", 1)
    past = operands.at(past_at)
    keys = queries + (past.shape[3] if past is not None else 0)
    projection = (2 * weight.shape[0] + 1) * batch * queries * weight.shape[1]
    core = attention_core(batch, heads, queries, keys, sizes[0] // heads, sizes[2] // heads)
    return projection + core


def _attention_multi_head(operands: Operands, grouped: bool = False) -> int:
    """com.microsoft MultiHeadAttention and GroupQueryAttention, after the projections."""
    heads = operands.integer("num_heads", 1)
    query = operands.inputs[0]
    batch, queries = query.shape[0], query.shape[1]
    kv_heads = operands.integer("kv_num_heads", heads)
    key = operands.at(1)
    if key is None:  # Q, K and V packed into the first input
        keys = queries
        packed = heads + 2 * kv_heads if grouped else 3 * heads
        depth = query.elements // max(batch * queries * packed, 1)
    else:
        keys = key.shape[2] if len(key.shape) == 4 else key.shape[1]
        depth = query.shape[2] // heads
    past = operands.at(3 if grouped else 6)
    keys += past.shape[2] if past is not None else 0
    return attention_core(batch, heads, queries, keys, depth, depth)


def _skip_layer_normalization(operands: Operands) -> int:
    """Count the residual sum, the bias if any, then layer normalisation with both parameters."""
    with_bias = operands.at(4) is not None
    return (1 + with_bias + 7) * operands.inputs[0].elements


def _skip_root_mean_square(operands: Operands) -> int:
    return (1 + 4) * operands.inputs[0].elements


def _embed_layer_normalization(operands: Operands) -> int:
    """Two or three embeddings summed, then layer normalisation."""
    return (2 + 7) * operands.elements


FLOPS_PER_ELEMENT: Final[dict[str, int]] = {
    "com.microsoft.Gelu": TRANSCENDENTAL + 4,
    "com.microsoft.QuickGelu": TRANSCENDENTAL + 5,
    "com.microsoft.FastGelu": TRANSCENDENTAL + 7,  # the tanh form, with x cubed
    "com.microsoft.BiasGelu": TRANSCENDENTAL + 5,
    "com.microsoft.BiasSplitGelu": TRANSCENDENTAL + 6,
    "com.microsoft.BiasAdd": 2,
    "com.microsoft.BiasDropout": 2,
    "com.microsoft.RotaryEmbedding": 3,
    "com.microsoft.QuantizeLinear": 4,
    "com.microsoft.DequantizeLinear": 2,
    "com.microsoft.QLinearAdd": 9,
    "com.microsoft.QLinearMul": 9,
    "com.microsoft.QLinearSigmoid": TRANSCENDENTAL + 9,
    "com.microsoft.QLinearLeakyRelu": 8,
    "com.microsoft.QLinearConcat": 6,  # each input scaled anew
    "com.microsoft.QLinearSoftmax": SOFTMAX + 6,
    "ai.onnx.ml.Scaler": 2,
    "ai.onnx.ml.Imputer": 1,
    "ai.onnx.ml.Binarizer": 1,
    "ai.onnx.ml.Normalizer": 3,
}
"""FLOPs of one element of the output, by operator with its domain."""

_MICROSOFT: Final[dict[str, FlopFormula]] = {
    # products
    "FusedConv": conv,
    "FusedGemm": gemm,
    "FusedMatMul": _fused_matmul,
    "TransposeMatMul": _fused_matmul,
    "FusedMatMulActivation": _fused_matmul,
    "GemmFastGelu": partial(matmul, extra=TRANSCENDENTAL + 8),
    "QGemm": gemm,
    "MatMulNBits": _matmul_nbits,
    "MatMulIntegerToFloat": partial(matmul, extra=2),
    "DynamicQuantizeMatMul": partial(matmul, extra=2),
    "Attention": _attention_projected,
    "QAttention": partial(_attention_projected, past_at=8),
    "MultiHeadAttention": _attention_multi_head,
    "GroupQueryAttention": partial(_attention_multi_head, grouped=True),
    # pooling
    "QLinearAveragePool": pool,
    "QLinearGlobalAveragePool": partial(times_input, count=1),
    # normalisation
    "SimplifiedLayerNormalization": root_mean_square,
    "SkipLayerNormalization": _skip_layer_normalization,
    "SkipSimplifiedLayerNormalization": _skip_root_mean_square,
    "EmbedLayerNormalization": _embed_layer_normalization,
    "GroupNorm": mean_variance,
    "SkipGroupNorm": _skip_layer_normalization,
}

_MACHINE_LEARNING: Final[dict[str, FlopFormula]] = {
    "LinearRegressor": matmul,
    "LinearClassifier": lambda o: 2 * o.inputs[0].shape[-1] * o.outputs[-1].elements,
}

CONTRACTED: Final[dict[str, FlopFormula]] = {
    "com.microsoft.FusedConv": lambda o: window_products(o.inputs[1]),
    "com.microsoft.FusedGemm": gemm_k,
    "com.microsoft.FusedMatMul": matmul_k,
    "com.microsoft.FusedMatMulActivation": matmul_k,
    "com.microsoft.TransposeMatMul": matmul_k,
    "com.microsoft.GemmFastGelu": matmul_k,
    "com.microsoft.MatMulNBits": lambda o: o.integer("K", 1),
    "ai.onnx.ml.LinearRegressor": matmul_k,
    "ai.onnx.ml.LinearClassifier": matmul_k,
}
"""How many products are summed into one element of the first output, by operator."""

FLOPS: Final[dict[str, FlopFormula]] = {
    "SimplifiedLayerNormalization": root_mean_square,  # onnxruntime writes it without a domain
    **{op: partial(per_element, count=count) for op, count in FLOPS_PER_ELEMENT.items()},
    **{f"com.microsoft.{op}": formula for op, formula in _MICROSOFT.items()},
    **{f"ai.onnx.ml.{op}": formula for op, formula in _MACHINE_LEARNING.items()},
}
"""FLOPs by operator, with its domain."""
