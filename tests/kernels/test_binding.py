"""The binding table: which kernels a backend has for an operation, in which order."""

import pytest
from one_node import f32, i64, one_node, u8

from fuel_gpu.graph.arena import TensorType
from fuel_gpu.kernels.binding import BindingTable, Kernel, default_bindings
from fuel_gpu.kernels.claims import gamma
from fuel_gpu.kernels.families import FAMILY
from fuel_gpu.kernels.precision import UNAUDITED, PrecisionGuarantee

TABLE = default_bindings()


def names(op: str, inputs: list[TensorType | None], output: TensorType, backend: str) -> list[str]:
    graph, node_id = one_node(op, inputs, output)
    types = tuple(t for t in inputs if t is not None)
    return [k.name for k in TABLE.kernels(graph.node(node_id), types, backend)]


def typed(dtype: str) -> TensorType:
    return TensorType(dtype, (4, 4))


def dtypes(op: str, dtype: str, backend: str) -> list[str]:
    """Compute dtypes of a node whose tensors are all of one dtype."""
    return [n.rsplit(".", 1)[1] for n in names(op, [typed(dtype)] * 2, typed(dtype), backend)]


def test_kernel_names_say_backend_family_and_compute_dtype() -> None:
    assert names("Conv", [f32(1, 3, 8, 8), f32(4, 3, 3, 3)], f32(1, 4, 6, 6), "cuda") == [
        "cuda.conv.float32",
        "cuda.conv.tf32",
        "cuda.conv.float16",
        "cuda.conv.bfloat16",
        "cuda.conv.float64",
    ]


@pytest.mark.parametrize(
    ("backend", "op", "expected"),
    [
        ("cpu", "MatMul", ["float32", "float64"]),
        ("cpu", "Relu", ["float32", "float64"]),
        ("cuda", "Relu", ["float32", "float16", "bfloat16", "float64"]),
        ("opencl", "MatMul", ["float32", "float16", "float64"]),
        ("vulkan", "MatMul", ["float32", "float16"]),
        ("metal", "Softmax", ["float32", "float16"]),
        ("cuda", "Transpose", ["float32"]),
        ("vulkan", "Gather", ["float32"]),
    ],
)
def test_compute_dtypes_of_a_float32_node(backend: str, op: str, expected: list[str]) -> None:
    assert dtypes(op, "float32", backend) == expected


@pytest.mark.parametrize(
    ("dtype", "backend", "expected"),
    [
        ("float16", "cpu", ["float16", "float32"]),
        ("float16", "cuda", ["float16", "float32"]),
        ("float16", "vulkan", ["float16", "float32"]),
        ("bfloat16", "cuda", ["bfloat16", "float32"]),
        ("bfloat16", "opencl", ["float32"]),
        ("bfloat16", "vulkan", []),
        ("float64", "cuda", ["float64"]),
        ("float64", "metal", []),
        ("int64", "cpu", ["int64"]),
        ("int64", "cuda", ["int64"]),
        ("int64", "vulkan", []),
        ("bool", "opencl", ["bool"]),
        ("complex64", "opencl", []),
        ("complex64", "cuda", ["complex64"]),
        ("string", "cpu", ["string"]),
        ("string", "cuda", []),
    ],
)
def test_compute_dtypes_of_other_nodes(dtype: str, backend: str, expected: list[str]) -> None:
    assert dtypes("Add", dtype, backend) == expected


def test_vulkan_moves_any_bits() -> None:
    assert dtypes("Gather", "int64", "vulkan") == ["int64"]


@pytest.mark.parametrize("op", sorted(FAMILY))
def test_the_cpu_runs_every_operator(op: str) -> None:
    assert names(op, [f32(4, 4)], f32(4, 4), "cpu")


@pytest.mark.parametrize(
    ("op", "backends"),
    [
        ("Conv", ["cpu", "cuda", "opencl", "vulkan", "metal"]),
        ("Resize", ["cpu", "cuda", "opencl"]),
        ("LSTM", ["cpu", "cuda"]),
        ("Attention", ["cpu", "cuda"]),
        ("TopK", ["cpu", "cuda"]),
        ("QLinearConv", ["cpu", "cuda"]),
        ("If", ["cpu"]),
        ("Loop", ["cpu"]),
        ("SequenceAt", ["cpu"]),
        ("StringSplit", ["cpu"]),
        ("ai.onnx.ml.TreeEnsembleRegressor", ["cpu"]),
        ("org.example.Blur", ["cpu"]),
    ],
)
def test_who_has_which_operator(op: str, backends: list[str]) -> None:
    every = ["cpu", "cuda", "opencl", "vulkan", "metal"]
    assert [b for b in every if names(op, [f32(4)], f32(4), b)] == backends


