"""Reads a model file into a ModelProto, without external data; refuses clearly."""

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from fuel_gpu.errors import ModelError


def read_model(path: Path) -> onnx.ModelProto:
    """Read an ONNX file; data that lies outside of it stays unread.

    Raises
    ------
    ModelError
        If the file is missing, no regular file, unreadable, empty, damaged, or no ONNX model.
    """
    if path.is_dir():
        inside = sorted(p.name for p in path.glob("*.onnx"))
        hint = f"; it holds {', '.join(inside[:5])}" if inside else ""
        raise ModelError(f"{path} is a folder, not a model: name the .onnx file in it{hint}")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ModelError(f"{path} does not exist: check the path to the .onnx file") from None
    except PermissionError:
        raise ModelError(f"{path} may not be read: give yourself read permission") from None
    except OSError as error:
        raise ModelError(f"{path} could not be read: {error.strerror or error}") from None
    if not data:
        raise ModelError(f"{path} is empty: download or export the model again")
    return _parse(data, path)


def _parse(data: bytes, path: Path) -> onnx.ModelProto:
    if data.startswith(b"version https://git-lfs"):
        raise ModelError(f"{path} is a Git LFS pointer, not the model: run `git lfs pull` for it")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        raise ModelError(
            f"{path} is not an ONNX model, or is damaged or cut short ({len(data)} bytes): "
            "download or export it again"
        ) from None
    if not model.HasField("graph") or not model.graph.output:
        raise ModelError(
            f"{path} holds no ONNX graph with outputs: it is another kind of file, or damaged; "
            "export the model again"
        )
    if not model.opset_import:
        raise ModelError(f"{path} names no operator set: it is damaged; export the model again")
    return model
