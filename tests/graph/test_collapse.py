"""Deciding a branch for good: collapsing it to an arm and dropping an arm."""

import pytest
from decided_graphs import add, chain, computed, decided_graphs, fork
from hypothesis import given, settings
from hypothesis import strategies as st

from fuel_gpu.device import Device
from fuel_gpu.errors import InvalidBranchError
from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.graph.branches import ArmPrice, check_branch
from fuel_gpu.graph.collapse import collapse, drop_arm
from fuel_gpu.graph.lowering import lower, nodes_on_route


def three_arms() -> tuple[Graph, NodeId]:
    graph = chain(3)
    builder = graph.open_branch(1)
    for arm, exit_id in enumerate((2, add(graph, "a", 1), add(graph, "b", 1))):
        builder.add_arm(exit_id, ArmPrice(Device("cuda", arm), "cuda", 10 * arm, 32))
    branch = builder.finalize_branches(graph, 3)
    assert branch is not None
    return graph, branch


def test_collapsing_to_arm_0_changes_no_flow() -> None:
    graph, branch = three_arms()
    collapse(graph, branch, 0)
    assert graph.branches == {}
    assert graph.node(branch).inputs == (2,)
    assert graph.topological_order() == (0, 1, 2, 3)
    assert graph.topology_generation == 0


def test_collapsing_to_another_arm_redirects_reconverge() -> None:
    graph, branch = three_arms()
    collapse(graph, branch, 2)
    assert graph.branches == {}
    assert graph.node(branch).inputs == (5,)
    assert graph.node(3).inputs == (5,)
    assert graph.topological_order() == (0, 1, 5, 3)
    assert graph.topology_generation == 1


def test_dropping_a_further_arm_changes_no_flow() -> None:
    graph, branch = three_arms()
    drop_arm(graph, branch, 1)
    left = graph.branches[branch]
    assert left.arms == graph.node(branch).inputs == (2, 5)
    assert [price.time_ns for price in left.prices if price] == [0, 20]
    assert graph.topology_generation == 0


def test_dropping_arm_0_makes_the_next_arm_the_chosen_one() -> None:
    graph, branch = three_arms()
    drop_arm(graph, branch, 0)
    assert graph.branches[branch].arms == (4, 5)
    assert graph.node(3).inputs == (4,)
    assert graph.topology_generation == 1


def test_the_last_route_cannot_be_dropped() -> None:
    graph, branch = three_arms()
    drop_arm(graph, branch, 2)
    drop_arm(graph, branch, 1)
    assert graph.branches == {}
    with pytest.raises(InvalidBranchError, match=f"node {branch} is no open branch"):
        drop_arm(graph, branch, 0)
    assert graph.topological_order() == (0, 1, 2, 3)


def test_arms_and_branches_that_do_not_exist_are_refused() -> None:
    graph, branch = three_arms()
    before = graph.nodes
    with pytest.raises(InvalidBranchError, match=f"arm 3 of branch {branch} does not exist"):
        collapse(graph, branch, 3)
    with pytest.raises(InvalidBranchError, match="node 2 is no open branch"):
        collapse(graph, 2, 0)
    assert graph.nodes == before


def test_decisions_in_a_row_follow_the_collapsed_one() -> None:
    graph = chain(4)
    first, second = fork(graph, 1), fork(graph, 2)
    chosen, other = graph.branches[first].arms[1], graph.branches[second].arms[1]
    collapse(graph, first, 1)
    assert graph.branches[second].diverge == chosen
    assert graph.node(2).inputs == graph.node(other).inputs == (chosen,)
    assert lower(graph, graph.topological_order(), {second: 1}).order == (0, chosen, other, 3, 4)


def test_the_neighbours_of_a_collapsed_decision_stay_open() -> None:
    graph = chain(4)
    first, second, third = (fork(graph, n) for n in (1, 2, 3))
    chosen = graph.branches[second].arms[1]
    collapse(graph, second, 1)
    assert list(graph.branches) == [first, third]
    assert graph.branches[first].reconverge == chosen  # it began the arm that was taken
    assert graph.branches[third].diverge == chosen
    route = lower(graph, graph.topological_order(), {first: 1, third: 1})
    clones = [graph.branches[b].arms[1] for b in (first, third)]
    assert route.order == (0, clones[0], chosen, clones[1], 4)


def test_decisions_inside_an_arm_not_taken_are_closed() -> None:
    graph = chain(4)
    inner = fork(graph, 2)
    fused = add(graph, "fused", 1)
    outer = graph.open_branch(1).add_arm(3).add_arm(fused).finalize_branches(graph, 4)
    assert outer is not None
    kept = graph.copy()
    collapse(graph, outer, 1)
    assert graph.branches == {}
    collapse(kept, outer, 0)
    assert list(kept.branches) == [inner]


