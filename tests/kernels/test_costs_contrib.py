"""FLOPs of operators outside the standard."""

import pytest
from one_node import f32, flops, i64, u8

from fuel_gpu.graph.arena import TensorType

ROWS = f32(2, 7, 64)  # 896 elements


@pytest.mark.parametrize(
    ("op", "each"),
    [("QuickGelu", 13), ("FastGelu", 15), ("BiasGelu", 13), ("BiasAdd", 2), ("RotaryEmbedding", 3)],
)
def test_elementwise(op: str, each: int) -> None:
    assert flops(f"com.microsoft.{op}", [ROWS, f32(64), ROWS], ROWS) == each * 896


def test_residual_normalisation() -> None:
    scale = f32(64)
    plain = [ROWS, ROWS, scale, scale]
    assert flops("com.microsoft.SkipLayerNormalization", [*plain], ROWS) == 8 * 896
    assert flops("com.microsoft.SkipLayerNormalization", [*plain, scale], ROWS) == 9 * 896
    root = flops("com.microsoft.SkipSimplifiedLayerNormalization", [ROWS, ROWS, scale], ROWS)
    assert root == 5 * 896


def test_fused_products() -> None:
    product = "com.microsoft.FusedMatMul"
    assert flops(product, [f32(2, 4, 5), f32(2, 5, 6)], f32(2, 4, 6)) == 2 * 5 * 48
    assert flops(product, [f32(2, 5, 4), f32(2, 5, 6)], f32(2, 4, 6), transA=1) == 2 * 5 * 48
    assert flops(product, [f32(2, 4, 5), f32(2, 5, 6)], f32(2, 4, 6), alpha=0.125) == 11 * 48
    assert flops("com.microsoft.FusedGemm", [f32(4, 5), f32(5, 6), f32(6)], f32(4, 6)) == 11 * 24
    convolution = [f32(1, 3, 8, 8), f32(4, 3, 3, 3), f32(4)]
    assert flops("com.microsoft.FusedConv", [*convolution], f32(1, 4, 6, 6)) == 55 * 144


def test_product_with_weights_of_few_bits() -> None:
    inputs = [f32(7, 64), u8(96, 2, 16), f32(192)]
    # the product, and scale and shift for each of 64·96 weights
    assert flops("com.microsoft.MatMulNBits", [*inputs], f32(7, 96), K=64, N=96) == (
        2 * 64 * 672 + 2 * 6144
    )


def test_attention_with_its_projection() -> None:
    inputs = [ROWS, f32(64, 192), f32(192)]
    projection = (2 * 64 + 1) * 2 * 7 * 192
    scores = 2 * 4 * 7 * 7
    priced = flops("com.microsoft.Attention", [*inputs], ROWS, num_heads=4)
    assert priced == projection + scores * (32 + 1 + 12 + 32)
    past = f32(2, 2, 4, 3, 16)
    priced = flops("com.microsoft.Attention", [*inputs, None, past], ROWS, num_heads=4)
    assert priced == projection + 2 * 4 * 7 * 10 * (32 + 1 + 12 + 32)


def test_quantised_attention() -> None:
    scale = f32()
    weights, past = u8(64, 192), f32(2, 2, 4, 3, 16)
    inputs = [u8(2, 7, 64), weights, f32(192), scale, scale, None, u8(), u8(), past]
    projection = (2 * 64 + 1) * 2 * 7 * 192
    priced = flops("com.microsoft.QAttention", inputs, ROWS, num_heads=4)
    assert priced == projection + 2 * 4 * 7 * 10 * (32 + 1 + 12 + 32)


def test_multi_head_attention() -> None:
    key = f32(2, 9, 64)
    apart = flops("com.microsoft.MultiHeadAttention", [ROWS, key, key], ROWS, num_heads=4)
    assert apart == 2 * 4 * 7 * 9 * (32 + 1 + 12 + 32)
    packed = flops("com.microsoft.MultiHeadAttention", [f32(2, 7, 4, 3, 16)], ROWS, num_heads=4)
    assert packed == 2 * 4 * 7 * 7 * (32 + 1 + 12 + 32)


def test_group_query_attention() -> None:
    past = f32(2, 2, 20, 16)
    heads = {"num_heads": 8, "kv_num_heads": 2}
    expected = 2 * 8 * 5 * 25 * (32 + 1 + 12 + 32)
    output, lengths = f32(2, 5, 128), TensorType("int32", (2,))
    apart = [output, f32(2, 5, 32), f32(2, 5, 32), past, past, lengths, i64()]
    assert flops("com.microsoft.GroupQueryAttention", [*apart], output, **heads) == expected
    packed = [f32(2, 5, 192), None, None, past, past, lengths, i64()]
    assert flops("com.microsoft.GroupQueryAttention", packed, output, **heads) == expected


def test_classical_models() -> None:
    assert flops("ai.onnx.ml.Scaler", [f32(6, 4)], f32(6, 4)) == 2 * 24
    assert flops("ai.onnx.ml.LinearRegressor", [f32(6, 4)], f32(6, 2)) == 2 * 4 * 12
    assert flops("ai.onnx.ml.LinearClassifier", [f32(6, 4)], i64(6), f32(6, 3)) == 2 * 4 * 18
