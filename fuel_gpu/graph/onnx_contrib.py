"""Output types of operators outside the ONNX standard, and of those that it gives no inference.

com.microsoft: the operators that onnxruntime's optimiser writes into models; shapes as its
operator documentation (ContribOperators.md) states them. ai.onnx.ml: the operators of classical
models that the onnx library infers nothing for.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fuel_gpu.graph.arena import TensorType
from fuel_gpu.graph.onnx_types import UNKNOWN, PartialType

Inputs = Sequence[TensorType | None]
Rule = Callable[[Mapping[str, Any], Inputs], list[PartialType]]

STANDARD_TWINS: Final[dict[str, str]] = {
    "com.microsoft.FusedConv": "Conv",
    "com.microsoft.FusedGemm": "Gemm",
    "com.microsoft.Pad": "Pad",
    "com.microsoft.Trilu": "Trilu",
    "com.microsoft.GatherND": "GatherND",
    "com.microsoft.Unique": "Unique",
    "com.microsoft.QuantizeLinear": "QuantizeLinear",
    "com.microsoft.DequantizeLinear": "DequantizeLinear",
}
"""Operators whose shapes are those of a standard operator with the same inputs."""


def contrib_outputs(
    op: str, attributes: Mapping[str, Any], inputs: Inputs, count: int
) -> list[PartialType]:
    """Give the type of each of `count` outputs; unknown where there is no rule."""
    rule = _RULES.get(op)
    present = [t for t in inputs if t is not None]
    found = rule(attributes, inputs) if rule and present else []
    return [*found, *[UNKNOWN] * count][:count]


def _known(dtype: str, *shape: int) -> PartialType:
    return PartialType(dtype, shape)


def _need(inputs: Inputs, position: int) -> TensorType:
    found = inputs[position] if position < len(inputs) else None
    return found if found is not None else TensorType("float32", ())


def _at(inputs: Inputs, position: int) -> TensorType | None:
    return inputs[position] if position < len(inputs) else None


def _like_first(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    first = _need(inputs, 0)
    return [PartialType(first.dtype, first.shape)]


def _skip_normalization(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    """Output, mean and 1/sigma over the last dimension, and the sum before normalisation."""
    first = _need(inputs, 0)
    row = _known("float32", *first.shape[:-1], 1)
    whole = PartialType(first.dtype, first.shape)
    return [whole, row, row, whole]


def _layer_normalization(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    first = _need(inputs, 0)
    axis = int(attributes.get("axis", -1)) % max(len(first.shape), 1)
    row = _known("float32", *first.shape[:axis], *[1] * (len(first.shape) - axis))
    return [PartialType(first.dtype, first.shape), row, row]


def _embed_layer_normalization(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    """Token ids (B, S) and a word table (V, H) give (B, S, H), a mask index (B) and the sum."""
    batch, length = _need(inputs, 0).shape
    table = _need(inputs, 2)
    whole = _known(table.dtype, batch, length, table.shape[1])
    return [whole, _known("int32", batch), whole]


def _half_last(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    first = _need(inputs, 0)
    return [_known(first.dtype, *first.shape[:-1], first.shape[-1] // 2)]


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    return tuple(max(dims) if min(dims) else 0 for dims in zip(*padded, strict=True))


def _matmul_of(
    a: TensorType, b: TensorType, dtype: str, swap_a: bool = False, swap_b: bool = False
) -> list[PartialType]:
    left, right = a.shape, b.shape
    if len(left) < 2 or len(right) < 2:
        return [PartialType(dtype, left[:-1] + right[1:])]
    rows = left[-1] if swap_a else left[-2]
    columns = right[-2] if swap_b else right[-1]
    return [PartialType(dtype, (*_broadcast(left[:-2], right[:-2]), rows, columns))]


def _fused_matmul(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    """Like MatMul; ``transBatch`` puts the first batch dimension in the matrix's place."""
    a, b = _need(inputs, 0), _need(inputs, 1)
    if attributes.get("transBatchA"):
        a = TensorType(a.dtype, (*a.shape[1:-1], a.shape[0], a.shape[-1]))
    if attributes.get("transBatchB"):
        b = TensorType(b.dtype, (*b.shape[1:-1], b.shape[0], b.shape[-1]))
    swap_a, swap_b = bool(attributes.get("transA")), bool(attributes.get("transB"))
    return _matmul_of(a, b, a.dtype, swap_a, swap_b)


