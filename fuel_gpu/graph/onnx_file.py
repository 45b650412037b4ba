"""Reads a model file into a ModelProto, without the contents of weights; refuses clearly."""

import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import onnx
from google.protobuf.message import DecodeError
from onnx.checker import ValidationError
from onnx.defs import SchemaError
from onnx.inliner import inline_local_functions
from onnx.shape_inference import InferenceError
from onnx.version_converter import ConvertError

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.onnx_integrity import check_integrity
from fuel_gpu.graph.onnx_skim import CutShortError, Skipped, skim

LIBRARY_ERRORS: Final = (ValidationError, InferenceError, ConvertError, SchemaError, DecodeError)
"""What onnx and protobuf raise about a model; none of them is a ValueError or a RuntimeError."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model as its file holds it, its local functions inlined.

    Parameters
    ----------
    path
        The file.
    model
        Everything but the contents of large initializers.
    skipped
        Where in the file those lie, by name.
    """

    path: Path
    model: onnx.ModelProto
    skipped: Mapping[str, Skipped]

    @property
    def opsets(self) -> dict[str, int]:
        """Operator set version by domain; ONNX's own domain is the empty name."""
        imports = self.model.opset_import
        return {"" if o.domain == "ai.onnx" else o.domain: o.version for o in imports}


def read_model(path: Path) -> ModelFile:
    """Read an ONNX file; data that lies outside of it stays unread, as do large initializers.

    Raises
    ------
    ModelError
        If the file is missing, no regular file, unreadable, empty, damaged, or no ONNX model; or
        if its names or operator sets cannot be meant.
    """
    try:
        if path.is_dir():
            inside = sorted(p.name for p in path.glob("*.onnx"))
            hint = f" (it holds {', '.join(inside[:5])})" if inside else ""
            raise ModelError(f"{path} is a folder, not a model: name the .onnx file itself{hint}")
        if path.exists() and not path.is_file():
            raise ModelError(f"{path} is no regular file: name the .onnx file itself")
        with path.open("rb") as file:
            size = path.stat().st_size
            if size == 0:
                raise ModelError(f"{path} is empty: download or export the model again")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _parse(data, path, size)
    except FileNotFoundError:
        raise ModelError(f"{path} does not exist: check the path to the .onnx file") from None
    except PermissionError:
        raise ModelError(f"{path} may not be read: give yourself read permission") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} could not be read: {error}") from None


def _parse(data: mmap.mmap, path: Path, size: int) -> ModelFile:
    if data[:23] == b"version https://git-lfs":
        raise ModelError(f"{path} is a Git LFS pointer, not the model: run `git lfs pull` for it")
    model = onnx.ModelProto()
    try:
        structure, skipped = skim(data, path)
        model.ParseFromString(structure)
    except (CutShortError, DecodeError, UnicodeDecodeError):
        raise ModelError(
            f"{path} is not an ONNX model, or is damaged or cut short ({size} bytes): "
            "download or export it again"
        ) from None
    if not model.HasField("graph") or not model.graph.output:
        raise ModelError(
            f"{path} holds no ONNX graph with outputs: it is another kind of file, or damaged; "
            "export the model again"
        )
    if not model.opset_import:
        raise ModelError(f"{path} names no operator set: it is damaged; export the model again")
    inlined = _inlined(model, path)
    check_integrity(inlined, path.name)
    return ModelFile(path, inlined, skipped)


def _inlined(model: onnx.ModelProto, path: Path) -> onnx.ModelProto:
    if not model.functions:
        return model
    try:
        inlined = inline_local_functions(model, convert_version=True)
    except (RuntimeError, ValueError, TypeError, *LIBRARY_ERRORS) as error:
        raise ModelError(
            f"the model-local functions of {path} cannot be inlined: {error}; "
            "export the model without them"
        ) from None
    imported = {entry.domain for entry in inlined.opset_import}
    for function in model.functions:
        for entry in function.opset_import:
            if entry.domain not in imported:
                imported.add(entry.domain)
                inlined.opset_import.append(entry)
    return inlined
