"""Which operators move no byte."""

from typing import Any

import pytest

from fuel_gpu.graph.arena import TensorType
from fuel_gpu.graph.onnx_views import is_view


def float32(*shape: int) -> TensorType:
    return TensorType("float32", shape)


@pytest.mark.parametrize("op", ["Reshape", "Flatten", "Squeeze", "Unsqueeze"])
def test_a_new_shape_over_the_same_elements(op: str) -> None:
    assert is_view(op, {}, (float32(2, 6), TensorType("int64", (1,))), float32(12), 1)


@pytest.mark.parametrize(
    ("perm", "shape", "result"),
    [
        ([0, 2, 1], (2, 1, 5), True),
        ([0, 2, 1], (2, 3, 5), False),
        ([0, 3, 1, 2], (8, 7, 7, 1), True),
        (None, (1, 6), True),
        (None, (2, 6), False),
        (None, (6,), True),
    ],
)
def test_a_transpose_that_only_moves_axes_of_one(
    perm: list[int] | None, shape: tuple[int, ...], result: bool
) -> None:
    order = perm or range(len(shape))[::-1]
    attributes: dict[str, Any] = {} if perm is None else {"perm": perm}
    output = float32(*(shape[axis] for axis in order))
    assert is_view("Transpose", attributes, (float32(*shape),), output, 1) is result


def test_a_cast_to_the_same_type() -> None:
    assert is_view("Cast", {}, (float32(3),), float32(3), 1)
    assert not is_view("Cast", {}, (float32(3),), TensorType("int32", (3,)), 1)


def test_an_expansion_to_the_same_shape() -> None:
    target = TensorType("int64", (2,))
    assert is_view("Expand", {}, (float32(1, 3), target), float32(1, 3), 1)
    assert not is_view("Expand", {}, (float32(1, 3), target), float32(2, 3), 1)


def test_dropout_whose_mask_is_read_is_no_view() -> None:
    assert is_view("Dropout", {}, (float32(3),), float32(3), 1)
    assert not is_view("Dropout", {}, (float32(3),), float32(3), 2)


@pytest.mark.parametrize("op", ["Concat", "Sum", "Max"])
def test_one_input_alone_is_handed_on(op: str) -> None:
    assert is_view(op, {}, (float32(3),), float32(3), 1)
    assert not is_view(op, {}, (float32(3), float32(3)), float32(3), 1)


def test_arithmetic_is_no_view() -> None:
    assert not is_view("Relu", {}, (float32(3),), float32(3), 1)
