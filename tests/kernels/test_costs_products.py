"""FLOPs of sums of products, worked by hand: a multiply-add is two."""

import pytest
from one_node import f32, flops, u8

from fuel_gpu.graph.arena import TensorType
from fuel_gpu.kernels.costs_products import einsum_terms

I32 = TensorType("int32", (4, 5))


@pytest.mark.parametrize(
    ("data", "weight", "output", "groups", "expected"),
    [
        # 112·112·64 outputs, each over 3·7·7 = 147 products
        (f32(1, 3, 224, 224), f32(64, 3, 7, 7), f32(1, 64, 112, 112), 1, 2 * 147 * 802_816),
        # grouped: 256/2 channels meet each kernel
        (f32(1, 96, 27, 27), f32(256, 48, 5, 5), f32(1, 256, 27, 27), 2, 2 * 1200 * 186_624),
        # depthwise: one channel
        (f32(8, 32, 14, 14), f32(32, 1, 3, 3), f32(8, 32, 14, 14), 32, 2 * 9 * 50_176),
        # one and three dimensions
        (f32(2, 4, 100), f32(8, 4, 5), f32(2, 8, 96), 1, 2 * 20 * 1536),
        (f32(1, 2, 4, 4, 4), f32(3, 2, 2, 2, 2), f32(1, 3, 3, 3, 3), 1, 2 * 16 * 81),
    ],
)
def test_convolution(
    data: TensorType, weight: TensorType, output: TensorType, groups: int, expected: int
) -> None:
    assert flops("Conv", [data, weight], output, group=groups) == expected
    bias = f32(weight.shape[0])
    assert flops("Conv", [data, weight, bias], output, group=groups) == expected + output.elements


def test_dilation_and_padding_change_nothing_but_the_output() -> None:
    dilated = flops("Conv", [f32(1, 1, 9, 9), f32(1, 1, 3, 3)], f32(1, 1, 5, 5), dilations=[2, 2])
    assert dilated == 2 * 9 * 25
    padded = flops("Conv", [f32(1, 1, 5, 5), f32(1, 1, 3, 3)], f32(1, 1, 5, 5), pads=[1, 1, 1, 1])
    assert padded == 2 * 9 * 25


def test_transposed_convolution_multiplies_each_input_into_a_window() -> None:
    # 2·3·4·4 inputs, each into (5/1)·2·2 outputs
    assert flops("ConvTranspose", [f32(2, 3, 4, 4), f32(3, 5, 2, 2)], f32(2, 5, 8, 8)) == (
        2 * 96 * 20
    )
    with_bias = [f32(2, 3, 4, 4), f32(3, 5, 2, 2), f32(5)]
    assert flops("ConvTranspose", with_bias, f32(2, 5, 8, 8)) == 2 * 96 * 20 + 640


def test_deformable_convolution_also_samples() -> None:
    # 4·6·6 outputs over 2·9 products; 36 positions · 2 channels · 9 taps sampled at 8 each
    inputs = [f32(1, 2, 8, 8), f32(4, 2, 3, 3), f32(1, 18, 6, 6)]
    assert flops("DeformConv", [*inputs], f32(1, 4, 6, 6)) == 2 * 18 * 144 + 8 * 648


def test_quantised_convolutions_count_the_same_products() -> None:
    scale = f32()
    zero = u8()
    quantised = [u8(1, 3, 8, 8), scale, zero, u8(4, 3, 3, 3), scale, zero, scale, zero]
    assert flops("QLinearConv", [*quantised], u8(1, 4, 6, 6)) == 2 * 27 * 144
    assert flops("QLinearConv", [*quantised, I32], u8(1, 4, 6, 6)) == 2 * 27 * 144 + 144
    assert flops("ConvInteger", [u8(1, 3, 8, 8), u8(4, 3, 3, 3), zero], f32(1, 4, 6, 6)) == (
        2 * 27 * 144
    )


@pytest.mark.parametrize(
    ("a", "b", "output", "expected"),
    [
        (f32(4, 5), f32(5, 6), f32(4, 6), 2 * 5 * 24),
        (f32(2, 3, 4, 5), f32(5, 6), f32(2, 3, 4, 6), 2 * 5 * 144),
        (f32(1, 4, 5), f32(7, 5, 6), f32(7, 4, 6), 2 * 5 * 168),
        (f32(5), f32(5, 6), f32(6), 2 * 5 * 6),
        (f32(4, 5), f32(5), f32(4), 2 * 5 * 4),
        (f32(5), f32(5), f32(), 2 * 5),
    ],
)
def test_matrix_product(a: TensorType, b: TensorType, output: TensorType, expected: int) -> None:
    assert flops("MatMul", [a, b], output) == expected


@pytest.mark.parametrize(
    ("attributes", "a", "expected"),
    [
        ({}, f32(4, 5), 2 * 5 * 24),
        ({"transA": 1}, f32(5, 4), 2 * 5 * 24),
        ({"alpha": 0.5}, f32(4, 5), 2 * 5 * 24 + 24),
    ],
)
def test_gemm(attributes: dict[str, float], a: TensorType, expected: int) -> None:
    assert flops("Gemm", [a, f32(5, 6)], f32(4, 6), **attributes) == expected
    assert flops("Gemm", [a, f32(5, 6), f32(6)], f32(4, 6), **attributes) == expected + 24


