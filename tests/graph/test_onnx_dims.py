"""Dimensions: the batch, named and unnamed ones, arithmetic over names, and what stays open."""

from pathlib import Path

import onnx
import pytest
from onnx import helper
from onnx_models import Shape, output_shapes, read, save, value

from fuel_gpu.errors import ModelError, UsageError
from fuel_gpu.graph.onnx_dims import InputDims, settle_inputs


def settle(shapes: dict[str, Shape], batch: int | None = None, **dims: int) -> InputDims:
    """Settle inputs of these shapes."""
    inputs = [value(name, shape) for name, shape in shapes.items()]
    graph = helper.make_graph([], "g", inputs, [])
    return settle_inputs(graph, batch, dims, "m.onnx")


def shapes_of(settled: InputDims) -> dict[str, tuple[int, ...]]:
    return {name: tensor.shape for name, tensor in settled.types.items()}


def test_batch_sets_every_open_leading_dimension() -> None:
    settled = settle({"ids": ["batch", 77], "pixels": ["images", 3, 8, 8], "scale": [1]}, batch=4)
    assert shapes_of(settled) == {"ids": (4, 77), "pixels": (4, 3, 8, 8), "scale": (1,)}
    assert settled.fixed_batch is None


def test_batch_sets_a_name_wherever_it_stands() -> None:
    settled = settle({"ids": ["batch", 5], "cache": [2, "batch", 8]}, batch=3)
    assert shapes_of(settled) == {"ids": (3, 5), "cache": (2, 3, 8)}


def test_batch_leaves_a_leading_dimension_that_is_given_by_name() -> None:
    settled = settle({"x": ["length", "batch", 8], "mask": ["batch", "length"]}, 2, length=16)
    assert shapes_of(settled) == {"x": (16, 2, 8), "mask": (2, 16)}


def test_batch_replaces_a_fixed_leading_dimension() -> None:
    settled = settle({"image": [1, 3, 8, 8], "info": [1, 3], "anchors": [9, 4]}, batch=5)
    assert shapes_of(settled) == {"image": (5, 3, 8, 8), "info": (5, 3), "anchors": (9, 4)}
    assert settled.fixed_batch == 1


def test_the_models_own_batch_replaces_nothing() -> None:
    assert settle({"image": [1, 3, 8, 8]}, batch=1).fixed_batch is None


def test_an_unnamed_dimension_goes_by_input_and_axis(tmp_path: Path) -> None:
    relu = [helper.make_node("Relu", ["x"], ["y"])]
    graph = read(tmp_path, relu, [value("x", [2, None])], ["y"], dims={"x:1": 7})
    assert output_shapes(graph) == [(2, 7)]


def test_a_question_mark_is_no_name() -> None:
    settled = settle({"x": [1, 3, "?", "?"]}, **{"x:2": 48, "x:3": 320})
    assert shapes_of(settled) == {"x": (1, 3, 48, 320)}


def test_arithmetic_over_names_follows_them() -> None:
    shapes: dict[str, Shape] = {
        "ids": ["batch", "length"],
        "mask": ["batch", "past + length"],
        "grid": ["batch", "(length - 1) * 2"],
        "half": ["batch", "length // 2"],
    }
    settled = settle(shapes, batch=2, past=10, length=5)
    assert shapes_of(settled) == {"ids": (2, 5), "mask": (2, 15), "grid": (2, 8), "half": (2, 2)}


def test_arithmetic_that_gives_no_size_is_named() -> None:
    with pytest.raises(UsageError, match=r"length - 8 of m.onnx would be -3"):
        settle({"x": ["length", "length - 8"]}, length=5)


def test_a_name_with_other_signs_stays_a_name() -> None:
    settled = settle({"x": ["unk__12", "a-b.c"]}, batch=1, **{"a-b.c": 3})
    assert shapes_of(settled) == {"x": (1, 3)}


