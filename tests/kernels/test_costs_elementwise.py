"""FLOPs of operations that treat every element by itself."""

import pytest
from one_node import f32, flops, i64, u8

from fuel_gpu.graph.arena import TensorType

X = f32(2, 3, 4)


@pytest.mark.parametrize(
    ("op", "each"),
    [
        ("Relu", 1),
        ("Neg", 1),
        ("Sqrt", 1),
        ("Clip", 2),
        ("LeakyRelu", 2),
        ("HardSwish", 5),
        ("Exp", 8),
        ("Tanh", 8),
        ("Erf", 8),
        ("Sigmoid", 11),
        ("Softplus", 17),
        ("Gelu", 12),
        ("Mish", 26),
        ("Cast", 0),
        ("Identity", 0),
    ],
)
def test_one_input(op: str, each: int) -> None:
    assert flops(op, [X], X) == each * 24


@pytest.mark.parametrize(("op", "each"), [("Add", 1), ("Div", 1), ("Pow", 8), ("PRelu", 2)])
def test_two_inputs_that_broadcast(op: str, each: int) -> None:
    assert flops(op, [f32(2, 1, 4), f32(3, 1)], X) == each * 24


def test_comparison_counts_by_its_output() -> None:
    assert flops("Less", [f32(2, 1), f32(1, 3)], TensorType("bool", (2, 3))) == 6


@pytest.mark.parametrize(("op", "count"), [("Sum", 3), ("Max", 3), ("Min", 3), ("Mean", 4)])
def test_four_inputs(op: str, count: int) -> None:
    assert flops(op, [X, X, X, X], X) == count * 24


def test_choosing_computes_nothing() -> None:
    assert flops("Where", [TensorType("bool", (2, 3, 4)), X, X], X) == 0


def test_running_sums_count_by_their_input() -> None:
    assert flops("CumSum", [X, i64()], X) == 24


def test_quantising() -> None:
    assert flops("QuantizeLinear", [X, f32(), u8()], u8(2, 3, 4)) == 4 * 24
    assert flops("DequantizeLinear", [u8(2, 3, 4), f32(), u8()], X) == 2 * 24
    assert flops("DynamicQuantizeLinear", [X], u8(2, 3, 4), f32(), u8()) == 6 * 24


def test_swiglu() -> None:
    # alpha·a, sigmoid (11), times a, times b
    assert flops("SwiGLU", [X, X], X) == (1 + 11 + 1 + 1) * 24
