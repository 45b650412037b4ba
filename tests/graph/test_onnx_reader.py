"""A whole model, read: the graphs that the onnx package carries, and exports of transformers."""

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import NodeProto, TensorProto, ValueInfoProto, helper
from onnx_models import inputs_of, named, output_shapes, read, save, shape_weight, value, weight

from fuel_gpu.errors import ModelError, UsageError
from fuel_gpu.graph.arena import Graph, TensorType
from fuel_gpu.graph.onnx_reader import load_onnx

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"

KERNELS = {
    "bvlc_alexnet": 21,
    "densenet121": 668,
    "inception_v1": 141,
    "inception_v2": 370,
    "resnet50": 175,
    "shufflenet": 170,
    "squeezenet": 65,
    "vgg19": 43,
    "zfnet512": 21,
}
"""Nodes less ConstantOfShape, Reshape, Unsqueeze and Dropout, counted in the protos."""


@pytest.mark.parametrize("name", KERNELS)
def test_light_graphs_have_one_kernel_for_each_operation(name: str) -> None:
    graph = load_onnx(LIGHT / f"light_{name}.onnx")
    kinds = [node.kind for node in graph.nodes]
    assert kinds.count("kernel") == KERNELS[name]
    assert kinds.count("input") == 1
    assert graph.node(graph.outputs[0]).type.shape[:2] == (1, 1000)
    assert graph.topological_order()[-1] == graph.outputs[-1]


@pytest.mark.parametrize("name", KERNELS)
def test_light_graphs_take_another_batch(name: str) -> None:
    once = load_onnx(LIGHT / f"light_{name}.onnx")
    many = load_onnx(LIGHT / f"light_{name}.onnx", batch=64)
    assert len(once) == len(many)
    for a, b in zip(once.nodes, many.nodes, strict=True):
        if a.kind in ("kernel", "input"):
            assert b.type.elements == 64 * a.type.elements
        elif a.kind in ("weight", "constant"):
            assert b.type == a.type


def test_light_weights_are_constants_without_inputs() -> None:
    graph = load_onnx(LIGHT / "light_resnet50.onnx")
    constants = [node for node in graph.nodes if node.kind == "constant"]
    assert len(constants) == 239
    assert all(node.inputs == () for node in constants)
    assert sum(n.type.bytes for n in graph.nodes if n.kind in ("weight", "constant")) == (
        25_610_152 * 4  # parameters, and four numbers a channel of batch normalisation
    )


def test_names_are_unique() -> None:
    for path in LIGHT.glob("light_*.onnx"):
        names = [node.name for node in load_onnx(path).nodes]
        assert len(set(names)) == len(names)
        assert "" not in names


def _attention_block(k: int, x: str) -> list[NodeProto]:
    """One head-split, as exporters write it: the shape taken from the data, piece by piece."""
    return [
        helper.make_node("Shape", [x], [f"s{k}"]),
        helper.make_node("Gather", [f"s{k}", "zero"], [f"b{k}"], axis=0),
        helper.make_node("Gather", [f"s{k}", "one"], [f"l{k}"], axis=0),
        helper.make_node("Unsqueeze", [f"b{k}", "axis0"], [f"b1{k}"]),
        helper.make_node("Unsqueeze", [f"l{k}", "axis0"], [f"l1{k}"]),
        helper.make_node("Concat", [f"b1{k}", f"l1{k}", "heads", "depth"], [f"t{k}"], axis=0),
        helper.make_node("MatMul", [x, "w"], [f"q{k}"], name=f"project{k}"),
        helper.make_node("Reshape", [f"q{k}", f"t{k}"], [f"split{k}"], name=f"split{k}"),
        helper.make_node(
            "Transpose", [f"split{k}"], [f"h{k}"], name=f"heads{k}", perm=[0, 2, 1, 3]
        ),
        helper.make_node(
            "Transpose", [f"split{k}"], [f"ht{k}"], name=f"keys{k}", perm=[0, 2, 3, 1]
        ),
        helper.make_node("MatMul", [f"h{k}", f"ht{k}"], [f"p{k}"], name=f"scores{k}"),
        helper.make_node("Softmax", [f"p{k}"], [f"a{k}"], name=f"softmax{k}"),
        helper.make_node("MatMul", [f"a{k}", f"h{k}"], [f"c{k}"], name=f"context{k}"),
        helper.make_node("Transpose", [f"c{k}"], [f"m{k}"], name=f"merge{k}", perm=[0, 2, 1, 3]),
        helper.make_node("Concat", [f"b1{k}", f"l1{k}", "width"], [f"u{k}"], axis=0),
        helper.make_node("Reshape", [f"m{k}", f"u{k}"], [f"y{k}"], name=f"joined{k}"),
    ]