def test_what_stays_open_is_listed_with_the_option_to_give() -> None:
    with pytest.raises(ModelError) as caught:
        settle({"ids": ["batch", "length"], "mask": ["batch", "length"], "z": [1, None]})
    assert str(caught.value) == (
        "m.onnx leaves 3 dimension(s) open:\n"
        "  batch: dimension 0 of input ids, dimension 0 of input mask; give --dim batch=SIZE\n"
        "  length: dimension 1 of input ids, dimension 1 of input mask; give --dim length=SIZE\n"
        "  z:1: dimension 1 of input z; give --dim z:1=SIZE\n"
        "  (leading dimensions can be given at once with --batch SIZE)"
    )


def test_a_name_that_the_model_lacks_is_refused_with_those_it_has() -> None:
    with pytest.raises(UsageError, match="no dimension lenght; it has batch, length"):
        settle({"x": ["batch", "length"]}, batch=1, lenght=4)


def test_a_model_without_open_dimensions_says_so() -> None:
    with pytest.raises(UsageError, match="no dimension n; it has none: all of its dimensions"):
        settle({"x": [2, 3]}, n=4)


@pytest.mark.parametrize("size", [0, -1, True, 2.0, 2**63, 10**30])
def test_a_size_is_a_positive_whole_number(size: int) -> None:
    with pytest.raises(UsageError, match="give a whole number from 1 to 9223372036854775807"):
        settle({"x": ["batch", 3]}, batch=size)


def test_batch_and_a_name_that_contradict_each_other() -> None:
    with pytest.raises(UsageError, match="batch 4 and n=2 contradict"):
        settle({"x": ["n", 3]}, batch=4, n=2)
    assert shapes_of(settle({"x": ["n", 3]}, batch=2, n=2)) == {"x": (2, 3)}


def test_batch_needs_an_input_to_set() -> None:
    with pytest.raises(UsageError, match="no input with a leading dimension"):
        settle({"x": []}, batch=2)


def test_a_sequence_cannot_be_an_input() -> None:
    held = helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2]))
    entry = onnx.ValueInfoProto(name="s", type=held)
    with pytest.raises(ModelError, match=r"input s of m\.onnx is a sequence"):
        settle_inputs(helper.make_graph([], "g", [entry], []), None, {}, "m.onnx")


def test_an_input_without_a_rank_is_named(tmp_path: Path) -> None:
    entry = onnx.ValueInfoProto(name="x", type=helper.make_tensor_type_proto(1, None))
    relu = [helper.make_node("Relu", ["x"], ["y"])]
    with pytest.raises(ModelError, match=r"x of model\.onnx states no element type or no rank"):
        read(tmp_path, relu, [entry], ["y"])


def test_messages_name_the_file(tmp_path: Path) -> None:
    relu = [helper.make_node("Relu", ["x"], ["y"])]
    save(tmp_path, relu, [value("x", ["n"])], ["y"])
    with pytest.raises(ModelError, match=r"model\.onnx leaves 1 dimension"):
        read(tmp_path, relu, [value("x", ["n"])], ["y"])


def test_sizes_whose_product_cannot_be_counted_are_named() -> None:
    with pytest.raises(
        UsageError, match=r"input x of .* with batch=4611686018427387904, n=7: float32 of shape"
    ):
        settle({"x": ["batch", "n"]}, batch=2**62, n=7)
    with pytest.raises(
        UsageError, match=r"dimension n\*n of .* would be 85070591730234615847396907784232501249:"
    ):
        settle({"x": ["n*n"]}, n=2**64 - 2**63 - 1)


def test_a_name_of_any_length_is_a_name() -> None:
    for text in ("(" * 5000, "a+" * 5000 + "a", "-" * 300 + "a"):
        assert shapes_of(settle({"x": [text]}, batch=3)) == {"x": (3,)}


def test_a_negative_size_in_the_file_is_an_open_one() -> None:
    assert shapes_of(settle({"x": [-5, 4]}, batch=3)) == {"x": (3, 4)}
