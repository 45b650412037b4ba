"""Runs: the stretches of a route between decision points."""

from decided_graphs import add, chain, decided_graphs, fork, graphs
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu.graph.arena import Graph
from fuel_gpu.graph.lowering import lower
from fuel_gpu.graph.runs import Run, extract_runs


@given(graphs())
def test_without_branches_the_order_is_one_run(graph: Graph) -> None:
    order = graph.topological_order()
    assert extract_runs(graph, order) == (Run(order, ()),)


def test_an_empty_order_has_no_run() -> None:
    assert extract_runs(Graph(), ()) == ()


def test_a_decision_cuts_behind_diverge_and_before_reconverge() -> None:
    graph = chain(5)
    add(graph, "unused", 0)
    fused = add(graph, "fused", 1)
    branch = graph.open_branch(1).add_arm(3).add_arm(fused).finalize_branches(graph, 4)
    assert branch is not None
    order = graph.topological_order()
    assert extract_runs(graph, order) == (
        Run((0, 1), ()),
        Run((2, 3), ((branch, 0),)),
        Run((4, 5), ()),
    )
    assert extract_runs(graph, lower(graph, order, {branch: 1}).order) == (
        Run((0, 1), ()),
        Run((fused,), ((branch, 1),)),
        Run((4, 5), ()),
    )


def test_an_arm_inside_an_arm_names_the_outer_first() -> None:
    graph = chain(4)
    inner = fork(graph, 2)
    fused = add(graph, "fused", 1)
    outer = graph.open_branch(1).add_arm(3).add_arm(fused).finalize_branches(graph, 4)
    assert outer is not None
    assert extract_runs(graph, graph.topological_order()) == (
        Run((0, 1), ()),
        Run((2,), ((outer, 0), (inner, 0))),
        Run((3,), ((outer, 0),)),
        Run((4,), ()),
    )


def test_decisions_in_a_row_are_runs_of_their_own() -> None:
    graph = chain(4)
    first, second = fork(graph, 2), fork(graph, 3)
    assert extract_runs(graph, graph.topological_order()) == (
        Run((0, 1), ()),
        Run((2,), ((first, 0),)),
        Run((3,), ((second, 0),)),
        Run((4,), ()),
    )


def test_an_arm_that_other_work_interrupts_has_several_runs() -> None:
    graph = chain(2)  # x, f1, f2; then a side input and f3, so that the order mixes them
    side = add(graph, "side", 0)
    third = add(graph, "f3", 2)
    last = add(graph, "last", third, side)
    graph.outputs = [last]
    fused = add(graph, "fused", 1)
    branch = graph.open_branch(1).add_arm(third).add_arm(fused).finalize_branches(graph, last)
    assert branch is not None
    assert extract_runs(graph, graph.topological_order()) == (
        Run((0, 1), ()),
        Run((2,), ((branch, 0),)),
        Run((side,), ()),
        Run((third,), ((branch, 0),)),
        Run((last,), ()),
    )


def test_other_work_between_an_exit_and_reconverge_is_a_run_of_its_own() -> None:
    graph = chain(2)
    side = add(graph, "side", 0)
    last = add(graph, "last", 2, side)
    graph.outputs = [last]
    clone = add(graph, "f2", 1)
    branch = graph.open_branch(1).add_arm(2).add_arm(clone).finalize_branches(graph, last)
    assert branch is not None
    assert extract_runs(graph, graph.topological_order()) == (
        Run((0, 1), ()),
        Run((2,), ((branch, 0),)),
        Run((side,), ()),
        Run((last,), ()),
    )


@given(decided_graphs(), st.data())
def test_joined_runs_are_the_route_and_name_only_arms_that_run(
    graph: Graph, data: st.DataObject
) -> None:
    picks = {branch: data.draw(st.integers(0, 1)) for branch in graph.branches}
    route = lower(graph, graph.topological_order(), picks)
    runs = extract_runs(graph, route.order)
    assert tuple(n for run in runs for n in run.nodes) == route.order
    meets = {branch.reconverge for branch in graph.branches.values()}
    parts = {branch.diverge for branch in graph.branches.values()}
    for run in runs:
        assert meets.isdisjoint(run.nodes[1:])
        assert parts.isdisjoint(run.nodes[:-1])
