"""If, Loop and Scan: one node that carries its bodies, or the branch that is always taken."""

from pathlib import Path

import pytest
from onnx import NodeProto, TensorProto, helper
from onnx_models import body, inputs_of, named, output_shapes, read, shape_weight, value, weight

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import TensorType

X = value("x", [2, 8])
COND = value("cond", [], TensorProto.BOOL)
W = weight("w", [[0.0] * 4] * 8)
B = weight("b", [[0.0] * 4] * 8)


def test_if_carries_both_branches_and_reads_what_they_capture(tmp_path: Path) -> None:
    product = body([helper.make_node("MatMul", ["x", "w"], ["t"])], [], ["t"])
    other = body(
        [helper.make_node("MatMul", ["x", "inner"], ["e"])],
        [],
        ["e"],
        [weight("inner", [[1.0] * 4] * 8)],
    )
    node = helper.make_node(
        "If", ["cond"], ["y"], name="if", then_branch=product, else_branch=other
    )
    graph = read(tmp_path, [node], [COND, X], ["y"], [W])
    found = named(graph, "if")
    assert found.type == TensorType("float32", (2, 4))
    assert inputs_of(graph, "if") == ["cond", "x", "w", "inner"]
    assert [[(n.op, n.kind) for n in each.nodes] for each in found.bodies] == [
        [("input", "input"), ("weight", "weight"), ("MatMul", "kernel")]
    ] * 2
    assert sum(n.type.bytes for n in graph.nodes if n.kind == "weight") == 2 * 8 * 4 * 4


def test_if_with_a_known_condition_stands_for_its_branch(tmp_path: Path) -> None:
    """Exporters ask for the rank or a size of 1, which is known once shapes are."""
    squeeze = body([helper.make_node("Squeeze", ["x", "axis"], ["t"])], [], ["t"])
    keep = body([helper.make_node("Identity", ["x"], ["e"])], [], ["e"])
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "axis"], ["size"], axis=0),
        helper.make_node("Equal", ["size", "one"], ["is_one"]),
        helper.make_node("If", ["is_one"], ["u"], then_branch=squeeze, else_branch=keep),
        helper.make_node("Relu", ["u"], ["y"], name="relu"),
    ]
    weights = [shape_weight("axis", 1), shape_weight("one", 1)]
    one = read(tmp_path, nodes, [value("x", [4, "n"])], ["y"], weights, dims={"n": 1})
    assert output_shapes(one) == [(4,)]
    assert [n.op for n in one.nodes] == ["input", "Squeeze", "Relu"]
    five = read(tmp_path, nodes, [value("x", [4, "n"])], ["y"], weights, dims={"n": 5})
    assert output_shapes(five) == [(4, 5)]


def test_if_whose_branches_differ_takes_the_larger_and_says_so(tmp_path: Path) -> None:
    small = body([helper.make_node("Slice", ["x", "zero", "one"], ["t"])], [], ["t"])
    large = body([helper.make_node("Relu", ["x"], ["e"])], [], ["e"])
    node = helper.make_node("If", ["cond"], ["y"], name="if", then_branch=small, else_branch=large)
    weights = [shape_weight("zero", 0), shape_weight("one", 1)]
    graph = read(tmp_path, [node], [COND, X], ["y"], weights)
    assert named(graph, "if").type.shape == (2, 8)
    assert named(graph, "if").attributes["shape_is_bound"] is True


def test_if_whose_other_branch_cannot_be_stands_for_the_one_that_can(tmp_path: Path) -> None:
    """One model for two rates: the window's length shows which of them is meant."""
    wide = body([helper.make_node("MatMul", ["x", "w"], ["t"], name="wide")], [], ["t"])
    narrow = body([helper.make_node("Reshape", ["x", "odd"], ["e"], name="narrow")], [], ["e"])
    node = helper.make_node("If", ["cond"], ["y"], name="if", then_branch=narrow, else_branch=wide)
    graph = read(tmp_path, [node], [COND, X], ["y"], [W, shape_weight("odd", 5, 5)])
    assert [n.op for n in graph.nodes if n.kind == "kernel"] == ["MatMul"]
    assert output_shapes(graph) == [(2, 4)]
    both = helper.make_node("If", ["cond"], ["y"], then_branch=narrow, else_branch=narrow)
    with pytest.raises(ModelError, match=r"node narrow \(Reshape\)"):
        read(tmp_path, [both], [COND, X], ["y"], [W, shape_weight("odd", 5, 5)])