def test_decisions_inside_the_alternatives_of_a_closed_one_are_closed() -> None:
    graph = chain(4)  # outer: f2, f3 or fused; inner: f2 or p, q; innermost: p or its clone
    p = add(graph, "p", 1)
    q = add(graph, "q", p)
    clone = add(graph, "p", 1)
    innermost = graph.open_branch(1).add_arm(p).add_arm(clone).finalize_branches(graph, q)
    inner = graph.open_branch(1).add_arm(2).add_arm(q).finalize_branches(graph, 3)
    fused = add(graph, "fused", 1)
    outer = graph.open_branch(1).add_arm(3).add_arm(fused).finalize_branches(graph, 4)
    assert outer is not None
    assert list(graph.branches) == [innermost, inner, outer]
    collapse(graph, outer, 1)
    assert graph.branches == {}


def test_a_wider_decision_with_the_same_exit_follows_the_inner_one() -> None:
    graph = chain(4)
    inner = fork(graph, 3)
    fused = add(graph, "fused", 1)
    outer = graph.open_branch(1).add_arm(3).add_arm(fused).finalize_branches(graph, 4)
    assert outer is not None
    chosen = graph.branches[inner].arms[1]
    collapse(graph, inner, 1)
    assert graph.branches[outer].arms == (chosen, fused)
    assert graph.node(4).inputs == (chosen,)
    collapse(graph, outer, 1)
    assert graph.topological_order() == (0, 1, fused, 4)


def test_an_arm_that_needs_what_comes_after_it_is_refused() -> None:
    graph = Graph()
    x, y = add(graph, "x", kind="input"), add(graph, "y", kind="input")
    p, q = add(graph, "p", x), add(graph, "q", y)
    after_p, after_q = add(graph, "after p", p), add(graph, "after q", q)
    graph.outputs = [after_p, after_q]
    other_p, other_q = add(graph, "other p", x, after_q), add(graph, "other q", y, after_p)
    first = graph.open_branch(x).add_arm(p).add_arm(other_p).finalize_branches(graph, after_p)
    second = graph.open_branch(y).add_arm(q).add_arm(other_q).finalize_branches(graph, after_q)
    assert first is not None
    assert second is not None
    collapse(graph, first, 1)
    before, branches = graph.nodes, dict(graph.branches)
    with pytest.raises(InvalidBranchError, match=f"node {other_q} needs node {after_q}"):
        collapse(graph, second, 1)
    assert (graph.nodes, graph.branches) == (before, branches)
    assert graph.topological_order() == (x, y, q, after_q, other_p, after_p)


@settings(max_examples=300)
@given(decided_graphs(), st.data())
def test_collapsing_one_by_one_computes_the_same_and_leaves_valid_branches(
    graph: Graph, data: st.DataObject
) -> None:
    before = computed(graph, graph.topological_order(), lambda n: graph.node(n).inputs)
    while graph.branches:
        branch = data.draw(st.sampled_from(sorted(graph.branches)))
        generation, order = graph.topology_generation, graph.topological_order()
        arm = data.draw(st.integers(0, 1))
        route = nodes_on_route(graph, {branch: arm})
        exit_id = graph.branches[branch].arms[0]
        untouched = {
            other
            for other, each in graph.branches.items()
            if each.arms[0] in route and (each.diverge in route or each.diverge == exit_id)
        }
        collapse(graph, branch, arm)
        assert branch not in graph.branches
        assert untouched - {branch} <= graph.branches.keys()
        if graph.topology_generation == generation:
            assert graph.topological_order() == order
        for node_id, each in graph.branches.items():
            assert graph.node(node_id).inputs == each.arms
            check_branch(graph, each)
    after = computed(graph, graph.topological_order(), lambda n: graph.node(n).inputs)
    assert [str(after[n]) for n in graph.outputs] == [str(before[n]) for n in graph.outputs]


@settings(max_examples=300)
@given(decided_graphs(), st.data())
def test_collapsing_to_a_picked_arm_leaves_the_picked_route(
    graph: Graph, data: st.DataObject
) -> None:
    picks = {branch: data.draw(st.integers(0, 1)) for branch in graph.branches}
    exits = {branch.arms[0] for branch in graph.branches.values()}
    if not picks or len(exits) < len(picks):  # two decisions over one exit exclude each other
        return
    branch = data.draw(st.sampled_from(sorted(picks)))
    before = lower(graph, graph.topological_order(), picks)
    if graph.branches[branch].arms[picks[branch]] not in before.order:
        return
    collapse(graph, branch, picks[branch])
    left = {each: arm for each, arm in picks.items() if each in graph.branches}
    after = lower(graph, graph.topological_order(), left)
    assert set(after.order) == set(before.order)
