"""Files that are no models are refused in one line that says what to do; weights stay unread."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import output_shapes, save, shape_weight, value, weight

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.onnx_file import read_model
from fuel_gpu.graph.onnx_reader import load_onnx
from fuel_gpu.graph.onnx_skim import CutShortError, skim

RELU = [helper.make_node("Relu", ["x"], ["y"])]


def refusal(path: Path) -> str:
    """Read what must be refused, and give the message."""
    with pytest.raises(ModelError) as caught:
        load_onnx(path)
    return str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "no.onnx"
    assert refusal(path) == f"{path} does not exist: check the path to the .onnx file"


def test_a_path_through_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "could not be read" in refusal(tmp_path / "file" / "m.onnx")


def test_a_folder_names_the_models_in_it(tmp_path: Path) -> None:
    save(tmp_path, RELU, [value("x", [1])], ["y"])
    assert refusal(tmp_path).endswith("name the .onnx file itself (it holds model.onnx)")


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").touch()
    assert refusal(tmp_path / "m.onnx").endswith("is empty: download or export the model again")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.onnx")
    assert "is no regular file" in refusal(tmp_path / "m.onnx")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads anything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = save(tmp_path, RELU, [value("x", [1])], ["y"])
    path.chmod(0)
    assert refusal(path).endswith("may not be read: give yourself read permission")


@pytest.mark.parametrize(
    "contents",
    [b"not a model at all", b"\x00" * 64, b"\x89PNG\r\n\x1a\n" + bytes(100), b"PK\x03\x04zip"],
    ids=["text", "zeros", "image", "archive"],
)
def test_another_kind_of_file(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(contents)
    message = refusal(path)
    assert message.startswith(str(path))
    assert "again" in message


def test_a_git_lfs_pointer(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    assert "run `git lfs pull`" in refusal(path)


def test_a_model_cut_short_anywhere(tmp_path: Path) -> None:
    weights = [weight("w", np.zeros((64, 64)))]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    whole = save(tmp_path, nodes, [value("x", [1, 64])], ["y"], weights).read_bytes()
    path = tmp_path / "cut.onnx"
    for kept in range(1, len(whole), 37):
        path.write_bytes(whole[:kept])
        message = refusal(path)
        assert message.startswith((str(path), "cut.onnx", "node", "input", "an "))


def test_a_serialised_tensor_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(weight("w", [1.0]).SerializeToString())
    assert str(path) in refusal(path)


def test_large_weights_are_not_read(tmp_path: Path) -> None:
    weights = [weight("w", np.zeros((256, 256))), weight("b", np.zeros(4))]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "p"], ["y"]),
    ]
    file = read_model(save(tmp_path, nodes, [value("x", [1, 256])], ["y"], weights))
    large, small = file.model.graph.initializer
    assert (large.name, list(large.dims), large.data_type) == ("w", [256, 256], TensorProto.FLOAT)
    assert large.raw_data == b""
    assert len(small.raw_data) == 16
    assert list(file.skipped) == ["w"]
    assert file.skipped["w"].read() == weights[0]


def test_a_skimmed_model_is_the_same_but_for_contents(tmp_path: Path) -> None:
    weights = [weight(f"w{k}", np.full((16, 20), k)) for k in range(5)]
    nodes = [helper.make_node("Sum", [t.name for t in weights] + ["x"], ["y"])]
    path = save(tmp_path, nodes, [value("x", [16, 20])], ["y"], weights, producer_name="here")
    structure, skipped = skim(path.read_bytes(), path)
    expected = onnx.load(path)
    for tensor in expected.graph.initializer:
        tensor.ClearField("raw_data")
    assert onnx.ModelProto.FromString(structure) == expected
    assert [s.read() for s in skipped.values()] == weights


def test_bytes_that_are_no_message() -> None:
    with pytest.raises(CutShortError):
        skim(b"\xff" * 20, Path("m.onnx"))


def test_a_model_of_more_than_two_gigabytes_in_one_file(tmp_path: Path) -> None:
    """A hole in the file stands for the weights: only the structure is ever read."""
    elements = 3 * 2**28
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    small = save(tmp_path, nodes, [value("x", [2, 2**14])], ["y"])
    model = onnx.load(small)
    header = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**14, elements // 2**14])
    raw = elements * 4
    tensor = header.SerializeToString() + b"\x4a" + _varint(raw)  # field 9, raw_data
    graph = model.graph.SerializeToString() + b"\x2a" + _varint(len(tensor) + raw) + tensor
    model.ClearField("graph")
    start = model.SerializeToString() + b"\x3a" + _varint(len(graph) + raw) + graph
    path = tmp_path / "large.onnx"
    with path.open("wb") as file:
        file.write(start)
        file.truncate(len(start) + raw)
    loaded = load_onnx(path)
    assert output_shapes(loaded) == [(2, 3 * 2**14)]
    assert max(node.type.bytes for node in loaded.nodes) == 3 * 2**30


def _varint(value: int) -> bytes:
    low = [(value >> shift) & 0x7F for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([b | 0x80 for b in low[:-1]] + [low[-1]])


def _external(
    folder: Path, name: str, contents: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
) -> TensorProto:
    tensor = weight(name, contents, contents.dtype)
    (folder / f"{name}.bin").write_bytes(tensor.raw_data)
    onnx.external_data_helper.set_external_data(tensor, f"{name}.bin")
    tensor.ClearField("raw_data")
    return tensor


def test_external_weights_may_be_missing(tmp_path: Path) -> None:
    tensor = _external(tmp_path, "w", np.zeros((64, 32), np.float32))
    (tmp_path / "w.bin").unlink()
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    path = save(tmp_path, nodes, [value("x", [2, 64])], ["y"], [tensor])
    assert output_shapes(load_onnx(path)) == [(2, 32)]


def test_an_external_shape_is_read(tmp_path: Path) -> None:
    tensor = _external(tmp_path, "target", np.array([3, -1], np.int64))
    nodes = [helper.make_node("Reshape", ["x", "target"], ["y"])]
    path = save(tmp_path, nodes, [value("x", [2, 6])], ["y"], [tensor])
    assert output_shapes(load_onnx(path)) == [(3, 4)]


def test_an_external_shape_that_is_missing_names_its_file(tmp_path: Path) -> None:
    tensor = _external(tmp_path, "target", np.array([3, -1], np.int64))
    (tmp_path / "target.bin").unlink()
    nodes = [helper.make_node("Reshape", ["x", "target"], ["y"])]
    path = save(tmp_path, nodes, [value("x", [2, 6])], ["y"], [tensor])
    message = refusal(path)
    assert f"a shape depends on target, whose data should lie in {tmp_path}" in message
    assert "target.bin" in message
    assert message.endswith("put that file beside the model")


def test_a_large_shape_computation_reads_what_was_skimmed(tmp_path: Path) -> None:
    """One of 400 numbers decides a shape: it lies in an initializer that was left unread."""
    table = weight("table", np.arange(400), np.int64)
    nodes = [
        helper.make_node("Gather", ["table", "at"], ["target"]),
        helper.make_node("Reshape", ["x", "target"], ["y"]),
    ]
    weights = [table, shape_weight("at", 3, 4)]
    path = save(tmp_path, nodes, [value("x", [2, 6])], ["y"], weights)
    assert list(read_model(path).skipped) == ["table"]
    assert output_shapes(load_onnx(path)) == [(3, 4)]
