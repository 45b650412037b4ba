"""The price of an operation: bytes read and written once, bodies, saturation, whole graphs."""

from pathlib import Path

import onnx
import pytest
from one_node import cost, f32, i64, one_node

from fuel_gpu.errors import PlanError
from fuel_gpu.graph.arena import Graph, Node, TensorType
from fuel_gpu.graph.onnx_reader import load_onnx
from fuel_gpu.kernels.costs import (
    MOST_TRIPS,
    NO_FORMULA,
    SHAPE_IS_BOUND,
    UNKNOWN_TRIPS,
    OperationCost,
    graph_cost,
    operation_cost,
)
from fuel_gpu.numbers import U64_MAX

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def test_every_input_is_read_and_every_output_written_once() -> None:
    assert cost("Add", [f32(2, 3), f32(3)], f32(2, 3)).bytes_moved == 24 + 12 + 24
    parts = [f32(2, 3), f32(2, 1)]
    assert cost("Split", [f32(2, 4)], *parts, axis=1) == OperationCost(0, 32 + 24 + 8)


def test_a_value_read_twice_is_read_once_even_through_a_view() -> None:
    graph = Graph()
    x = graph.push(Node("input", (), f32(2, 8), "input"))
    flat = graph.push(Node("Reshape", (x,), f32(16), "view"))
    square = graph.push(Node("Mul", (x, x), f32(2, 8)))
    both = graph.push(Node("MatMul", (x, flat), f32(2, 8)))
    assert operation_cost(graph, square).bytes_moved == 64 + 64
    assert operation_cost(graph, both).bytes_moved == 64 + 64
    assert operation_cost(graph, flat) == OperationCost(0, 0, launches=0)


@pytest.mark.parametrize("op", ["Gather", "GatherElements", "GatherND"])
def test_gathering_reads_only_what_it_takes(op: str) -> None:
    table, ids, rows = f32(30_000, 64), i64(7), f32(7, 64)
    assert cost(op, [table, ids], rows) == OperationCost(0, 2 * 7 * 64 * 4 + 7 * 8)


def test_slicing_reads_only_what_it_takes() -> None:
    limits = i64(1)
    assert cost("Slice", [f32(100, 8), limits, limits], f32(3, 8)) == OperationCost(0, 208)


def test_scattering_copies_and_writes_over() -> None:
    priced = cost("ScatterND", [f32(10, 4), i64(2, 1), f32(2, 4)], f32(10, 4))
    assert priced == OperationCost(0, 2 * 160 + 16 + 2 * 32)


@pytest.mark.parametrize("op", ["Transpose", "Concat", "Pad", "Reshape", "Split", "DepthToSpace"])
def test_moving_data_takes_no_arithmetic(op: str) -> None:
    assert cost(op, [f32(4, 6)], f32(6, 4)) == OperationCost(0, 192)


def test_packed_types_take_their_bits() -> None:
    nibbles = TensorType("uint4", (10, 3))
    assert cost("DequantizeLinear", [nibbles, f32()], f32(10, 3)).bytes_moved == 15 + 4 + 120


def test_an_operator_without_a_formula_is_estimated_by_its_bytes() -> None:
    assert cost("org.example.Blur", [f32(10)], f32(10)) == OperationCost(0, 80, estimate=NO_FORMULA)


def test_a_shape_that_is_only_a_bound_makes_an_estimate() -> None:
    priced = cost("Relu", [f32(10)], f32(10), shape_is_bound=True)
    assert priced == OperationCost(10, 80, estimate=SHAPE_IS_BOUND)


def test_figures_saturate() -> None:
    huge = f32(2**30, 2**30)  # 4 EiB
    assert cost("MatMul", [huge, huge], huge).flops == U64_MAX
    assert cost("Sum", [huge] * 3, huge).bytes_moved == U64_MAX


@pytest.mark.parametrize("kind", ["input", "weight", "constant"])
def test_what_is_no_kernel_is_free(kind: str) -> None:
    graph = Graph()
    node_id = graph.push(Node("Add", (), f32(4), kind))  # type: ignore[arg-type]  # each is a Kind
    assert operation_cost(graph, node_id) == OperationCost(0, 0, launches=0)


def test_shapes_that_do_not_fit_name_the_node() -> None:
    graph, node_id = one_node("LSTM", [f32(5, 3, 4), f32(32, 4), f32(1, 32, 8)], f32(5, 1, 3, 8))
    with pytest.raises(PlanError, match=r"node node \(LSTM\) cannot be priced: .*\[32, 4\]"):
        operation_cost(graph, node_id)


def body(op: str, size: int, depth: int = 1) -> Graph:
    """Operations over a vector, one after another."""
    graph = Graph()
    last = graph.push(Node("input", (), f32(size), "input"))
    for _ in range(depth):
        last = graph.push(Node(op, (last,), f32(size)))
    graph.outputs = [last]
    return graph


