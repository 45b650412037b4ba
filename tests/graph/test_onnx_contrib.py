"""Shapes of operators outside the standard: what onnxruntime writes, and classical models."""

from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, ValueInfoProto, helper
from onnx_models import output_shapes, read, value

from fuel_gpu.errors import ModelError
from fuel_gpu.graph.arena import TensorType

Shapes = list[tuple[int, ...]]


def microsoft(
    folder: Path, op: str, shapes: list[tuple[int, ...] | None], outputs: int = 1, **attributes: Any
) -> Shapes:
    """Read one com.microsoft node over float inputs and give its output shapes."""
    return _one(folder, op, "com.microsoft", shapes, outputs, attributes)


def _one(
    folder: Path,
    op: str,
    domain: str,
    shapes: list[tuple[int, ...] | None],
    outputs: int,
    attributes: dict[str, Any],
) -> Shapes:
    names = ["" if s is None else f"i{k}" for k, s in enumerate(shapes)]
    results = [f"o{k}" for k in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, name="node", **attributes)
    inputs = [value(f"i{k}", s) for k, s in enumerate(shapes) if s is not None]
    return output_shapes(read(folder, [node], inputs, results))


@pytest.mark.parametrize("op", ["Gelu", "QuickGelu", "FastGelu", "BiasGelu", "RotaryEmbedding"])
def test_elementwise(tmp_path: Path, op: str) -> None:
    assert microsoft(tmp_path, op, [(2, 7, 64), (64,)]) == [(2, 7, 64)]


def test_bias_split_gelu_halves_the_width(tmp_path: Path) -> None:
    assert microsoft(tmp_path, "BiasSplitGelu", [(2, 7, 64), (64,)]) == [(2, 7, 32)]


def test_skip_layer_normalization_gives_the_sum_too(tmp_path: Path) -> None:
    shapes: list[tuple[int, ...] | None] = [(2, 7, 64), (2, 7, 64), (64,), (64,)]
    assert microsoft(tmp_path, "SkipLayerNormalization", shapes, 4) == [
        (2, 7, 64),
        (2, 7, 1),
        (2, 7, 1),
        (2, 7, 64),
    ]


def test_embed_layer_normalization(tmp_path: Path) -> None:
    ids = [value(n, (2, 7), TensorProto.INT32) for n in ("ids", "segments")]
    tables = [value(n, (rows, 64)) for n, rows in (("words", 999), ("places", 128), ("kinds", 2))]
    scales = [value(n, (64,)) for n in ("gamma", "beta")]
    names = [i.name for i in (*ids, *tables, *scales)]
    node = helper.make_node(
        "EmbedLayerNormalization", names, ["y", "mask", "sum"], domain="com.microsoft"
    )
    graph = read(tmp_path, [node], [*ids, *tables, *scales], ["y", "mask", "sum"])
    assert [graph.node(o).type for o in graph.outputs] == [
        TensorType("float32", (2, 7, 64)),
        TensorType("int32", (2,)),
        TensorType("float32", (2, 7, 64)),
    ]


@pytest.mark.parametrize(
    ("a", "b", "attributes", "expected"),
    [
        ((2, 4, 5), (2, 5, 6), {}, (2, 4, 6)),
        ((2, 5, 4), (2, 5, 6), {"transA": 1}, (2, 4, 6)),
        ((2, 4, 5), (6, 5), {"transB": 1}, (2, 4, 6)),
        ((3, 2, 4, 5), (5, 6), {}, (3, 2, 4, 6)),
        ((4, 2, 5), (2, 5, 6), {"transBatchA": 1}, (2, 4, 6)),
    ],
)
def test_fused_matmul(
    tmp_path: Path,
    a: tuple[int, ...],
    b: tuple[int, ...],
    attributes: dict[str, int],
    expected: tuple[int, ...],
) -> None:
    assert microsoft(tmp_path, "FusedMatMul", [a, b], **attributes) == [expected]


def test_fused_conv_is_a_conv(tmp_path: Path) -> None:
    given: dict[str, Any] = {"pads": [1, 1, 1, 1], "strides": [2, 2], "activation": "Relu"}
    assert microsoft(tmp_path, "FusedConv", [(1, 3, 8, 8), (5, 3, 3, 3)], **given) == [(1, 5, 4, 4)]


def test_fused_gemm_is_a_gemm(tmp_path: Path) -> None:
    assert microsoft(tmp_path, "FusedGemm", [(7, 3), (5, 3)], transB=1) == [(7, 5)]


def test_matmul_of_few_bits_gives_n_columns(tmp_path: Path) -> None:
    shapes: list[tuple[int, ...] | None] = [(2, 7, 64), (96, 2, 16), (96, 2)]
    given = {"K": 64, "N": 96, "bits": 4, "block_size": 32}
    assert microsoft(tmp_path, "MatMulNBits", shapes, **given) == [(2, 7, 96)]