def test_an_unknown_backend_has_none() -> None:
    assert names("Add", [f32(4), f32(4)], f32(4), "tpu") == []


@pytest.mark.parametrize(
    ("op", "inputs", "output", "expected"),
    [
        ("Where", [TensorType("bool", (4,)), f32(4), f32(4)], f32(4), "float32"),
        ("Where", [TensorType("bool", (4,)), i64(4), i64(4)], i64(4), "int64"),
        ("Less", [f32(4), f32(4)], TensorType("bool", (4,)), "float32"),
        ("ArgMax", [f32(4, 4)], i64(4), "float32"),
        ("Gather", [f32(9, 4), i64(2)], f32(2, 4), "float32"),
        ("DequantizeLinear", [u8(4), f32(), u8()], f32(4), "float32"),
        ("MatMulInteger", [u8(4, 4), u8(4, 4)], TensorType("int32", (4, 4)), "uint8"),
        ("Range", [i64(), i64(), i64()], i64(4), "int64"),
    ],
)
def test_the_dtype_that_decides(
    op: str, inputs: list[TensorType | None], output: TensorType, expected: str
) -> None:
    assert names(op, inputs, output, "cpu")[0].endswith(expected)


def test_precision_knows_the_sum_and_the_stored_dtype() -> None:
    graph, node_id = one_node("MatMul", [f32(4, 500), f32(500, 6)], f32(4, 6))
    kernel = Kernel("cpu.matmul.float32", "cpu", "float32")
    assert TABLE.precision(kernel, graph, node_id).max_relative == gamma(500, 2.0**-24)


def test_equal_promises_are_one_object() -> None:
    kernel = Kernel("cuda.matmul.tf32", "cuda", "tf32")
    made = [
        TABLE.precision(kernel, *one_node("MatMul", [f32(rows, 64), f32(64, 8)], f32(rows, 8)))
        for rows in (4, 5)
    ]
    assert made[0] is made[1]


def test_deterministic_products_are_stable_on_cuda() -> None:
    graph, node_id = one_node("Conv", [f32(1, 3, 8, 8), f32(4, 3, 3, 3)], f32(1, 4, 6, 6))
    kernel = Kernel("cuda.conv.float32", "cuda", "float32")
    assert not TABLE.precision(kernel, graph, node_id).bit_stable_on_same_hardware
    held = default_bindings(deterministic=True)
    assert held.precision(kernel, graph, node_id).bit_stable_on_same_hardware


FAST = Kernel("cuda.relu.mine", "cuda", "float16")
CLAIM = PrecisionGuarantee(True, None, 1e-3, None, "measured by its author")


def test_a_users_kernel_comes_last_and_leaves_the_table_as_it_was() -> None:
    graph, node_id = one_node("Relu", [f32(4)], f32(4))
    node = graph.node(node_id)
    more = TABLE.with_kernel(FAST, ["Relu"], precision=CLAIM)
    assert more.kernels(node, (f32(4),), "cuda") == (*TABLE.kernels(node, (f32(4),), "cuda"), FAST)
    assert FAST not in TABLE.kernels(node, (f32(4),), "cuda")
    assert more.precision(FAST, graph, node_id) == CLAIM


def test_a_users_kernel_serves_only_what_it_names() -> None:
    more = TABLE.with_kernel(FAST, ["Relu"])
    for op, dtype in [("Exp", "float32"), ("Relu", "float16")]:
        graph, node_id = one_node(op, [typed(dtype)], typed(dtype))
        assert FAST not in more.kernels(graph.node(node_id), (typed(dtype),), "cuda")


def test_a_users_backend() -> None:
    kernel = Kernel("tpu.matmul.bfloat16", "tpu", "bfloat16")
    more = TABLE.with_kernel(kernel, ["MatMul"], ["float32", "bfloat16"])
    graph, node_id = one_node("MatMul", [f32(4, 4), f32(4, 4)], f32(4, 4))
    node = graph.node(node_id)
    assert more.kernels(node, (f32(4, 4), f32(4, 4)), "tpu") == (kernel,)
    assert more.precision(kernel, graph, node_id) == UNAUDITED


def test_tables_compare_by_what_they_hold() -> None:
    assert BindingTable() == default_bindings()
    assert TABLE.with_kernel(FAST, ["Relu"]) != TABLE
