"""FLOPs of normalisations, softmax, pooling, reductions, sorting and resampling."""

import pytest
from one_node import cost, f32, flops, i64

from fuel_gpu.graph.arena import TensorType

IMAGE = f32(2, 8, 6, 6)  # 576 elements
ROWS = f32(2, 7, 64)  # 896 elements


def test_batch_normalization() -> None:
    channel = f32(8)
    inputs = [IMAGE, channel, channel, channel, channel]
    assert flops("BatchNormalization", [*inputs], IMAGE) == 2 * 576
    assert flops("BatchNormalization", [*inputs], IMAGE, training_mode=1) == 7 * 576


@pytest.mark.parametrize(
    ("op", "parameters", "each"),
    [
        ("LayerNormalization", 2, 7),
        ("LayerNormalization", 1, 6),
        ("InstanceNormalization", 2, 7),
        ("GroupNormalization", 2, 7),
        ("MeanVarianceNormalization", 0, 5),
        ("RMSNormalization", 1, 4),
        ("SimplifiedLayerNormalization", 1, 4),
    ],
)
def test_mean_and_variance(op: str, parameters: int, each: int) -> None:
    assert flops(op, [ROWS, *[f32(64)] * parameters], ROWS) == each * 896


def test_local_response_normalization() -> None:
    # square, window of 5, scale and bias, power (8), division
    assert flops("LRN", [IMAGE], IMAGE, size=5) == (1 + 5 + 2 + 8 + 1) * 576


@pytest.mark.parametrize(("op", "each"), [("Softmax", 12), ("LogSoftmax", 12), ("Hardmax", 1)])
def test_softmax(op: str, each: int) -> None:
    assert flops(op, [ROWS], ROWS, axis=-1) == each * 896


@pytest.mark.parametrize(("op", "each"), [("MaxPool", 9), ("AveragePool", 9), ("LpPool", 18)])
def test_pooling_counts_every_window(op: str, each: int) -> None:
    assert flops(op, [IMAGE], f32(2, 8, 4, 4), kernel_shape=[3, 3]) == each * 256


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pooling_counts_every_element(op: str) -> None:
    assert flops(op, [IMAGE], f32(2, 8, 1, 1)) == 576


@pytest.mark.parametrize(
    ("op", "each"),
    [
        ("ReduceSum", 1),
        ("ReduceMean", 1),
        ("ReduceMax", 1),
        ("ReduceL2", 2),
        ("ReduceSumSquare", 2),
        ("ReduceLogSumExp", 11),
        ("ArgMax", 1),
    ],
)
def test_reductions_count_by_their_input(op: str, each: int) -> None:
    assert flops(op, [ROWS, i64(1)], f32(2, 7)) == each * 896


def test_topk_keeps_a_heap() -> None:
    # looked at once, and up to ceil(log2 10) = 4 comparisons
    assert flops("TopK", [f32(3, 100), i64(1)], f32(3, 10), i64(3, 10), axis=-1) == 300 * 5
    assert flops("TopK", [f32(3, 100), i64(1)], f32(3, 1), axis=-1) == 300


def test_suppression_compares_every_box_with_those_kept() -> None:
    inputs = [f32(1, 40, 4), f32(1, 2, 40), i64(1)]
    priced = cost("NonMaxSuppression", [*inputs], i64(20, 3), shape_is_bound=True)
    assert priced.flops == 12 * 40 * 20
    assert priced.estimated


@pytest.mark.parametrize(
    ("mode", "target", "each"),
    [
        ("nearest", f32(2, 8, 12, 12), 0),
        ("linear", f32(2, 8, 12, 12), 2 * 4),
        ("cubic", f32(2, 8, 12, 12), 2 * 16),
        ("linear", f32(2, 8, 12, 6), 2 * 2),  # only one axis is resized
    ],
)
def test_resizing_reads_neighbours(mode: str, target: TensorType, each: int) -> None:
    assert flops("Resize", [IMAGE, None, f32(4)], target, mode=mode) == each * target.elements


def test_grid_sampling() -> None:
    # four neighbours, a multiply-add each, and 4 for each of two coordinates
    grid = f32(2, 5, 5, 2)
    assert flops("GridSample", [IMAGE, grid], f32(2, 8, 5, 5), mode="linear") == 16 * 400
    assert flops("GridSample", [IMAGE, grid], f32(2, 8, 5, 5), mode="nearest") == 10 * 400


def test_region_pooling() -> None:
    # 2 x 2 samples a bin, four neighbours each with a multiply-add
    inputs = [IMAGE, f32(3, 4), i64(3)]
    assert flops("RoiAlign", [*inputs], f32(3, 8, 2, 2), sampling_ratio=2) == 32 * 96


def test_determinant() -> None:
    # 5 matrices of 6 by 6: 2/3 n^3 = 144 each
    assert flops("Det", [f32(5, 6, 6)], f32(5)) == 5 * 144


def test_drawing_samples() -> None:
    # softmax and running sum over 3·8 classes; 3·10 draws at 40 and a search of 3 steps
    assert flops("Multinomial", [f32(3, 8)], i64(3, 10)) == 13 * 24 + 43 * 30


def test_fourier_transform() -> None:
    # 4 signals of 16: 5·16·4 each
    assert flops("DFT", [f32(4, 16, 2), i64()], f32(4, 16, 2), axis=-2) == 4 * 5 * 16 * 4