def test_gemm_scales_its_bias() -> None:
    assert flops("Gemm", [f32(4, 5), f32(5, 6), f32(6)], f32(4, 6), beta=2.0) == 2 * 5 * 24 + 48


def test_integer_products() -> None:
    assert flops("MatMulInteger", [u8(4, 5), u8(5, 6)], TensorType("int32", (4, 6))) == 240
    scale = f32()
    inputs = [u8(4, 5), scale, u8(), u8(5, 6), scale, u8(), scale, u8()]
    # scaled, rounded, shifted and clamped at the end: 4 for each of 24
    assert flops("QLinearMatMul", [*inputs], u8(4, 6)) == 240 + 4 * 24


@pytest.mark.parametrize(
    ("equation", "shapes", "output", "expected"),
    [
        ("ij,jk->ik", [(4, 5), (5, 6)], (4, 6), 2 * 4 * 5 * 6),
        ("bhqd,bhkd->bhqk", [(2, 3, 7, 16), (2, 3, 9, 16)], (2, 3, 7, 9), 2 * 2 * 3 * 7 * 9 * 16),
        ("...ij,...jk->...ik", [(8, 4, 5), (8, 5, 6)], (8, 4, 6), 2 * 8 * 4 * 5 * 6),
        ("...ij,jk", [(8, 4, 5), (5, 6)], (8, 4, 6), 2 * 8 * 4 * 5 * 6),
        ("i,j->ij", [(4,), (5,)], (4, 5), 4 * 5),  # nothing is summed
        ("ij->", [(4, 5)], (), 20),
        ("ij->ji", [(4, 5)], (5, 4), 0),
        ("ii->i", [(4, 4)], (4,), 0),
        # from the left: (ij,jk) over 4·5·6, then (ik,kl) over 4·6·7
        ("ij,jk,kl->il", [(4, 5), (5, 6), (6, 7)], (4, 7), 2 * 120 + 2 * 168),
    ],
)
def test_einsum(
    equation: str, shapes: list[tuple[int, ...]], output: tuple[int, ...], expected: int
) -> None:
    assert flops("Einsum", [f32(*s) for s in shapes], f32(*output), equation=equation) == expected


def test_einsum_output_left_out_is_alphabetical() -> None:
    assert einsum_terms("ba,cb", ((2, 3), (4, 2))) == (["ba", "cb"], "ac")


SOFTMAX = 12
SCALE = 1


@pytest.mark.parametrize(
    ("query", "key", "value", "attributes", "expected"),
    [
        # 2·4·7·9 scores; each: 2·16 products, scaled, softmax, 2·24 products
        (
            f32(2, 4, 7, 16),
            f32(2, 4, 9, 16),
            f32(2, 4, 9, 24),
            {},
            504 * (32 + SCALE + SOFTMAX + 48),
        ),
        # 8 heads of queries share 2 of keys: as many scores as there are query heads
        (f32(1, 8, 5, 4), f32(1, 2, 6, 4), f32(1, 2, 6, 4), {}, 240 * (8 + SCALE + SOFTMAX + 8)),
        # heads in the width: 64 = 4 heads of 16
        (
            f32(2, 7, 64),
            f32(2, 9, 64),
            f32(2, 9, 64),
            {"q_num_heads": 4, "kv_num_heads": 4},
            504 * (32 + SCALE + SOFTMAX + 32),
        ),
    ],
)
def test_attention(
    query: TensorType, key: TensorType, value: TensorType, attributes: dict[str, int], expected: int
) -> None:
    assert flops("Attention", [query, key, value], query, **attributes) == expected
    assert flops("Attention", [query, key, value], query, is_causal=1, **attributes) == expected


def test_attention_over_a_past() -> None:
    # one query against 9 past keys and its own
    q = f32(2, 4, 1, 16)
    past = f32(2, 4, 9, 16)
    assert flops("Attention", [q, q, q, None, past, past], q) == 2 * 4 * 10 * (32 + 1 + 12 + 32)


def test_linear_attention_updates_a_state_for_each_token() -> None:
    # 2·5 tokens, 4 heads of a 8 x 8 state: written at 2 an element, read at 2
    x = f32(2, 5, 32)
    heads = {"q_num_heads": 4, "kv_num_heads": 4}
    plain = flops("LinearAttention", [x, x, x], x, update_rule="linear", **heads)
    assert plain == 10 * 4 * 64 * (2 + 2)
    gated = flops("LinearAttention", [x, x, x], x, update_rule="gated_delta", **heads)
    assert gated == 10 * 4 * 64 * (2 + 1 + 2 + 2)


def test_causal_convolution() -> None:
    x = f32(2, 16, 10)
    assert flops("CausalConvWithState", [x, f32(16, 1, 4)], x) == 320 * 8
    with_swish = flops("CausalConvWithState", [x, f32(16, 1, 4), f32(16)], x, activation="silu")
    assert with_swish == 320 * (8 + 1 + 12)
