"""Models that no reader may take at their word: names given twice, no text, impossible opsets."""

from pathlib import Path

import onnx
import pytest
from onnx import NodeProto, TensorProto, helper
from onnx_models import body, output_shapes, read, save, value, weight

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.onnx_reader import load_onnx

X = value("x", [2, 2])
NEWEST = onnx.defs.onnx_opset_version()


def relu(source: str, target: str, name: str = "") -> NodeProto:
    return helper.make_node("Relu", [source], [target], name=name)


def test_two_nodes_that_give_one_value(tmp_path: Path) -> None:
    nodes = [relu("x", "a", "first"), relu("x", "a", "second")]
    with pytest.raises(
        ModelError,
        match=r"node second \(Relu\) of model.onnx gives a, which node first gives already",
    ):
        read(tmp_path, nodes, [X], ["a"])


def test_a_node_that_gives_an_input_or_a_weight(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="gives x, which an input gives already"):
        read(tmp_path, [relu("x", "x")], [X], ["x"])
    with pytest.raises(ModelError, match="gives w, which an initializer gives already"):
        read(tmp_path, [relu("x", "w")], [X], ["w"], [weight("w", [1.0])])


def test_a_body_gives_each_value_once(tmp_path: Path) -> None:
    twice = body([relu("x", "t"), relu("x", "t")], [], ["t"])
    node = helper.make_node("If", ["c"], ["y"], then_branch=twice, else_branch=twice)
    with pytest.raises(ModelError, match="gives t, which another node gives already"):
        read(tmp_path, [node], [X, value("c", [], TensorProto.BOOL)], ["y"])


def test_absent_outputs_have_no_name_to_repeat(tmp_path: Path) -> None:
    nodes = [relu("x", ""), relu("x", ""), relu("x", "y")]
    assert output_shapes(read(tmp_path, nodes, [X], ["y"])) == [(2, 2)]


def test_two_inputs_or_initializers_of_one_name(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"model.onnx has two inputs named x"):
        read(tmp_path, [relu("x", "y")], [X, value("x", [3])], ["y"])
    weights = [weight("w", [1.0]), weight("w", [2.0])]
    with pytest.raises(ModelError, match="two initializers named w"):
        read(tmp_path, [relu("w", "y")], [], ["y"], weights)


@pytest.mark.parametrize("part", [b"NODE", b"AAAA", b"Relu"], ids=["node", "tensor", "operator"])
def test_names_that_are_no_text(tmp_path: Path, part: bytes) -> None:
    nodes = [relu("x", "AAAA", "NODE"), relu("AAAA", "y")]
    path = save(tmp_path, nodes, [X], ["y"])
    path.write_bytes(path.read_bytes().replace(part, b"\xff\xfe\x80N"))
    with pytest.raises(ModelError, match=r"model.onnx .*no UTF-8 text|damaged"):
        load_onnx(path)


@pytest.mark.parametrize("version", [0, -3])
def test_a_version_that_does_not_exist(tmp_path: Path, version: int) -> None:
    with pytest.raises(ModelError, match=f"version {version} of operator set ai.onnx: versions"):
        read(tmp_path, [relu("x", "y")], [X], ["y"], opset=version)


def test_a_version_that_the_library_does_not_know_yet(tmp_path: Path) -> None:
    with pytest.raises(
        ModelError, match=rf"version {NEWEST + 1} of operator set ai.onnx.*up to {NEWEST}"
    ):
        read(tmp_path, [relu("x", "y")], [X], ["y"], opset=NEWEST + 1)
    assert output_shapes(read(tmp_path, [relu("x", "y")], [X], ["y"], opset=NEWEST)) == [(2, 2)]


def _with_imports(path: Path, *imports: tuple[str, int]) -> Path:
    model = onnx.load(path)
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in imports)
    onnx.save(model, path)
    return path


def test_an_operator_set_that_is_not_imported(tmp_path: Path) -> None:
    blur = helper.make_node("Blur", ["x"], ["y"], name="blur", domain="org.example")
    path = save(tmp_path, [blur], [X], ["y"], stated=[value("y", [2, 2])])
    assert output_shapes(load_onnx(path)) == [(2, 2)]
    with pytest.raises(
        ModelError,
        match=r"node blur \(org.example.Blur\) of model.onnx is of operator set org.example, which",
    ):
        load_onnx(_with_imports(path, ("", 17)))


def test_imports_that_no_node_uses_do_no_harm(tmp_path: Path) -> None:
    path = save(tmp_path, [relu("x", "y")], [X], ["y"])
    load_onnx(_with_imports(path, ("", 17), ("ai.onnx.ml", 999), ("org.example", 0)))
    load_onnx(_with_imports(path, ("", 17), ("ai.onnx", 17)))
    with pytest.raises(ModelError, match=r"operator set ai.onnx in versions 17 and 13"):
        load_onnx(_with_imports(path, ("", 17), ("ai.onnx", 13)))


def test_functions_that_call_themselves(tmp_path: Path) -> None:
    node = helper.make_node("F", ["x"], ["y"], domain="loc")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("loc", 1)]
    again = helper.make_node("F", ["p"], ["q"], domain="loc")
    function = helper.make_function("loc", "F", ["p"], ["q"], [again], opsets)
    graph = helper.make_graph([node], "g", [X], [value("y", [2, 2])])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, functions=[function]), path)
    with pytest.raises(ModelError, match=r"functions of .*model.onnx cannot be inlined: .*Cycle"):
        load_onnx(path)
