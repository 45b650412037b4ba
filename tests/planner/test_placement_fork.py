"""The placement fork: which nodes have a genuine choice, what is recorded, at which price."""

from dataclasses import dataclass, replace

import pytest
from given_plans import CUDA, OPENCL, OTHER_CUDA, VECTOR, candidate, chain, context
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu.device import HOST, Device
from fuel_gpu.graph.arena import Graph, Node, NodeId, TensorType
from fuel_gpu.graph.branches import ArmPrice
from fuel_gpu.graph.lowering import lower
from fuel_gpu.planner.candidate import Candidate
from fuel_gpu.planner.options import PlanOptions
from fuel_gpu.planner.placement_fork import PlacementForkPathfinder

Sets = dict[NodeId, tuple[Candidate, ...]]


@dataclass(frozen=True)
class FlatLink:
    """Every transfer takes 1000 ns and a nanosecond a byte."""

    def estimate_transfer_ns(self, src: Device, dst: Device, size: int) -> int:
        return 0 if src == dst else 1000 + size


def record(graph: Graph, sets: Sets, options: PlanOptions | None = None) -> None:
    PlacementForkPathfinder().propose(graph, context(graph, sets, options=options))


def test_a_choice_between_two_devices_is_recorded() -> None:
    graph = chain(3)
    record(graph, {2: (candidate(HOST, 10), candidate(HOST, 20), candidate(CUDA, 30))})
    ((branch_id, branch),) = graph.branches.items()
    assert (branch.diverge, branch.reconverge, branch.arms) == (1, 3, (2, 4))
    assert branch_id == 5
    assert graph.node(4) == replace(graph.node(2), name="f2@cuda:0")
    assert graph.target_backends == {4: "cuda"}
    assert graph.placements == {4: CUDA}
    # What it reads and what it gives is 16 bytes each.
    assert branch.prices == (ArmPrice(HOST, "cpu", 10, 32), ArmPrice(CUDA, "cuda", 30, 32))


def test_the_live_flow_is_untouched() -> None:
    graph = chain(3)
    record(graph, {n: (candidate(HOST, 10), candidate(CUDA, 30)) for n in (1, 2, 3)})
    assert len(graph.branches) == 2  # nobody reads the last node, so no routes meet behind it
    assert graph.nodes[:4] == chain(3).nodes
    assert graph.topological_order() == (0, 1, 2, 3)
    assert lower(graph, (0, 1, 2, 3)).order == (0, 1, 2, 3)
    assert graph.topology_generation == 0


@pytest.mark.parametrize(
    "runner_up", [candidate(OTHER_CUDA, 30), candidate(CUDA, 30, backend="vulkan")]
)
def test_another_device_or_another_backend_makes_a_placement_distinct(
    runner_up: Candidate,
) -> None:
    graph = chain(2)
    record(graph, {1: (candidate(CUDA, 10), candidate(CUDA, 20), runner_up)})
    (branch,) = graph.branches.values()
    assert graph.placements[branch.arms[1]] == runner_up.device
    assert graph.target_backends[branch.arms[1]] == runner_up.backend


def test_of_several_runners_up_the_best_ranked_is_recorded() -> None:
    graph = chain(2)
    record(graph, {1: (candidate(HOST, 10), candidate(OPENCL, 20), candidate(CUDA, 30))})
    (branch,) = graph.branches.values()
    assert graph.placements[branch.arms[1]] == OPENCL


@pytest.mark.parametrize(
    "choices", [(), (candidate(HOST, 10),), (candidate(HOST, 10), candidate(HOST, 20))]
)
def test_one_placement_is_no_choice(choices: tuple[Candidate, ...]) -> None:
    graph = chain(2)
    plan = context(graph, {1: (candidate(HOST, 10),)}).plan
    assert plan.decision_set(2) is None
    sets: Sets = {1: choices} if choices else {}
    record(graph, sets)
    assert graph.branches == {}
    assert graph.nodes == chain(2).nodes


def test_a_machine_with_only_a_cpu_records_nothing() -> None:
    graph = chain(5)
    record(graph, {n: (candidate(HOST, 10), candidate(HOST, 12)) for n in range(1, 6)})
    assert graph.nodes == chain(5).nodes


CHOICE = (candidate(HOST, 10), candidate(CUDA, 30))


def test_fan_out_is_no_decision_point() -> None:
    graph = chain(2)
    graph.outputs.append(graph.push(Node("Tanh", (1,), VECTOR)))
    record(graph, {1: CHOICE})
    assert graph.branches == {}


def test_a_result_read_twice_by_one_node_is_fan_out() -> None:
    graph = chain(1)
    graph.outputs = [graph.push(Node("Add", (1, 1), VECTOR))]
    record(graph, {1: CHOICE})
    assert graph.branches == {}