def test_attention_with_a_past(tmp_path: Path) -> None:
    shapes: list[tuple[int, ...] | None] = [(2, 7, 64), (64, 192), (192,), None, (2, 2, 4, 10, 16)]
    assert microsoft(tmp_path, "Attention", shapes, 2, num_heads=4) == [
        (2, 7, 64),
        (2, 2, 4, 17, 16),
    ]


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(2, 7, 64), (2, 9, 64), (2, 9, 96)], [(2, 7, 96), (2, 4, 9, 16)]),
        ([(2, 7, 64), (2, 4, 9, 16), (2, 4, 9, 24)], [(2, 7, 96), (2, 4, 9, 16)]),
        ([(2, 7, 4, 3, 16)], [(2, 7, 64), (2, 4, 7, 16)]),
        ([(2, 7, 64), (2, 9, 4, 2, 16)], [(2, 7, 64), (2, 4, 9, 16)]),
        (
            [(2, 1, 64), (2, 1, 64), (2, 1, 64), None, None, None, (2, 4, 9, 16), (2, 4, 9, 16)],
            [(2, 1, 64), (2, 4, 10, 16)],
        ),
    ],
)
def test_multi_head_attention(
    tmp_path: Path, shapes: list[tuple[int, ...] | None], expected: Shapes
) -> None:
    assert microsoft(tmp_path, "MultiHeadAttention", shapes, 2, num_heads=4) == expected


def test_group_query_attention(tmp_path: Path) -> None:
    heads = {"num_heads": 8, "kv_num_heads": 2}
    past = (2, 2, 20, 16)
    apart: list[tuple[int, ...] | None] = [(2, 5, 128), (2, 5, 32), (2, 5, 32), past, past]
    packed: list[tuple[int, ...] | None] = [(2, 5, 192), None, None, past, past]
    expected = [(2, 5, 128), (2, 2, 25, 16), (2, 2, 25, 16)]
    assert microsoft(tmp_path, "GroupQueryAttention", apart, 3, **heads) == expected
    assert microsoft(tmp_path, "GroupQueryAttention", packed, 3, **heads) == expected


def test_quantised_operators(tmp_path: Path) -> None:
    pair: list[tuple[int, ...] | None] = [(2, 3, 4), (), (), (3, 1), (), (), (), ()]
    assert microsoft(tmp_path, "QLinearAdd", pair) == [(2, 3, 4)]
    joined: list[tuple[int, ...] | None] = [(), (), (2, 3), (), (), (2, 5), (), ()]
    assert microsoft(tmp_path, "QLinearConcat", joined, axis=1) == [(2, 8)]
    pool: list[tuple[int, ...] | None] = [(2, 3, 8, 8), (), (), (), ()]
    assert microsoft(tmp_path, "QLinearGlobalAveragePool", pool) == [(2, 3, 1, 1)]
    assert microsoft(tmp_path, "DynamicQuantizeMatMul", [(7, 3), (3, 5)]) == [(7, 5)]


@pytest.mark.parametrize(
    ("op", "attributes", "expected"),
    [
        ("Scaler", {"offset": [0.0], "scale": [1.0]}, [(6, 4)]),
        ("Normalizer", {"norm": "L2"}, [(6, 4)]),
        ("LinearRegressor", {"coefficients": [0.0] * 8, "targets": 2}, [(6, 2)]),
        ("TreeEnsembleRegressor", {"n_targets": 1}, [(6, 1)]),
        ("TreeEnsembleClassifier", {"classlabels_int64s": [0, 1, 2]}, [(6,), (6, 3)]),
        ("TreeEnsembleClassifier", {"classlabels_strings": ["a", "b"]}, [(6,), (6, 2)]),
        ("FeatureVectorizer", {"inputdimensions": [4]}, [(6, 4)]),
    ],
)
def test_classical_models(
    tmp_path: Path, op: str, attributes: dict[str, Any], expected: Shapes
) -> None:
    assert _one(tmp_path, op, "ai.onnx.ml", [(6, 4)], len(expected), attributes) == expected


def test_a_map_is_refused_with_what_to_do(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["scores"], to=TensorProto.FLOAT),
        helper.make_node("ZipMap", ["scores"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[0]),
    ]
    with pytest.raises(ModelError, match=r"is a map.*zipmap=False"):
        read(tmp_path, nodes, [value("x", (6, 1))], ["y"])


def test_a_node_without_its_operators_attributes_is_named(tmp_path: Path) -> None:
    node = helper.make_node("MatMulNBits", ["x"], ["y"], domain="com.microsoft", name="product")
    inputs: list[ValueInfoProto] = [value("x", (2, 64))]
    with pytest.raises(ModelError, match=r"node product .* does not have the inputs or attributes"):
        read(tmp_path, [node], inputs, ["y"])


@pytest.mark.parametrize(
    ("op", "attributes"),
    [("GroupNormalization", {"num_groups": 2}), ("MeanVarianceNormalization", {"axes": [0, 2]})],
)
def test_standard_operators_without_an_inference_of_their_own(
    tmp_path: Path, op: str, attributes: dict[str, Any]
) -> None:
    shapes: list[tuple[int, ...] | None] = [(2, 4, 8)]
    if op == "GroupNormalization":
        shapes += [(4,), (4,)]
    names = [f"i{k}" for k in range(len(shapes))]
    node = helper.make_node(op, names, ["y"], **attributes)
    inputs = [value(name, shape) for name, shape in zip(names, shapes, strict=True)]
    assert output_shapes(read(tmp_path, [node], inputs, ["y"], opset=21)) == [(2, 4, 8)]