def around(op: str, *bodies: Graph, **attributes: object) -> Graph:
    """A graph of one control-flow node."""
    graph = Graph()
    x = graph.push(Node("input", (), f32(8), "input"))
    graph.outputs = [graph.push(Node(op, (x,), f32(8), attributes=attributes, bodies=bodies))]
    return graph


def nested(op: str, *bodies: Graph, **attributes: object) -> OperationCost:
    graph = around(op, *bodies, **attributes)
    return operation_cost(graph, graph.outputs[0])


def test_if_costs_its_dearer_branch() -> None:
    assert nested("If", body("Relu", 8), body("Exp", 8)) == OperationCost(64, 64)
    assert nested("If", body("Relu", 800), body("Exp", 8)) == OperationCost(800, 6400)
    assert nested("If", body("Relu", 8, depth=3), body("Relu", 8)) == OperationCost(24, 192, 3)


def test_the_dearer_branch_is_the_one_that_takes_longer_whatever_the_rates() -> None:
    arithmetic, traffic = body("Exp", 64), body("Relu", 100)  # 512 and 100 FLOPs, 512 and 800 B
    assert nested("If", arithmetic, traffic) == OperationCost(512, 800)


def test_loop_costs_its_body_so_many_times() -> None:
    assert nested("Loop", body("Exp", 8), trip_count=5) == OperationCost(320, 320, 5)
    assert nested("Scan", body("Relu", 8, depth=2), trip_count=3) == OperationCost(48, 384, 6)


def test_loops_in_loops_launch_a_product_of_kernels_and_saturate() -> None:
    inner = around("Loop", body("Relu", 8, depth=2), trip_count=100_000)
    assert nested("Loop", inner, trip_count=100_000).launches == 2 * 10**10
    assert nested("Loop", inner, trip_count=2**63 - 1).launches == U64_MAX


def test_control_flow_that_does_nothing_is_still_one_launch() -> None:
    assert nested("Loop", body("Relu", 8), trip_count=0) == OperationCost(0, 0, 1)
    assert nested("If", body("Relu", 8, depth=0), body("Relu", 8, depth=0)).launches == 1


def test_loop_of_unknown_length_is_priced_once_and_says_so() -> None:
    priced = nested("Loop", body("Exp", 8, depth=2), trip_count=None)
    assert priced == OperationCost(128, 128, 2, UNKNOWN_TRIPS)
    assert priced.estimated
    assert priced.estimate == "one iteration of a loop whose trip count is unknown"


def test_loop_that_a_condition_may_skip_is_priced_in_full_and_says_so() -> None:
    priced = nested("Loop", body("Exp", 8), trip_count=5, trip_count_is_bound=True)
    assert priced == OperationCost(320, 320, 5, MOST_TRIPS)


def test_every_reason_for_an_estimate_is_named_once() -> None:
    inner = around("Loop", body("org.example.Blur", 8, depth=2), trip_count=None)
    assert nested("Loop", inner, trip_count=None).estimate == f"{NO_FORMULA}; {UNKNOWN_TRIPS}"


def test_an_estimate_in_a_body_shows() -> None:
    assert nested("Loop", body("org.example.Blur", 8), trip_count=2).estimated
    assert nested("If", body("org.example.Blur", 8), body("org.example.Blur", 8)).estimated


def test_a_graph_costs_what_its_outputs_need() -> None:
    graph = body("Relu", 8)
    graph.push(Node("Exp", (0,), f32(8)))  # read by nothing
    assert graph_cost(graph) == OperationCost(8, 64, 1)
    assert graph_cost(body("Relu", 8, depth=3)).launches == 3


@pytest.mark.parametrize(
    ("model", "giga_flops"),
    [("resnet50", 8.18), ("vgg19", 39.3), ("bvlc_alexnet", 1.31)],
)
def test_light_graphs_count_what_is_published(model: str, giga_flops: float) -> None:
    """Convolutions and products only, a multiply-add counted as two, one image of 224 x 224."""
    graph = load_onnx(LIGHT / f"light_{model}.onnx")
    products = [k for k, n in enumerate(graph.nodes) if n.op in ("Conv", "Gemm", "MatMul")]
    total = sum(operation_cost(graph, k).flops for k in products)
    assert total / 1e9 == pytest.approx(giga_flops, rel=0.01)


@pytest.mark.parametrize("path", sorted(LIGHT.glob("*.onnx")), ids=lambda p: p.stem)
def test_nothing_in_the_light_graphs_is_estimated(path: Path) -> None:
    graph = load_onnx(path)
    assert not graph_cost(graph).estimated


def test_a_batch_multiplies_the_arithmetic() -> None:
    once = graph_cost(load_onnx(LIGHT / "light_resnet50.onnx")).flops
    assert graph_cost(load_onnx(LIGHT / "light_resnet50.onnx", batch=64)).flops == 64 * once