@pytest.fixture
def transformer(tmp_path: Path) -> Graph:
    weights = [
        weight("w", [[0.0] * 64] * 64),
        weight("zero", 0, "int64"),
        weight("one", 1, "int64"),
        shape_weight("axis0", 0),
        shape_weight("heads", 4),
        shape_weight("depth", 16),
        shape_weight("width", 64),
    ]
    nodes = _attention_block(0, "x") + _attention_block(1, "y0")
    inputs = [value("x", ["batch", "length", 64])]
    return read(tmp_path, nodes, inputs, ["y1"], weights, batch=2, dims={"length": 128})


def test_shape_computations_vanish(transformer: Graph) -> None:
    kernels = [node.op for node in transformer.nodes if node.kind == "kernel"]
    each = ["MatMul", "Transpose", "Transpose", "MatMul", "Softmax", "MatMul", "Transpose"]
    assert kernels == each * 2
    assert [n.name for n in transformer.nodes if n.kind == "weight"] == ["w"]
    assert not [n for n in transformer.nodes if n.kind == "constant"]


def test_shapes_follow_batch_and_length(transformer: Graph) -> None:
    assert named(transformer, "split1").type == TensorType("float32", (2, 128, 4, 16))
    assert named(transformer, "scores1").type == TensorType("float32", (2, 4, 128, 128))
    assert output_shapes(transformer) == [(2, 128, 64)]


def test_reshape_is_a_view_of_its_data_alone(transformer: Graph) -> None:
    split = named(transformer, "split0")
    assert split.kind == "view"
    assert inputs_of(transformer, "split0") == ["project0"]
    assert transformer.storage(split.inputs[0]) == split.inputs[0]


def test_constants_carry_no_cost_and_no_inputs(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ConstantOfShape", ["size"], ["ones"], name="fill"),
        helper.make_node("Mul", ["ones", "scale"], ["mask"], name="scaled"),
        helper.make_node("Add", ["x", "mask"], ["y"], name="masked"),
    ]
    weights = [shape_weight("size", 3, 5), weight("scale", [2.0])]
    graph = read(tmp_path, nodes, [value("x", [3, 5])], ["y"], weights)
    assert [(n.kind, n.name) for n in graph.nodes] == [
        ("input", "x"),
        ("constant", "scaled"),
        ("kernel", "masked"),
    ]


def test_chance_is_no_constant(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("RandomNormal", [], ["noise"], name="draw", shape=[2, 3]),
        helper.make_node("Add", ["noise", "bias"], ["y"], name="shift"),
    ]
    graph = read(tmp_path, nodes, [], ["y"], [weight("bias", [1.0, 2.0, 3.0])])
    assert named(graph, "draw").kind == "kernel"
    assert named(graph, "shift").kind == "kernel"


def test_dropout_is_a_view_unless_it_trains(tmp_path: Path) -> None:
    weights = [weight("half", 0.5), weight("training", True, bool)]
    still = helper.make_node("Dropout", ["x", "half"], ["y", "mask"], name="still")
    trains = helper.make_node("Dropout", ["y", "half", "training"], ["z"], name="trains")
    graph = read(tmp_path, [still, trains], [value("x", [4])], ["z"], weights)
    assert named(graph, "still").kind == "view"
    assert named(graph, "trains").kind == "kernel"