def _loop(condition_out: str, start: str = "start") -> list[NodeProto]:
    """A loop that multiplies a state by a weight and keeps every state."""
    inner = body(
        [
            helper.make_node("MatMul", ["state", "square"], ["next"]),
            helper.make_node("ReduceSum", ["next"], ["total"], keepdims=0),
            helper.make_node("Less", ["total", "limit"], ["below"]),
            helper.make_node("Identity", ["go_on"], ["same"]),
        ],
        [value("i", [], TensorProto.INT64), value("go_on", [], TensorProto.BOOL), X],
        [condition_out, "next", "next"],
        [weight("limit", 1.0)],
    )
    inner.input[2].name = "state"
    return [
        helper.make_node("Loop", ["trips", start, "x"], ["last", "all"], name="loop", body=inner)
    ]


SQUARE = weight("square", [[0.0] * 8] * 8)
TRIPS = [weight("trips", 5, "int64"), weight("start", True, bool), SQUARE]


def test_loop_of_a_known_trip_count(tmp_path: Path) -> None:
    graph = read(tmp_path, _loop("same"), [X], ["last", "all"], TRIPS)
    loop = named(graph, "loop")
    assert loop.attributes["trip_count"] == 5
    assert output_shapes(graph) == [(2, 8), (5, 2, 8)]
    assert "square" in inputs_of(graph, "loop")
    (inner,) = loop.bodies
    assert [n.name for n in inner.nodes if n.kind == "input"] == ["i", "go_on", "state"]


def test_loop_that_data_ends_has_no_known_trip_count(tmp_path: Path) -> None:
    graph = read(tmp_path, _loop("below"), [X], ["last", "all"], TRIPS)
    loop = named(graph, "loop")
    assert loop.attributes["trip_count"] is None
    assert output_shapes(graph) == [(2, 8), (1, 2, 8)]


def test_loop_that_a_condition_may_skip_counts_every_trip(tmp_path: Path) -> None:
    """Each iteration hands the condition on as it came: all trips or none."""
    graph = read(tmp_path, _loop("same", "cond"), [COND, X], ["last", "all"], TRIPS)
    loop = named(graph, "loop")
    assert loop.attributes["trip_count"] == 5
    assert loop.attributes["trip_count_is_bound"] is True
    assert output_shapes(graph) == [(2, 8), (5, 2, 8)]


def test_loop_whose_state_grows_adds_as_much_each_time(tmp_path: Path) -> None:
    inner = body(
        [helper.make_node("Concat", ["state", "x"], ["next"], axis=0)],
        [
            value("i", [], TensorProto.INT64),
            value("go_on", [], TensorProto.BOOL),
            value("state", None),
        ],
        ["go_on", "next"],
    )
    node = helper.make_node("Loop", ["trips", "", "x"], ["y"], name="loop", body=inner)
    graph = read(tmp_path, [node], [X], ["y"], [weight("trips", 3, "int64")])
    assert output_shapes(graph) == [(2 + 3 * 2, 8)]
    assert named(graph, "loop").attributes["shape_is_bound"] is True


def test_loop_constants_that_no_iteration_changes_stay_known(tmp_path: Path) -> None:
    inner = body(
        [
            helper.make_node("Reshape", ["state", "target"], ["flat"]),
            helper.make_node("Reshape", ["flat", "back"], ["next"]),
        ],
        [
            value("i", [], TensorProto.INT64),
            value("go_on", [], TensorProto.BOOL),
            value("state", [2, 8]),
            value("target", [1], TensorProto.INT64),
        ],
        ["go_on", "next", "target"],
        [shape_weight("back", 2, 8)],
    )
    node = helper.make_node(
        "Loop", ["trips", "", "x", "flat_shape"], ["y", ""], name="loop", body=inner
    )
    weights = [weight("trips", 3, "int64"), shape_weight("flat_shape", 16)]
    graph = read(tmp_path, [node], [X], ["y"], weights)
    assert output_shapes(graph) == [(2, 8)]


