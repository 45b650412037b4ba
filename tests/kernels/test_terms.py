"""How many terms an operation sums into one element."""

from typing import Any

import pytest
from one_node import f32, i64, one_node, u8

from fuel_gpu.graph.arena import TensorType
from fuel_gpu.kernels.costs import operands_of
from fuel_gpu.kernels.terms import summed_terms

IMAGE = f32(2, 8, 6, 6)


def terms(op: str, inputs: list[TensorType | None], output: TensorType, **given: Any) -> int:
    return summed_terms(operands_of(*one_node(op, inputs, output, **given)))


@pytest.mark.parametrize(
    ("op", "inputs", "output", "given", "expected"),
    [
        ("MatMul", [f32(4, 5), f32(5, 6)], f32(4, 6), {}, 5),
        ("Gemm", [f32(5, 4), f32(5, 6)], f32(4, 6), {"transA": 1}, 5),
        ("Conv", [IMAGE, f32(4, 4, 3, 3)], f32(2, 4, 4, 4), {"group": 2}, 36),
        ("ConvTranspose", [IMAGE, f32(8, 4, 3, 3)], f32(2, 4, 8, 8), {}, 72),
        ("com.microsoft.FusedMatMul", [f32(4, 5), f32(5, 6)], f32(4, 6), {}, 5),
        ("com.microsoft.MatMulNBits", [f32(4, 64), u8(6, 2, 16)], f32(4, 6), {"K": 64, "N": 6}, 64),
        ("Einsum", [f32(4, 5), f32(5, 6)], f32(4, 6), {"equation": "ij,jk->ik"}, 5),
        ("ReduceSum", [f32(4, 5, 6)], f32(4), {}, 30),
        ("CumSum", [f32(4, 50), i64()], f32(4, 50), {}, 50),
        ("AveragePool", [IMAGE], f32(2, 8, 4, 4), {"kernel_shape": [3, 3]}, 9),
        ("GlobalAveragePool", [IMAGE], f32(2, 8, 1, 1), {}, 36),
        ("Softmax", [f32(2, 7, 64)], f32(2, 7, 64), {"axis": -1}, 64),
        ("Softmax", [f32(1, 1000, 1, 1)], f32(1, 1000, 1, 1), {"axis": 1}, 1000),
        ("LayerNormalization", [f32(2, 7, 64), f32(64)], f32(2, 7, 64), {"axis": -1}, 64),
        ("InstanceNormalization", [IMAGE, f32(8), f32(8)], IMAGE, {}, 36),
        ("GroupNormalization", [IMAGE, f32(8), f32(8)], IMAGE, {"num_groups": 2}, 144),
        ("BatchNormalization", [IMAGE], IMAGE, {}, 1),
        ("BatchNormalization", [IMAGE], IMAGE, {"training_mode": 1}, 72),
        ("LRN", [IMAGE], IMAGE, {"size": 5}, 5),
        ("Attention", [f32(2, 4, 7, 16)] * 3, f32(2, 4, 7, 16), {}, 16 + 7),
        ("LSTM", [f32(5, 3, 4), f32(1, 32, 4), f32(1, 32, 8)], f32(5, 1, 3, 8), {}, 4 + 8 + 2),
        ("Sum", [IMAGE, IMAGE, IMAGE], IMAGE, {}, 2),
        ("ScatterND", [f32(9, 4), i64(3, 1), f32(3, 4)], f32(9, 4), {"reduction": "none"}, 1),
        ("ScatterND", [f32(9, 4), i64(3, 1), f32(3, 4)], f32(9, 4), {"reduction": "add"}, 13),
        ("Relu", [IMAGE], IMAGE, {}, 1),
    ],
)
def test_summed_terms(
    op: str,
    inputs: list[TensorType | None],
    output: TensorType,
    given: dict[str, Any],
    expected: int,
) -> None:
    assert terms(op, inputs, output, **given) == expected


def test_nothing_to_sum_is_one() -> None:
    assert terms("ReduceSum", [f32(0, 4)], f32(0), axis=1) == 1
    assert terms("RandomNormal", [], f32(3)) == 1