def test_further_outputs_are_picks_where_something_reads_them(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b", "c"], name="split", axis=1),
        helper.make_node("Add", ["a", "c"], ["y"], name="sum"),
    ]
    graph = read(tmp_path, nodes, [value("x", [2, 6])], ["y"], opset=13)
    assert [(n.op, n.kind, n.name) for n in graph.nodes] == [
        ("input", "input", "x"),
        ("Split", "kernel", "split"),
        ("pick", "pick", "c"),
        ("Add", "kernel", "sum"),
    ]
    pick = named(graph, "c")
    assert pick.attributes == {"index": 2}
    assert pick.type == TensorType("float32", (2, 2))
    assert graph.carrier(2) == 1


def test_absent_inputs_are_dropped_and_their_places_kept(tmp_path: Path) -> None:
    nodes = [helper.make_node("Clip", ["x", "", "most"], ["y"], name="clip")]
    graph = read(tmp_path, nodes, [value("x", [4])], ["y"], [weight("most", 6.0)])
    assert inputs_of(graph, "clip") == ["x", "most"]
    assert named(graph, "clip").attributes["input_positions"] == (0, 2)


def test_an_absent_first_output_leaves_the_next_one_as_the_nodes_own(tmp_path: Path) -> None:
    lstm = helper.make_node("LSTM", ["x", "w", "r"], ["", "h", ""], name="lstm", hidden_size=8)
    weights = [
        weight("w", [[[0.0] * 4] * 32]),
        weight("r", [[[0.0] * 8] * 32]),
    ]
    graph = read(tmp_path, [lstm], [value("x", [5, 3, 4])], ["h"], weights)
    assert named(graph, "lstm").type == TensorType("float32", (1, 3, 8))
    assert not [n for n in graph.nodes if n.kind == "pick"]


def test_initializers_that_are_listed_as_inputs_are_weights(tmp_path: Path) -> None:
    inputs = [value("x", [2, 3]), value("w", [3, 4])]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    graph = read(tmp_path, nodes, inputs, ["y"], [weight("w", [[0.0] * 4] * 3)], ir_version=3)
    assert [(n.kind, n.name) for n in graph.nodes] == [
        ("input", "x"),
        ("weight", "w"),
        ("kernel", "product"),
    ]


def test_a_reshaped_weight_shares_its_bytes(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Reshape", ["w", "flat"], ["row"], name="flatten"),
        helper.make_node("Mul", ["x", "row"], ["y"], name="scale"),
        helper.make_node("Reshape", ["row", "flat"], ["same"], name="again"),
        helper.make_node("Add", ["y", "same"], ["z"], name="sum"),
    ]
    weights = [weight("w", [[1.0, 2.0]]), shape_weight("flat", -1)]
    graph = read(tmp_path, nodes, [value("x", [2])], ["z"], weights)
    kinds = [(n.kind, n.name) for n in graph.nodes if n.kind != "input"]
    assert ("weight", "w") in kinds
    assert not [n for kind, n in kinds if kind == "constant"]
    for reader in ("scale", "sum"):
        assert graph.node(graph.storage(named(graph, reader).inputs[1])).name == "w"


def test_nodes_are_called_by_their_name_else_their_output(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="same"),
        helper.make_node("Relu", ["a"], ["b"], name="same"),
        helper.make_node("Relu", ["b"], ["c"]),
    ]
    graph = read(tmp_path, nodes, [value("x", [1])], ["c"])
    assert [n.name for n in graph.nodes] == ["x", "same", "b", "c"]


