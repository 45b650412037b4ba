"""A model that fixes its batch takes another one: hard-coded shapes follow, or it is refused."""

from pathlib import Path

import pytest
from onnx import NodeProto, TensorProto, helper
from onnx_models import Shape, named, output_shapes, read, shape_weight, value, weight

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import Graph


def reshaped(
    folder: Path, shape: Shape, target: tuple[int, ...], *before: NodeProto, batch: int = 8
) -> Graph:
    """Reshape an input, by way of other nodes, to a target stored in the model."""
    last = before[-1].output[0] if before else "x"
    nodes = [*before, helper.make_node("Reshape", [last, "target"], ["y"], name="reshape")]
    return read(
        folder, nodes, [value("x", shape)], ["y"], [shape_weight("target", *target)], batch=batch
    )


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        ([1, 2048, 1, 1], (1, 2048), (8, 2048)),
        ([1, 2048, 1, 1], (1, -1), (8, 2048)),
        ([1, 2048, 1, 1], (-1, 2048), (8, 2048)),
        ([1, 2048, 1, 1], (0, -1), (8, 2048)),
        ([1, 197, 768], (1, 197, 12, 64), (8, 197, 12, 64)),
        ([1, 197, 768], (197, 768), (8 * 197, 768)),
        ([1, 12, 197, 64], (12, 197, 64), (8 * 12, 197, 64)),
        ([1, 12, 197, 64], (12, -1, 64), (8 * 12, 197, 64)),
        ([2, 6, 4], (2, 24), (8, 24)),
        ([2, 6, 4], (12, 4), (48, 4)),
    ],
)
def test_the_batch_stays_in_front(
    tmp_path: Path, shape: Shape, target: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert output_shapes(reshaped(tmp_path, shape, target)) == [expected]


def test_a_batch_behind_the_sequence_stays_there(tmp_path: Path) -> None:
    """As torch's attention writes it: (length, batch, width), then heads folded into the batch."""
    turn = helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2])
    graph = reshaped(tmp_path, [1, 197, 768], (197, 12, 64), turn)
    assert output_shapes(graph) == [(197, 8 * 12, 64)]
    graph = reshaped(tmp_path, [1, 197, 768], (197, -1, 768), turn)
    assert output_shapes(graph) == [(197, 8, 768)]


def test_a_computed_target_follows_by_itself(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Slice", ["s", "zero", "one"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["y"]),
    ]
    weights = [shape_weight("zero", 0), shape_weight("one", 1), shape_weight("rest", -1)]
    graph = read(tmp_path, nodes, [value("x", [1, 3, 4])], ["y"], weights, batch=5)
    assert output_shapes(graph) == [(5, 12)]


def test_resize_to_stored_sizes_keeps_the_batch(tmp_path: Path) -> None:
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear")
    weights = [shape_weight("sizes", 1, 3, 16, 16)]
    graph = read(tmp_path, [node], [value("x", [1, 3, 8, 8])], ["y"], weights, batch=4)
    assert output_shapes(graph) == [(4, 3, 16, 16)]


def test_what_does_not_depend_on_the_batch_stays(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Reshape", ["w", "target"], ["row"], name="row"),
        helper.make_node("Mul", ["x", "row"], ["y"]),
    ]
    weights = [weight("w", [[1.0], [2.0], [3.0]]), shape_weight("target", 1, 3)]
    graph = read(tmp_path, nodes, [value("x", [1, 3])], ["y"], weights, batch=7)
    assert named(graph, "row").type.shape == (1, 3)
    assert output_shapes(graph) == [(7, 3)]


def test_all_inputs_of_the_same_leading_dimension_follow(tmp_path: Path) -> None:
    nodes = [helper.make_node("Concat", ["a", "b"], ["y"], axis=1)]
    inputs = [value("a", [2, 3]), value("b", [2, 5])]
    assert output_shapes(read(tmp_path, nodes, inputs, ["y"], batch=6)) == [(6, 8)]


def test_a_constant_that_holds_the_batch_is_refused(tmp_path: Path) -> None:
    """A class token stored for one image cannot stand before eight."""
    node = helper.make_node("Concat", ["token", "x"], ["y"], axis=1, name="prepend")
    weights = [weight("token", [[[0.0] * 4]])]
    with pytest.raises(ModelError, match=r"node prepend \(Concat\) of model.onnx"):
        read(tmp_path, [node], [value("x", [1, 16, 4])], ["y"], weights, batch=8)


def test_a_slice_of_the_batch_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("Slice", ["x", "zero", "one"], ["y"], name="first")
    weights = [shape_weight("zero", 0), shape_weight("one", 1)]
    with pytest.raises(ModelError, match=r"node first .* the batch is built into its limits"):
        read(tmp_path, [node], [value("x", [1, 4])], ["y"], weights, batch=8)


def test_a_shape_that_does_not_follow_is_refused_with_both_shapes(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"], axis=0),
        helper.make_node("Concat", ["f", "w"], ["y"], axis=1, name="append"),
    ]
    weights = [weight("w", [[0.0, 0.0]])]
    with pytest.raises(ModelError) as caught:
        read(tmp_path, nodes, [value("x", [1, 4])], ["y"], weights, batch=8)
    assert str(caught.value) == (
        "node append (Concat) of model.onnx gives [1, 6] at the model's batch 1 and [1, 34] at "
        "batch 8: the batch is built into it; export the model with a symbolic batch, or plan it "
        "at its own batch"
    )


def test_a_stated_custom_output_follows_too(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Blur", ["x"], ["b"], domain="org.example", name="blur"),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    stated = [value("b", [1, 5])]
    graph = read(tmp_path, nodes, [value("x", [1, 4])], ["y"], batch=3, stated=stated)
    assert output_shapes(graph) == [(3, 5)]


def test_integer_inputs_follow_as_well(tmp_path: Path) -> None:
    nodes = [helper.make_node("Gather", ["table", "ids"], ["y"])]
    graph = read(
        tmp_path,
        nodes,
        [value("ids", [1, 7], TensorProto.INT64)],
        ["y"],
        [weight("table", [[0.0] * 4] * 9)],
        batch=3,
    )
    assert output_shapes(graph) == [(3, 7, 4)]


def test_a_node_that_cannot_take_the_batch_says_that_another_is_built_in(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "w"], ["y"], name="add")]
    weights = [weight("w", [[0.0, 0.0], [0.0, 0.0]])]
    with pytest.raises(ModelError, match=r"node add \(Add\).*batch 2 is built into it"):
        read(tmp_path, nodes, [value("x", [2, 2])], ["y"], weights, batch=3)
