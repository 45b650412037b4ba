"""Convergence: an arm that repeats another is merged; the last route and the guard are kept."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from given_plans import CUDA, OPENCL, OTHER_CUDA, VECTOR, candidate, chain, context

from fuel_gpu.device import HOST, Device
from fuel_gpu.graph.arena import Graph, Node, NodeId
from fuel_gpu.planner.candidate import Candidate
from fuel_gpu.planner.frontier_convergence import FrontierConvergenceOptimizer
from fuel_gpu.planner.pass_registry import PassRegistry
from fuel_gpu.planner.passes import OptimizationContext
from fuel_gpu.planner.placement_fork import PlacementForkPathfinder

CHOICE = (candidate(HOST, 10), candidate(CUDA, 30))


def clone(graph: Graph, node_id: NodeId, device: Device | None = None) -> NodeId:
    """Append the same operation on the same inputs, stamped with a device or with none."""
    made = graph.push(replace(graph.node(node_id), name=f"another {graph.node(node_id).name}"))
    if device is not None:
        graph.target_backends[made] = device.backend
        graph.placements[made] = device
    return made


def record(graph: Graph, diverge: NodeId, reconverge: NodeId, *arms: NodeId) -> NodeId:
    builder = graph.open_branch(diverge)
    for exit_id in arms:
        builder.add_arm(exit_id)
    branch = builder.finalize_branches(graph, reconverge)
    assert branch is not None
    return branch


def prune(
    graph: Graph,
    sets: Mapping[NodeId, tuple[Candidate, ...]],
    guard: frozenset[NodeId] = frozenset(),
) -> None:
    FrontierConvergenceOptimizer().prune(graph, context(graph, sets, guard=guard))


def test_a_repeated_runner_up_is_merged_into_the_first() -> None:
    graph = chain(3)
    first, again = clone(graph, 2, CUDA), clone(graph, 2, CUDA)
    branch = record(graph, 1, 3, 2, first, again)
    prune(graph, {2: CHOICE})
    assert graph.branches[branch].arms == graph.node(branch).inputs == (2, first)
    assert graph.topology_generation == 0


def test_distinct_places_stay() -> None:
    graph = chain(3)
    arms = [clone(graph, 2, device) for device in (CUDA, OTHER_CUDA, OPENCL)]
    branch = record(graph, 1, 3, 2, *arms)
    prune(graph, {2: CHOICE})
    assert graph.branches[branch].arms == (2, *arms)


@pytest.mark.parametrize("stamp", [None, HOST])
def test_the_last_route_of_a_decision_stays(stamp: Device | None) -> None:
    """The planner would put an unstamped clone where it put arm 0: on the CPU."""
    graph = chain(3)
    branch = record(graph, 1, 3, 2, clone(graph, 2, stamp), clone(graph, 2, stamp))
    prune(graph, {2: CHOICE})
    assert graph.branches == {}
    assert graph.node(branch).inputs == (2,)
    assert graph.topological_order() == (0, 1, 2, 3)


def test_another_operation_attribute_or_input_is_another_route() -> None:
    graph = chain(3)
    weight = graph.push(Node("weight", (), VECTOR, kind="weight"))
    others = [
        graph.push(Node("Tanh", (1,), VECTOR)),
        graph.push(Node("Relu", (1,), VECTOR, attributes={"alpha": 0.1})),
        graph.push(Node("Relu", (1, weight), VECTOR)),
    ]
    branch = record(graph, 1, 3, 2, *others)
    prune(graph, {2: CHOICE})
    assert graph.branches[branch].arms == (2, *others)


def test_arms_of_several_nodes_are_compared_node_by_node() -> None:
    graph = chain(4)  # arm 0 is f2, f3
    same = graph.push(Node("Relu", (clone(graph, 2),), VECTOR))
    moved = graph.push(Node("Relu", (clone(graph, 2, CUDA),), VECTOR))
    longer = graph.push(
        Node("Relu", (graph.push(Node("Relu", (clone(graph, 2),), VECTOR)),), VECTOR)
    )
    branch = record(graph, 1, 4, 3, same, moved, longer)
    prune(graph, {2: CHOICE, 3: CHOICE})
    assert graph.branches[branch].arms == (3, moved, longer)


@pytest.mark.parametrize("guarded", ["branch", "arm 0", "repeated arm", "inside of an arm"])
def test_a_branch_under_the_cycle_guard_is_left_alone(guarded: str) -> None:
    graph = chain(4)
    inside = clone(graph, 2)
    again = graph.push(Node("Relu", (inside,), VECTOR))
    branch = record(graph, 1, 4, 3, again)
    node = {"branch": branch, "arm 0": 3, "repeated arm": again, "inside of an arm": inside}
    before = graph.nodes
    prune(graph, {2: CHOICE, 3: CHOICE}, frozenset({node[guarded]}))
    assert graph.branches[branch].arms == (3, again)
    assert graph.nodes == before
    prune(graph, {2: CHOICE, 3: CHOICE}, frozenset({0, 1, 4}))  # a node outside does not matter
    assert graph.branches == {}


def test_a_second_branch_for_the_same_decision_loses_what_the_first_has() -> None:
    graph = chain(3)
    first = record(graph, 1, 3, 2, clone(graph, 2, CUDA))
    third = clone(graph, 2, OPENCL)
    second = record(graph, 1, 3, 2, clone(graph, 2, CUDA), third)
    record(graph, 1, 3, 2, clone(graph, 2, CUDA))
    prune(graph, {2: CHOICE})
    assert list(graph.branches) == [first, second]
    assert graph.branches[second].arms == (2, third)


def test_decisions_at_different_places_do_not_touch_one_another() -> None:
    graph = chain(4)
    record(graph, 1, 3, 2, clone(graph, 2, CUDA))
    record(graph, 2, 4, 3, clone(graph, 3, CUDA))
    before = graph.nodes
    prune(graph, dict.fromkeys((2, 3), CHOICE))
    assert graph.nodes == before


class Leaky:
    """A pathfinder that repeats the runner-up of every branch it finds."""

    name = "Leaky"

    def propose(self, graph: Graph, context: OptimizationContext) -> None:
        for branch in list(graph.branches.values()):
            fork, runner_up = branch.arms
            builder = graph.open_branch(branch.diverge).add_arm(fork)
            builder.add_arm(clone(graph, fork, graph.placements[runner_up]))
            builder.finalize_branches(graph, branch.reconverge)


def test_what_a_pathfinder_leaks_is_merged_right_after_it() -> None:
    graph = chain(4)
    given = context(graph, dict.fromkeys((1, 2, 3, 4), CHOICE))
    registry = (
        PassRegistry()
        .with_pathfinder(PlacementForkPathfinder())
        .with_pathfinder(Leaky())
        .with_optimizer(FrontierConvergenceOptimizer())
    )
    registry.run_lockstep(graph, given)
    assert [branch.arms for branch in graph.branches.values()] == [(1, 5), (2, 7), (3, 9)]
    assert graph.topological_order() == (0, 1, 2, 3, 4)
