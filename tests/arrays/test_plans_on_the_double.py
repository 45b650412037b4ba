"""A whole plan on the double of CuPy: the same decisions, and a fixed number of crossings."""

from dataclasses import replace

from numpy_launcher import kernels_of_double
from strict_cupy import Counts, StrictCupy

from fuel_gpu.arrays.engine import NUMPY, Engine
from fuel_gpu.calibration.rates import Rates
from fuel_gpu.device import Device
from fuel_gpu.graph.arena import Graph, Node, TensorType
from fuel_gpu.kernels.binding import default_bindings
from fuel_gpu.planner.compile import compile_plan
from fuel_gpu.planner.execution_plan import ExecutionPlan
from fuel_gpu.planner.options import PlanOptions

CPU, GPU = Device("cpu"), Device("cuda")
ROWS = {
    "float32": Rates(50.0, 40.0, 700, "measured"),
    "float64": Rates(20.0, 40.0, 700, "measured"),
}
OPTIONS = PlanOptions(devices=(CPU, GPU), pinned_device=CPU, rates={CPU: ROWS, GPU: ROWS})


class Link:
    """Ten microseconds a crossing."""

    def estimate_transfer_ns(self, src: Device, dst: Device, bytes: int) -> int:
        return 0 if src == dst else 10_000


def chain(nodes: int) -> Graph:
    graph = Graph()
    shape = TensorType("float32", (64, 64))
    value = graph.push(Node("Input", (), shape, "input", "x"))
    for k in range(nodes):
        op = ("Relu", "Exp", "Tanh")[k % 3]
        value = graph.push(Node(op, (value,), shape, name=f"n{k}"))
    graph.outputs = [value]
    return graph


def planned(nodes: int, engine: Engine) -> ExecutionPlan:
    graph = chain(nodes)
    options = replace(OPTIONS, estimator=Link(), exit_device=CPU, engine=engine)
    return compile_plan(graph, graph.topological_order(), default_bindings(), options)


def on_the_double(nodes: int) -> tuple[ExecutionPlan, Counts]:
    xp = StrictCupy()
    plan = planned(nodes, Engine("cupy", xp, 1 << 28, kernels_of_double(xp)))
    counts: Counts = xp.counts
    return plan, counts


def test_the_decisions_are_those_of_numpy() -> None:
    plan, _ = on_the_double(40)
    expected = planned(40, NUMPY)
    assert plan.placements == expected.placements
    for node_id in plan.placements:
        found, wanted = plan.decision_set(node_id), expected.decision_set(node_id)
        assert found is not None
        assert wanted is not None
        assert list(found) == list(wanted)


def test_a_plan_of_any_length_crosses_to_the_host_equally_often() -> None:
    (_, few), (_, many) = on_the_double(30), on_the_double(600)
    assert many == few
    assert few.uploads == 8  # the columns of one table
    assert few.waits < 25