def test_a_weight_yields_its_name_to_a_node(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "layer"], ["y"], name="layer")]
    graph = read(tmp_path, nodes, [value("x", [1])], ["y"], [weight("layer", [1.0])])
    assert named(graph, "layer").kind == "kernel"
    assert named(graph, "layer:weight").kind == "weight"


def test_local_functions_are_inlined(tmp_path: Path) -> None:
    gate = helper.make_function(
        "local",
        "Gate",
        ["a"],
        ["b"],
        [
            helper.make_node("Sigmoid", ["a"], ["s"]),
            helper.make_node("Mul", ["a", "s"], ["b"]),
        ],
        [helper.make_opsetid("", 17)],
    )
    node = helper.make_node("Gate", ["x"], ["y"], domain="local", name="gate")
    graph = helper.make_graph([node], "g", [value("x", [4])], [value("y", [4])])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, functions=[gate]), tmp_path / "m.onnx")
    loaded = load_onnx(tmp_path / "m.onnx")
    assert [n.op for n in loaded.nodes] == ["input", "Sigmoid", "Mul"]


def test_half_precision_types_are_kept(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], name="half", to=TensorProto.FLOAT16),
        helper.make_node("Cast", ["h"], ["h2"], name="same", to=TensorProto.FLOAT16),
        helper.make_node("Cast", ["h2"], ["y"], name="brain", to=TensorProto.BFLOAT16),
    ]
    graph = read(tmp_path, nodes, [value("x", [8])], ["y"])
    assert named(graph, "half").type == TensorType("float16", (8,))
    assert named(graph, "same").kind == "view"
    assert named(graph, "brain").type == TensorType("bfloat16", (8,))
    assert named(graph, "brain").type.bytes == 16


@pytest.mark.parametrize("opset", range(9, onnx.defs.onnx_opset_version() + 1))
def test_operator_sets_from_nine_on(tmp_path: Path, opset: int) -> None:
    axes: list[TensorProto] = []
    if opset < 13:
        squeeze = helper.make_node("Squeeze", ["p"], ["q"], name="squeeze", axes=[2, 3])
    else:
        squeeze = helper.make_node("Squeeze", ["p", "axes"], ["q"], name="squeeze")
        axes = [shape_weight("axes", 2, 3)]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
        squeeze,
        helper.make_node("Softmax", ["q"], ["y"], name="softmax"),
    ]
    weights = [weight("w", [[[[0.0] * 3] * 3] * 3] * 8), *axes]
    graph = read(tmp_path, nodes, [value("x", [1, 3, 8, 8])], ["y"], weights, opset=opset)
    assert named(graph, "conv").type.shape == (1, 8, 8, 8)
    assert named(graph, "squeeze").kind == "view"
    assert output_shapes(graph) == [(1, 8)]
    assert named(graph, "softmax").attributes["axis"] == (1 if opset < 13 else -1)