def test_loop_that_gathers_a_sequence(tmp_path: Path) -> None:
    inner = body(
        [helper.make_node("SequenceInsert", ["held", "x"], ["longer"])],
        [
            value("i", [], TensorProto.INT64),
            value("go_on", [], TensorProto.BOOL),
            value("held", None),
        ],
        ["go_on", "longer"],
    )
    nodes = [
        helper.make_node("SequenceEmpty", [], ["empty"]),
        helper.make_node("Loop", ["trips", "", "empty"], ["held_all"], name="loop", body=inner),
        helper.make_node("ConcatFromSequence", ["held_all"], ["y"], axis=0, new_axis=1),
    ]
    graph = read(tmp_path, nodes, [X], ["y"], [weight("trips", 4, "int64")])
    assert output_shapes(graph) == [(4, 2, 8)]


def test_scan_reads_slices_and_stacks_outputs(tmp_path: Path) -> None:
    inner = body(
        [
            helper.make_node("Add", ["state", "slice"], ["next"]),
            helper.make_node("MatMul", ["next", "w"], ["out"]),
        ],
        [value("state", None), value("slice", None)],
        ["next", "out"],
    )
    node = helper.make_node(
        "Scan",
        ["begin", "x3"],
        ["last", "outs"],
        name="scan",
        body=inner,
        num_scan_inputs=1,
        scan_input_axes=[1],
        scan_output_axes=[1],
    )
    inputs = [value("begin", [2, 8]), value("x3", [2, 7, 8])]
    graph = read(tmp_path, [node], inputs, ["last", "outs"], [W])
    assert named(graph, "scan").attributes["trip_count"] == 7
    assert output_shapes(graph) == [(2, 8), (2, 7, 4)]
    assert inputs_of(graph, "scan") == ["begin", "x3", "w"]


def test_bodies_in_bodies_reach_through(tmp_path: Path) -> None:
    innermost = body([helper.make_node("MatMul", ["state", "square"], ["t"])], [], ["t"])
    other = body([helper.make_node("Relu", ["state"], ["e"])], [], ["e"])
    inner = body(
        [helper.make_node("If", ["cond"], ["next"], then_branch=innermost, else_branch=other)],
        [
            value("i", [], TensorProto.INT64),
            value("go_on", [], TensorProto.BOOL),
            value("state", None),
        ],
        ["go_on", "next"],
    )
    node = helper.make_node("Loop", ["trips", "", "x"], ["y"], name="loop", body=inner)
    graph = read(tmp_path, [node], [COND, X], ["y"], TRIPS)
    assert inputs_of(graph, "loop") == ["trips", "x", "cond", "square"]
    assert [n.type.shape for n in graph.nodes if n.name == "square"] == [(8, 8)]


def test_a_body_that_does_not_take_what_it_is_given(tmp_path: Path) -> None:
    inner = body([helper.make_node("Relu", ["a"], ["b"])], [value("a", [2, 8])], ["b"])
    node = helper.make_node("Loop", ["trips", "", "x"], ["y"], name="loop", body=inner)
    with pytest.raises(ModelError, match=r"node loop \(Loop\) of model.onnx: its body"):
        read(tmp_path, [node], [X], ["y"], TRIPS)


def test_a_nested_graph_of_another_kind_is_refused(tmp_path: Path) -> None:
    inner = body([helper.make_node("Relu", ["a"], ["b"])], [value("a", [2, 8])], ["b"])
    node = helper.make_node("Repeat", ["x"], ["y"], domain="com.microsoft", name="odd", body=inner)
    with pytest.raises(ModelError, match="node odd"):
        read(tmp_path, [node], [X], ["y"])
