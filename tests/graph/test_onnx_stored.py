"""Stored tensors: as many bytes as their shapes say, and never from outside the model's folder."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import output_shapes, read, value, weight

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import Graph, TensorType
from fuel_gpu.graph.onnx_stored import stored_type

LISTED = [
    (TensorProto.FLOAT, "float_data", 6),
    (TensorProto.COMPLEX64, "float_data", 12),
    (TensorProto.DOUBLE, "double_data", 6),
    (TensorProto.INT64, "int64_data", 6),
    (TensorProto.UINT32, "uint64_data", 6),
    (TensorProto.BFLOAT16, "int32_data", 6),
    (TensorProto.BOOL, "int32_data", 6),
    (TensorProto.INT4, "int32_data", 3),  # two in each
]
"""Element type, the list that holds it, and its length for six elements."""


def tensor(data_type: int, shape: list[int], **contents: Any) -> TensorProto:
    return TensorProto(name="w", data_type=data_type, dims=shape, **contents)


def product(folder: Path, stored: TensorProto) -> Graph:
    """Read a product whose right factor, of 4 x 4 numbers or 64 x 64, is that tensor."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    return read(folder, nodes, [value("x", [2, stored.dims[1]])], ["y"], [stored])


@pytest.mark.parametrize("size", [4, 64], ids=["read", "left unread"])
@pytest.mark.parametrize("more", [-4, -1, 1, 4])
def test_raw_bytes_must_be_as_many_as_the_shape_says(tmp_path: Path, size: int, more: int) -> None:
    whole = size * size * 4
    assert product(tmp_path, tensor(TensorProto.FLOAT, [size, size], raw_data=bytes(whole)))
    with pytest.raises(
        ModelError,
        match=rf"initializer w of model.onnx has {whole + more} bytes for float32 of shape "
        rf"\[{size}, {size}\], which takes {whole}",
    ):
        product(tmp_path, tensor(TensorProto.FLOAT, [size, size], raw_data=bytes(whole + more)))


@pytest.mark.parametrize(("data_type", "field", "items"), LISTED)
def test_lists_must_be_as_long_as_the_shape_says(data_type: int, field: str, items: int) -> None:
    ones = tensor(data_type, [2, 3], **{field: [1] * items})
    assert stored_type(ones, None, "w").shape == (2, 3)
    for wrong in (items - 1, items + 1):
        with pytest.raises(ModelError, match=r"w has .* of shape"):
            stored_type(tensor(data_type, [2, 3], **{field: [1] * wrong}), None, "w")


def test_a_list_of_another_type_is_no_contents(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="0 bytes of its elements for float32"):
        product(tmp_path, tensor(TensorProto.FLOAT, [2, 2], int64_data=[1, 2, 3, 4]))


@pytest.mark.parametrize("field", ["float_data", "int64_data"])
def test_long_lists_are_counted_without_being_read(tmp_path: Path, field: str) -> None:
    data_type = TensorProto.FLOAT if field == "float_data" else TensorProto.INT64
    nodes = [helper.make_node("Identity", ["w"], ["y"])]
    whole = tensor(data_type, [64, 64], **{field: [3] * 4096})
    assert output_shapes(read(tmp_path, nodes, [], ["y"], [whole])) == [(64, 64)]
    with pytest.raises(ModelError, match=r"initializer w of model.onnx"):
        read(tmp_path, nodes, [], ["y"], [tensor(data_type, [64, 64], **{field: [3] * 4095})])


def test_packed_types_share_bytes() -> None:
    nibbles = tensor(TensorProto.UINT4, [5], raw_data=bytes(3))
    assert stored_type(nibbles, None, "w") == TensorType("uint4", (5,))


def test_weights_that_were_stripped_are_no_fault(tmp_path: Path) -> None:
    assert output_shapes(product(tmp_path, tensor(TensorProto.FLOAT, [4, 4]))) == [(2, 4)]


def test_texts_are_counted() -> None:
    words = tensor(TensorProto.STRING, [2], string_data=[b"a", b"long one"])
    assert stored_type(words, None, "w") == TensorType("string", (2,))
    with pytest.raises(ModelError, match="texts in raw_data"):
        stored_type(tensor(TensorProto.STRING, [1], raw_data=bytes(8)), None, "w")


def test_a_negative_size(tmp_path: Path) -> None:
    stored = weight("w", np.zeros((4, 4)))
    stored.dims[0] = -4
    with pytest.raises(ModelError, match=r"w of model.onnx has shape \[-4, 4\], with a negative"):
        product(tmp_path, stored)


def external(**entries: object) -> TensorProto:
    """A 4 x 4 float32 weight of 64 bytes in another file."""
    stored = tensor(TensorProto.FLOAT, [4, 4], data_location=TensorProto.EXTERNAL)
    for key, entry in entries.items():
        stored.external_data.add(key=key, value=str(entry))
    return stored


@pytest.mark.parametrize(
    "location",
    ["w.bin", "data/w.bin", "./w.bin", "data/../w.bin", "w..bin"],
)
def test_data_in_the_models_folder_need_not_be_there(tmp_path: Path, location: str) -> None:
    stored = external(location=location, offset=4096, length=64)
    assert output_shapes(product(tmp_path, stored)) == [(2, 4)]


@pytest.mark.parametrize(
    "location",
    [
        "../w.bin",
        "data/../../w.bin",
        "/etc/passwd",
        "C:\\secret",
        "C:secret",
        "\\\\host\\share\\w.bin",
        "..\\w.bin",
    ],
)
def test_data_outside_the_models_folder_is_refused_unread(tmp_path: Path, location: str) -> None:
    with pytest.raises(ModelError, match=r"w of model.onnx points to external data at .*outside"):
        product(tmp_path, external(location=location))


@pytest.mark.parametrize(
    ("entries", "complaint"),
    [
        ({}, "external data without a location"),
        ({"location": ""}, "external data without a location"),
        ({"location": "w", "offset": -5}, "offset '-5', which is no count of bytes"),
        ({"location": "w", "offset": "abc"}, "offset 'abc'"),
        ({"location": "w", "offset": 2**64}, "offset '18446744073709551616'"),
        ({"location": "w", "length": "1e3"}, "length '1e3'"),
        ({"location": "w", "length": 2**62}, r"4611686018427387904 bytes for float32 .*takes 64"),
        ({"location": "w", "length": 60}, "60 bytes for float32"),
    ],
)
def test_external_data_that_cannot_be(
    tmp_path: Path, entries: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ModelError, match="initializer w of model.onnx has .*" + complaint):
        product(tmp_path, external(**entries))