def test_values_are_found_by_their_onnx_names_too(tmp_path: Path) -> None:
    """Two nodes of one name: the second goes by its output, and both by theirs."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="same"),
        helper.make_node("Split", ["a"], ["b", "c"], name="same", axis=0),
        helper.make_node("Add", ["b", "c"], ["d"], name="sum"),
    ]
    graph = read(tmp_path, nodes, [value("x", [2])], ["d"], opset=13)
    by_name = {name: graph.node(node_id).name for name, node_id in graph.value_names.items()}
    assert by_name == {"x": "x", "a": "same", "b": "b", "c": "c", "d": "sum"}
    assert graph.copy().value_names == graph.value_names


def test_a_stated_output_that_its_nodes_contradict(tmp_path: Path) -> None:
    def refused(stated: ValueInfoProto, shape: list[int | str], **sizes: int) -> str:
        path = save(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], [value("x", shape)], ["y"])
        model = onnx.load(path)
        model.graph.output[0].CopyFrom(stated)
        onnx.save(model, path)
        try:
            load_onnx(path, dims=sizes)
        except ModelError as error:
            return str(error)
        return ""

    assert refused(value("y", [400, 4]), [4, 4]) == (
        "output y of model.onnx is stated as float32 [400, 4], but its nodes give float32 [4, 4]: "
        "the model is damaged; export it again"
    )
    whole = TensorProto.INT64
    assert "stated as int64 [4, 4]" in refused(value("y", [4, 4], whole), [4, 4])
    assert "stated as int64 [2, 4]" in refused(value("y", ["n", 4], whole), ["n", 4], n=2)
    assert "stated as float32 [4]" in refused(value("y", [4]), ["n", 4], n=4)
    assert not refused(value("y", ["n", None]), [4, 4])
    assert not refused(value("y", [1, 4]), ["n", 4], n=8)  # left at the size of an example


def test_a_stated_output_follows_the_batch(tmp_path: Path) -> None:
    nodes = [helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])]
    path = save(tmp_path, nodes, [value("x", [1, 4])], ["y"])
    model = onnx.load(path)
    model.graph.output[0].CopyFrom(value("y", [4, 1]))
    onnx.save(model, path)
    assert output_shapes(load_onnx(path, batch=8)) == [(4, 8)]


def test_a_value_of_more_bytes_than_can_be_counted(tmp_path: Path) -> None:
    inputs = [value("x", [2**31]), value("one", [2**30, 1])]
    nodes = [helper.make_node("Add", ["x", "one"], ["y"])]
    with pytest.raises(
        ModelError,
        match=r"y of model.onnx: float32 of shape \[1073741824, 2147483648\] takes "
        r"9223372036854775808 bytes, more than 2\*\*63 - 1",
    ):
        read(tmp_path, nodes, inputs, ["y"])


def test_arguments_of_another_type(tmp_path: Path) -> None:
    path = save(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], [value("x", ["n"])], ["y"])
    wrong: Any = None
    with pytest.raises(UsageError, match="path=None is no path"):
        load_onnx(wrong)
    with pytest.raises(UsageError, match="the path is empty"):
        load_onnx("")
    for wrong in (5, ["n"], {1: 2}):
        with pytest.raises(UsageError, match=r"dims=.* is no mapping of dimension names to sizes"):
            load_onnx(path, dims=wrong)
    wrong = "8"
    with pytest.raises(UsageError, match="batch='8' is no size"):
        load_onnx(path, batch=wrong)
    with pytest.raises(UsageError, match="n='8' is no size"):
        load_onnx(path, dims={"n": wrong})


def test_a_missing_value_names_its_reader_and_the_file_once(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "later"], ["y"], name="sum")]
    with pytest.raises(ModelError) as caught:
        read(tmp_path, nodes, [value("x", [1])], ["y"])
    assert str(caught.value).startswith("an input of node sum (Add) of model.onnx is later, which")
    with pytest.raises(ModelError, match=r"^an output of model.onnx is z, which"):
        read(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], [value("x", [1])], ["z"])


def test_a_node_that_breaks_what_its_reading_relies_on_is_named(tmp_path: Path) -> None:
    node = helper.make_node("SequenceAt", ["s", "at"], ["y"], name="odd")
    nodes = [helper.make_node("SequenceConstruct", ["x"], ["s"]), node]
    empty = weight("at", [], "int64")
    with pytest.raises(ModelError, match=r"node odd \(SequenceAt\) of model.onnx cannot be read"):
        read(tmp_path, nodes, [value("x", [1])], ["y"], [empty])


@pytest.mark.parametrize("message", ["node", "initializer"])
def test_every_refusal_names_the_file(tmp_path: Path, message: str) -> None:
    weights = [weight("w", [1.0])]
    weights[0].data_type = 77 if message == "initializer" else 1
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides="abc")
    with pytest.raises(ModelError, match=f"{message}.*model.onnx|model.onnx.*{message}"):
        read(tmp_path, [node], [value("x", [1, 1, 4])], ["y"], weights)