def _matmul_to_float(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    return _matmul_of(_need(inputs, 0), _need(inputs, 1), "float32")


def _matmul_nbits(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    first = _need(inputs, 0)
    return [_known(first.dtype, *first.shape[:-1], int(attributes["N"]))]


def _quantised_pairwise(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    """A, its scale and zero, B, its scale and zero, and those of the result."""
    a, b = _need(inputs, 0), _need(inputs, 3)
    return [PartialType(a.dtype, _broadcast(a.shape, b.shape))]


def _quantised_global_pool(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    data = _need(inputs, 0)
    ones = (1,) * (len(data.shape) - 2)
    if attributes.get("channels_last"):
        return [_known(data.dtype, data.shape[0], *ones, data.shape[-1])]
    return [_known(data.dtype, *data.shape[:2], *ones)]


def _quantised_concat(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    """The result's scale and zero first, then a tensor, its scale and zero, and so on."""
    tensors = [t for t in inputs[2::3] if t is not None]
    axis = int(attributes["axis"])
    shape = list(tensors[0].shape)
    shape[axis] = sum(t.shape[axis] for t in tensors)
    return [_known(tensors[0].dtype, *shape)]


def _attention(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    """Input (B, S, I) and weights (I, 3H) give (B, S, Hv) and the present (2, B, N, T, H/N)."""
    data, weight, past = _need(inputs, 0), _need(inputs, 1), _at(inputs, 4)
    batch, length, _ = data.shape
    sizes = attributes.get("qkv_hidden_sizes") or [weight.shape[1] // 3] * 3
    heads = int(attributes["num_heads"])
    total = length + (past.shape[3] if past is not None else 0)
    present = _known(data.dtype, 2, batch, heads, total, sizes[0] // heads)
    return [_known(data.dtype, batch, length, sizes[2]), present]


def _quantised_attention(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    data, weight, past = _need(inputs, 0), _need(inputs, 1), _at(inputs, 8)
    batch, length, _ = data.shape
    heads, width = int(attributes["num_heads"]), weight.shape[1] // 3
    total = length + (past.shape[3] if past is not None else 0)
    present = _known("float32", 2, batch, heads, total, width // heads)
    return [_known("float32", batch, length, width), present]


def _multi_head_attention(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    """Query (B, S, H) with keys and values (B, L, H) or (B, N, L, D); or Q, K and V packed."""
    query, key, value, past = _need(inputs, 0), _at(inputs, 1), _at(inputs, 2), _at(inputs, 6)
    heads = int(attributes["num_heads"])
    batch, length = query.shape[:2]
    if len(query.shape) == 5:  # (B, S, N, 3, D)
        depth, keys, width = query.shape[4], length, heads * query.shape[4]
    elif key is not None and len(key.shape) == 5:  # (B, L, N, 2, D)
        depth, keys, width = key.shape[4], key.shape[1], query.shape[2]
    else:
        depth, width = query.shape[2] // heads, query.shape[2]
        keys = length
        if key is not None:
            keys = key.shape[2] if len(key.shape) == 4 else key.shape[1]
        if value is not None:
            last = value.shape[-1]
            width = heads * last if len(value.shape) == 4 else last
    keys += past.shape[2] if past is not None else 0
    present = _known(query.dtype, batch, heads, keys, depth)
    return [_known(query.dtype, batch, length, width), present, present]


def _group_query_attention(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    """Query (B, S, N·D); keys (B, S, Nkv·D), or all packed; past (B, Nkv, P, D)."""
    query, key, past = _need(inputs, 0), _at(inputs, 1), _at(inputs, 3)
    heads, kv_heads = int(attributes["num_heads"]), int(attributes["kv_num_heads"])
    batch, length, width = query.shape
    depth = width // (heads if key is not None else heads + 2 * kv_heads)
    total = length + (past.shape[2] if past is not None else 0)
    present = _known(query.dtype, batch, kv_heads, total, depth)
    return [_known(query.dtype, batch, length, heads * depth), present, present]


def _targets(name: str, default: int = 1) -> Rule:
    """One row of `name` numbers for each sample."""

    def rule(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
        return [_known("float32", _need(inputs, 0).shape[0], int(attributes.get(name, default)))]

    return rule


def _classes(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    """A label and a row of scores for each sample."""
    samples = _need(inputs, 0).shape[0]
    texts = attributes.get("classlabels_strings") or []
    labels = texts or attributes.get("classlabels_int64s") or [0]
    return [
        _known("string" if texts else "int64", samples),
        _known("float32", samples, len(labels)),
    ]


def _float_like_first(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    return [_known("float32", *_need(inputs, 0).shape)]


def _feature_vector(attributes: Mapping[str, Any], inputs: Inputs) -> list[PartialType]:
    widths = attributes.get("inputdimensions") or [
        t.shape[-1] for t in inputs if t is not None and t.shape
    ]
    return [_known("float32", _need(inputs, 0).shape[0], sum(map(int, widths)))]


_MICROSOFT: Final[dict[str, Rule]] = {
    **dict.fromkeys(
        [
            "Gelu",
            "QuickGelu",
            "FastGelu",
            "BiasGelu",
            "BiasAdd",
            "BiasDropout",
            "GroupNorm",
            "RotaryEmbedding",
            "GemmaRotaryEmbedding",
            "QLinearLeakyRelu",
            "QLinearSigmoid",
            "QLinearSoftmax",
            "Inverse",
        ],
        _like_first,
    ),
    "SkipGroupNorm": lambda a, i: _like_first(a, i) * 2,
    "BiasSplitGelu": _half_last,
    "LayerNormalization": _layer_normalization,
    "SimplifiedLayerNormalization": _layer_normalization,
    "SkipLayerNormalization": _skip_normalization,
    "SkipSimplifiedLayerNormalization": _skip_normalization,
    "EmbedLayerNormalization": _embed_layer_normalization,
    "FusedMatMul": _fused_matmul,
    "TransposeMatMul": _fused_matmul,
    "FusedMatMulActivation": _fused_matmul,
    "MatMulNBits": _matmul_nbits,
    "MatMulIntegerToFloat": _matmul_to_float,
    "DynamicQuantizeMatMul": _matmul_to_float,
    "QLinearAdd": _quantised_pairwise,
    "QLinearMul": _quantised_pairwise,
    "QLinearConcat": _quantised_concat,
    "QLinearGlobalAveragePool": _quantised_global_pool,
    "Attention": _attention,
    "QAttention": _quantised_attention,
    "MultiHeadAttention": _multi_head_attention,
    "GroupQueryAttention": _group_query_attention,
}

_MACHINE_LEARNING: Final[dict[str, Rule]] = {
    "Imputer": _like_first,
    "Binarizer": _like_first,
    "Normalizer": _float_like_first,
    "Scaler": _float_like_first,
    "LinearRegressor": _targets("targets"),
    "SVMRegressor": _targets("n_targets"),
    "TreeEnsembleRegressor": _targets("n_targets"),
    "TreeEnsembleClassifier": _classes,
    "LinearClassifier": _classes,
    "FeatureVectorizer": _feature_vector,
}

_STANDARD: Final[dict[str, Rule]] = {
    "SimplifiedLayerNormalization": _layer_normalization,  # onnxruntime writes it without a domain
    **dict.fromkeys(
        [
            "GroupNormalization",
            "MeanVarianceNormalization",
            "Affine",
            "ParametricSoftplus",
            "ScaledTanh",
            "ImageScaler",
            "Scale",
        ],
        _like_first,
    ),
}

_RULES: Final[dict[str, Rule]] = {
    **_STANDARD,
    **{f"com.microsoft.{op}": rule for op, rule in _MICROSOFT.items()},
    **{f"ai.onnx.ml.{op}": rule for op, rule in _MACHINE_LEARNING.items()},
}