def test_a_node_without_inputs_has_nothing_to_part_from() -> None:
    graph = Graph()
    noise = graph.push(Node("RandomNormal", (), VECTOR))
    graph.outputs = [graph.push(Node("Relu", (noise,), VECTOR))]
    record(graph, {noise: CHOICE})
    assert graph.branches == {}


def test_a_fork_that_breaks_a_rule_of_branches_is_left_and_adds_no_node() -> None:
    graph = chain(2)  # add reads f1 first and f2, which lies between f1 and it
    total = graph.push(Node("Add", (1, 2), VECTOR))
    graph.outputs = [graph.push(Node("Relu", (total,), VECTOR))]
    before = graph.nodes
    record(graph, {total: CHOICE})
    assert graph.branches == {}
    assert graph.nodes == before
    graph.outputs = [3, 4]  # an output may not lie in an arm either
    record(graph, {total: CHOICE})
    assert graph.nodes == before


def test_a_second_time_records_nothing() -> None:
    graph = chain(3)
    sets: Sets = {1: CHOICE, 2: CHOICE}
    record(graph, sets)
    nodes = graph.nodes
    record(graph, sets)
    assert graph.nodes == nodes


def test_an_arms_price_has_the_copies_it_needs() -> None:
    """The neighbours lie on the CPU, so the cuda arm pays for its input and for its result."""
    graph = Graph()
    x = graph.push(Node("input", (), VECTOR, kind="input"))
    weight = graph.push(Node("weight", (), VECTOR, kind="weight"))
    view = graph.push(Node("Reshape", (x,), VECTOR, kind="view"))
    fork = graph.push(Node("Sum", (view, x, weight), VECTOR))
    graph.outputs = [graph.push(Node("Relu", (fork,), VECTOR))]
    options = PlanOptions(devices=(HOST, CUDA), estimator=FlatLink())
    record(graph, {fork: CHOICE, 4: (candidate(HOST, 5),)}, options)
    (branch,) = graph.branches.values()
    # x is read twice, once through a view: one copy of 16 bytes, 1016 ns; the result as much;
    # the weight is resident wherever it is used. Bytes: x, weight and result, 16 each.
    assert branch.prices == (
        ArmPrice(HOST, "cpu", 10, 48),
        ArmPrice(CUDA, "cuda", 30 + 1016 + 1016, 48),
    )


def test_a_result_read_through_a_view_is_priced_to_its_readers_and_to_the_caller() -> None:
    graph = chain(1)
    view = graph.push(Node("Reshape", (1,), VECTOR, kind="view"))
    here = graph.push(Node("Relu", (view,), VECTOR))
    there = graph.push(Node("Relu", (view,), VECTOR))
    graph.outputs = [here, there, view]
    sets: Sets = {1: CHOICE, here: (candidate(CUDA, 5),), there: (candidate(OPENCL, 5),)}
    options = PlanOptions(devices=(HOST, CUDA, OPENCL), estimator=FlatLink(), exit_device=HOST)
    record(graph, sets, options)
    (branch,) = graph.branches.values()
    assert branch.prices == (
        ArmPrice(HOST, "cpu", 10 + 2 * 1016, 32),  # to cuda and to opencl
        ArmPrice(CUDA, "cuda", 30 + 3 * 1016, 32),  # its input, to opencl, and to the caller
    )


def test_a_further_output_crosses_with_its_own_bytes() -> None:
    graph = chain(1)
    wide = TensorType("float32", (25,))  # 100 bytes
    pick = graph.push(Node("TopK", (1,), wide, kind="pick", attributes={"index": 1}))
    graph.outputs = [graph.push(Node("Relu", (pick,), wide))]
    options = PlanOptions(devices=(HOST, CUDA), estimator=FlatLink())
    record(graph, {1: CHOICE, 3: (candidate(HOST, 5),)}, options)
    (branch,) = graph.branches.values()
    assert branch.reconverge == pick
    assert branch.prices == (
        ArmPrice(HOST, "cpu", 10, 16 + 16 + 100),
        ArmPrice(CUDA, "cuda", 30 + 1016 + 1100, 16 + 16 + 100),
    )


@given(st.lists(st.booleans(), min_size=1, max_size=8))
def test_each_choice_of_a_chain_is_one_branch_and_arm_0_is_the_plan(choices: list[bool]) -> None:
    graph = chain(len(choices) + 1)
    order = graph.topological_order()
    chosen = [n for n, has_choice in enumerate(choices, start=1) if has_choice]
    record(graph, dict.fromkeys(chosen, CHOICE))
    assert [branch.arms[0] for branch in graph.branches.values()] == chosen
    assert lower(graph, graph.topological_order()).order == order
    everywhere = dict.fromkeys(graph.branches, 1)
    clones = {branch.arms[0]: branch.arms[1] for branch in graph.branches.values()}
    assert lower(graph, order, everywhere).order == tuple(clones.get(n, n) for n in order)
