"""`optimize_graph`: a plan, and the decisions that the passes recorded on the graph."""

from dataclasses import dataclass, replace

import pytest
from given_plans import CUDA, chain
from hypothesis import given, settings
from hypothesis import strategies as st

from fuel_gpu.device import HOST, Device
from fuel_gpu.errors import PlanError
from fuel_gpu.graph.arena import Graph, Node, NodeId, TensorType
from fuel_gpu.graph.branches import ArmPrice
from fuel_gpu.graph.collapse import collapse
from fuel_gpu.graph.lowering import lower
from fuel_gpu.kernels.binding import default_bindings
from fuel_gpu.planner.compile import compile_plan
from fuel_gpu.planner.execution_plan import ExecutionPlan
from fuel_gpu.planner.optimize import optimize_graph
from fuel_gpu.planner.options import PlanOptions
from fuel_gpu.planner.pass_registry import PassRegistry
from fuel_gpu.planner.passes import OptimizationContext
from fuel_gpu.planner.placement_fork import PlacementForkPathfinder


@dataclass(frozen=True)
class FlatLink:
    """Every transfer takes 5000 ns."""

    def estimate_transfer_ns(self, src: Device, dst: Device, bytes: int) -> int:
        return 0 if src == dst else 5000


BOTH = PlanOptions(
    devices=(HOST, CUDA),
    pinned_device=HOST,
    input_residency={0: HOST},
    estimator=FlatLink(),
    exit_device=HOST,
)
CPU_ONLY = replace(BOTH, devices=(HOST,))


def products(count: int) -> Graph:
    """Build a chain of products of 256 x 256 matrices: 2 * 256**3 FLOP each."""
    square = TensorType("float32", (256, 256))
    graph = Graph()
    last = graph.push(Node("input", (), square, kind="input", name="x"))
    weight = graph.push(Node("weight", (), square, kind="weight", name="w"))
    for k in range(count):
        last = graph.push(Node("MatMul", (last, weight), square, name=f"m{k}"))
    graph.outputs = [last]
    return graph


def optimized(
    graph: Graph, options: PlanOptions = BOTH, passes: PassRegistry | None = None
) -> ExecutionPlan:
    return optimize_graph(graph, default_bindings(), options, passes)


def test_each_choice_of_placement_is_recorded_with_its_price() -> None:
    graph = products(3)
    plan = optimized(graph)
    assert set(plan.placements.values()) == {CUDA}
    assert [branch.arms[0] for branch in graph.branches.values()] == [2, 3]
    # 2 * 256**3 = 33554432 FLOP: 1118481 ns at 30 a nanosecond, 33554432 ns at 1; three tensors
    # of 262144 bytes, which move in less. The first product's input comes from the CPU (5000 ns);
    # on the CPU it would only have to send its result to the second one.
    needs = 3 * 262144
    assert next(iter(graph.branches.values())).prices == (
        ArmPrice(CUDA, "cuda", 1118481 + 5000, needs),
        ArmPrice(HOST, "cpu", 33554432 + 5000, needs),
    )
    plan.check(graph)  # recording changed no flow, so the plan still holds


def test_a_machine_with_only_a_cpu_records_no_branch() -> None:
    graph = products(3)
    plan = optimized(graph, CPU_ONLY)
    assert graph.branches == {}
    assert graph.nodes == products(3).nodes
    assert lower(graph, plan.order).order == plan.order


@settings(max_examples=30)
@given(st.integers(1, 6), st.booleans())
def test_arm_0_is_the_plan_that_would_be_made_without_passes(count: int, cpu_only: bool) -> None:
    options = CPU_ONLY if cpu_only else BOTH
    graph, plain = products(count), products(count)
    plan = optimized(graph, options)
    alone = compile_plan(plain, plain.topological_order(), default_bindings(), options)
    assert plan.order == alone.order
    assert plan.placements == alone.placements
    assert lower(graph, plan.order).order == alone.order


def test_collapsing_to_a_runner_up_makes_the_old_plan_refuse_and_the_new_one_follow() -> None:
    graph = products(2)
    plan = optimized(graph)
    ((branch_id, branch),) = graph.branches.items()
    collapse(graph, branch_id, 1)
    with pytest.raises(PlanError, match="topology generation 0"):
        plan.check(graph)
    again = optimized(graph)
    assert again.placements[branch.arms[1]] == HOST


class CollapseToRunnersUp:
    """An optimizer that takes the last arm of every branch."""

    name = "CollapseToRunnersUp"

    def prune(self, graph: Graph, context: OptimizationContext) -> None:
        for branch_id in list(graph.branches):
            if branch_id in graph.branches:
                collapse(graph, branch_id, len(graph.branches[branch_id].arms) - 1)


def test_a_pass_that_changes_the_flow_gets_a_plan_of_the_changed_graph() -> None:
    graph = products(3)
    passes = PassRegistry().with_pathfinder(PlacementForkPathfinder())
    plan = optimized(graph, passes=passes.with_optimizer(CollapseToRunnersUp()))
    plan.check(graph)
    assert plan.order == graph.topological_order()
    assert list(plan.placements.values()) == [HOST, HOST, CUDA]


class Vandal:
    """A pathfinder that ties the graph into a knot and then fails."""

    name = "Vandal"

    def propose(self, graph: Graph, context: OptimizationContext) -> None:
        last: NodeId = graph.outputs[0]
        for node_id in context.order[1:]:
            graph.replace(node_id, replace(graph.node(node_id), inputs=(last,)))
        raise PlanError("found no way")


def test_after_a_failing_pass_the_graph_still_plans() -> None:
    graph = chain(3)
    with pytest.raises(PlanError, match="found no way") as raised:
        optimized(graph, passes=PassRegistry.default_passes().with_pathfinder(Vandal()))
    assert "the pass Vandal" in raised.value.__notes__[0]
    plan = optimized(graph)
    assert plan.order == (0, 1, 2, 3)
