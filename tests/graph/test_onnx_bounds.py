"""Shapes that depend on data: the most that they can be, or what the model states."""

from pathlib import Path
from typing import Any

import pytest
from onnx import NodeProto, TensorProto, ValueInfoProto, helper
from onnx_models import named, output_shapes, read, value, weight

from fuel_gpu.errors import ModelError

X = value("x", [3, 4])
N = value("n", [1], TensorProto.INT64)


def bound(folder: Path, node: NodeProto, *inputs: ValueInfoProto) -> tuple[int, ...]:
    """Read one node and give its bound, which must be marked as one."""
    graph = read(folder, [node], [X, *inputs], [node.output[0]])
    assert named(graph, node.name).attributes["shape_is_bound"] is True
    return output_shapes(graph)[0]


def test_nonzero_finds_at_most_every_element(tmp_path: Path) -> None:
    assert bound(tmp_path, helper.make_node("NonZero", ["x"], ["y"], name="f")) == (2, 12)


def test_topk_with_a_computed_k_keeps_at_most_all(tmp_path: Path) -> None:
    node = helper.make_node("TopK", ["x", "n"], ["y", "i"], name="f", axis=1)
    assert bound(tmp_path, node, N) == (3, 4)


def test_a_slice_with_computed_limits_is_at_most_the_data(tmp_path: Path) -> None:
    node = helper.make_node("Slice", ["x", "n", "n"], ["y"], name="f")
    assert bound(tmp_path, node, N) == (3, 4)


@pytest.mark.parametrize(("axis", "shape"), [(None, (2,)), (0, (2, 4)), (-1, (3, 2))])
def test_compress_keeps_at_most_what_its_condition_holds(
    tmp_path: Path, axis: int | None, shape: tuple[int, ...]
) -> None:
    given: dict[str, Any] = {} if axis is None else {"axis": axis}
    node = helper.make_node("Compress", ["x", "c"], ["y"], name="f", **given)
    assert bound(tmp_path, node, value("c", [2], TensorProto.BOOL)) == shape


@pytest.mark.parametrize(("axis", "shape"), [(None, (12,)), (1, (3, 4))])
def test_unique_keeps_at_most_all(tmp_path: Path, axis: int | None, shape: tuple[int, ...]) -> None:
    given: dict[str, Any] = {} if axis is None else {"axis": axis}
    assert bound(tmp_path, helper.make_node("Unique", ["x"], ["y"], name="f", **given)) == shape


@pytest.mark.parametrize(("most", "rows"), [(10, 2 * 5 * 10), (1000, 2 * 5 * 40)])
def test_suppression_keeps_so_many_of_each_class(tmp_path: Path, most: int, rows: int) -> None:
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most"], ["y"], name="nms")
    inputs = [value("boxes", [2, 40, 4]), value("scores", [2, 5, 40])]
    graph = read(tmp_path, [node], inputs, ["y"], [weight("most", [most], "int64")])
    assert output_shapes(graph) == [(rows, 3)]


def test_what_follows_a_bound_is_bounded_too(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["where"], name="find"),
        helper.make_node("Transpose", ["where"], ["rows"], name="turn"),
        helper.make_node("GatherND", ["x", "rows"], ["y"], name="take"),
        helper.make_node("Relu", ["x"], ["z"], name="apart"),
    ]
    graph = read(tmp_path, nodes, [X], ["y", "z"])
    assert named(graph, "take").type.shape == (12,)
    assert named(graph, "take").attributes["shape_is_bound"] is True
    assert "shape_is_bound" not in named(graph, "apart").attributes


def test_what_the_model_states_comes_before_a_bound(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["where"], name="find"),
        helper.make_node("Transpose", ["where"], ["y"]),
    ]
    stated = [value("where", [2, "found"], TensorProto.INT64)]
    graph = read(tmp_path, nodes, [value("x", ["found", 4])], ["y"], batch=5, stated=stated)
    assert named(graph, "find").type.shape == (2, 5)
    assert "shape_is_bound" not in named(graph, "find").attributes


def test_a_shape_without_a_bound_names_the_node_and_dimension(tmp_path: Path) -> None:
    node = helper.make_node("Tile", ["x", "s"], ["y"], name="grow")
    with pytest.raises(ModelError) as caught:
        read(tmp_path, [node], [X, value("s", [2], TensorProto.INT64)], ["y"])
    assert "node grow (Tile) of model.onnx: dimension 0, 1 of its shape stays unknown" in str(
        caught.value
    )
    assert str(caught.value).endswith("state it in the model's value_info")


def test_an_unknown_operator_is_named(tmp_path: Path) -> None:
    node = helper.make_node("Blur", ["x"], ["y"], domain="org.example", name="blur")
    with pytest.raises(
        ModelError, match=r"node blur \(org.example.Blur\) of model.onnx: its shape"
    ):
        read(tmp_path, [node], [X], ["y"])


def test_an_unknown_operator_whose_output_is_stated_is_kept(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Blur", ["x"], ["b"], domain="org.example", name="blur"),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    stated = [value("b", ["batch", 5])]
    graph = read(tmp_path, nodes, [value("x", ["batch", 4])], ["y"], batch=3, stated=stated)
    assert named(graph, "blur").op == "org.example.Blur"
    assert named(graph, "blur").type.shape == (3, 5)
