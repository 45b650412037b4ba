"""Sequences and optionals: the tensors in them are followed one by one."""

from pathlib import Path

import pytest
from onnx import TensorProto, helper
from onnx_models import named, output_shapes, read, shape_weight, value, weight

from fuel_gpu.errors import ModelError

AT = {k: weight(f"at{k}", k, "int64") for k in range(3)}


def test_a_tensor_is_split_and_put_together_again(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("SplitToSequence", ["x", "parts"], ["s"], axis=1, name="split"),
        helper.make_node("SequenceAt", ["s", "at1"], ["second"], name="second"),
        helper.make_node("ConcatFromSequence", ["s"], ["joined"], axis=0, name="join"),
    ]
    weights = [shape_weight("parts", 2, 3, 1), AT[1]]
    graph = read(tmp_path, nodes[:2], [value("x", [4, 6])], ["second"], weights)
    assert named(graph, "split").type.shape == (24,)  # every element of the sequence in one row
    assert output_shapes(graph) == [(4, 3)]
    equal = [weight("parts", 2, "int64")]
    graph = read(tmp_path, [nodes[0], nodes[2]], [value("x", [4, 6])], ["joined"], equal)
    assert output_shapes(graph) == [(12, 2)]


@pytest.mark.parametrize(("keep", "shape"), [(1, (4, 1)), (0, (4,))])
def test_without_sizes_each_slice_is_one(tmp_path: Path, keep: int, shape: tuple[int, ...]) -> None:
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["s"], axis=1, keepdims=keep),
        helper.make_node("SequenceAt", ["s", "at0"], ["y"]),
    ]
    graph = read(tmp_path, nodes, [value("x", [4, 6])], ["y"], [AT[0]])
    assert output_shapes(graph) == [shape]


def test_insert_and_erase_keep_the_order(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["a", "b"], ["s"]),
        helper.make_node("SequenceInsert", ["s", "c", "at1"], ["acb"]),
        helper.make_node("SequenceErase", ["acb", "at0"], ["cb"]),
        helper.make_node("SequenceAt", ["cb", "at0"], ["first"]),
        helper.make_node("SequenceAt", ["cb", "at1"], ["second"]),
    ]
    inputs = [value("a", [1]), value("b", [2]), value("c", [3])]
    graph = read(tmp_path, nodes, inputs, ["first", "second"], [AT[0], AT[1]])
    assert output_shapes(graph) == [(3,), (2,)]


def test_the_length_of_a_sequence_is_known(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["a", "a", "a"], ["s"]),
        helper.make_node("SequenceLength", ["s"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "axis"], ["size"]),
        helper.make_node("ConstantOfShape", ["size"], ["y"]),
    ]
    graph = read(tmp_path, nodes, [value("a", [2])], ["y"], [shape_weight("axis", 0)])
    assert output_shapes(graph) == [(3,)]


def test_at_a_place_that_data_names_the_largest_counts(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["a", "b"], ["s"]),
        helper.make_node("SequenceAt", ["s", "k"], ["y"]),
    ]
    inputs = [value("a", [5]), value("b", [7]), value("k", [], TensorProto.INT64)]
    assert output_shapes(read(tmp_path, nodes, inputs, ["y"])) == [(7,)]


def test_an_optional_that_is_there(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Optional", ["x"], ["o"]),
        helper.make_node("OptionalHasElement", ["o"], ["has"]),
        helper.make_node("OptionalGetElement", ["o"], ["g"]),
        helper.make_node("Where", ["has", "g", "x"], ["y"]),
    ]
    assert output_shapes(read(tmp_path, nodes, [value("x", [3])], ["y"], opset=18)) == [(3,)]


def test_a_split_by_data_is_refused(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("SplitToSequence", ["x", "parts"], ["s"], name="split"),
        helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0),
    ]
    inputs = [value("x", [4, 6]), value("parts", [2], TensorProto.INT64)]
    with pytest.raises(ModelError, match=r"node split .* stays unknown"):
        read(tmp_path, nodes, inputs, ["y"])
