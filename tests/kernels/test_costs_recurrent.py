"""FLOPs of recurrent layers: gates of products, then what the cell does."""

import pytest
from one_node import f32, flops

# 5 steps, 3 samples, 4 inputs, 8 hidden: 5·3·8 = 120 cells; each gate 2·(4 + 8 + 1)


@pytest.mark.parametrize(
    ("op", "gates", "cell"),
    [
        ("LSTM", 4, 3 * 11 + 2 * 8 + 4),
        ("GRU", 3, 2 * 11 + 8 + 5),
        ("RNN", 1, 8),
    ],
)
def test_one_direction_and_two(op: str, gates: int, cell: int) -> None:
    x, each = f32(5, 3, 4), gates * 26 + cell
    weights = [f32(1, gates * 8, 4), f32(1, gates * 8, 8)]
    assert flops(op, [x, *weights], f32(5, 1, 3, 8), hidden_size=8) == 120 * each
    both = [f32(2, gates * 8, 4), f32(2, gates * 8, 8)]
    assert flops(op, [x, *both], f32(5, 2, 3, 8), hidden_size=8) == 240 * each


def test_batch_first_costs_the_same() -> None:
    weights = [f32(1, 32, 4), f32(1, 32, 8)]
    one = flops("LSTM", [f32(5, 3, 4), *weights], f32(5, 1, 3, 8), layout=0)
    other = flops("LSTM", [f32(3, 5, 4), *weights], f32(3, 5, 1, 8), layout=1)
    assert one == other


def test_the_products_are_most_of_a_wide_lstm() -> None:
    inputs = [f32(10, 1, 512), f32(1, 2048, 512), f32(1, 2048, 512)]
    products = 10 * 4 * 2 * 512 * 1024
    assert flops("LSTM", [*inputs], f32(10, 1, 1, 512)) == pytest.approx(products, rel=0.01)
