"""Lowering: arm 0 is exactly the plan's order, and a picked route follows the picked arms."""

from dataclasses import replace

import pytest
from decided_graphs import VECTOR, add, chain, computed, decided_graphs, fork, graphs
from hypothesis import given, settings
from hypothesis import strategies as st

from fuel_gpu.errors import InvalidBranchError, PlanError
from fuel_gpu.graph.arena import Graph, Node
from fuel_gpu.graph.lowering import Route, lower, nodes_on_route, upstream_first


@given(graphs())
def test_a_graph_without_branches_lowers_to_exactly_the_plans_order(graph: Graph) -> None:
    order = graph.topological_order()
    assert lower(graph, order) == Route(order, {})


@given(decided_graphs())
def test_arm_0_everywhere_is_exactly_the_plans_order(graph: Graph) -> None:
    order = graph.topological_order()
    assert lower(graph, order).order == order
    assert lower(graph, order, dict.fromkeys(graph.branches, 0)) == Route(order, {})


@settings(max_examples=300)
@given(decided_graphs(), st.data())
def test_any_picks_give_a_topological_order_that_computes_the_same(
    graph: Graph, data: st.DataObject
) -> None:
    order = graph.topological_order()
    picks = {branch: data.draw(st.integers(0, 1)) for branch in graph.branches}
    route = lower(graph, order, picks)
    expected = computed(graph, order, lambda n: graph.node(n).inputs)
    found = computed(graph, route.order, lambda n: route.inputs(graph, n))
    assert [str(found[n]) for n in graph.outputs] == [str(expected[n]) for n in graph.outputs]
    assert len(set(route.order)) == len(route.order)
    assert set(route.order) == nodes_on_route(graph, picks)


@settings(max_examples=300)
@given(decided_graphs(), st.data())
def test_a_picked_arm_runs_and_arm_0_does_not(graph: Graph, data: st.DataObject) -> None:
    order = graph.topological_order()
    branch_id = data.draw(st.sampled_from([*graph.branches, None]))
    if branch_id is None:
        return
    branch = graph.branches[branch_id]
    route = lower(graph, order, {branch_id: 1})
    on_arm_0 = branch.reconverge in order
    assert (branch.arms[1] in route.order) == on_arm_0
    assert branch.arms[0] not in route.order
    if on_arm_0:
        swapped = [
            branch.arms[1] if i == branch.arms[0] else i
            for i in graph.node(branch.reconverge).inputs
        ]
        assert route.reads[branch.reconverge] == tuple(swapped)
    kept = [n for n in order if n in route.order]
    assert kept == [n for n in route.order if n in order]  # the others keep their places


def test_the_picked_arm_stands_where_arm_0s_exit_stood() -> None:
    graph = chain(3)  # x 0, f1 1, f2 2, f3 3
    side = add(graph, "side", 0)
    total = add(graph, "total", 3, side)
    graph.outputs = [total]
    branch = fork(graph, 2)
    clone = graph.branches[branch].arms[1]
    route = lower(graph, graph.topological_order(), {branch: 1})
    assert route.order == (0, 1, clone, 3, side, total)
    assert route.reads == {3: (clone,)}


def test_decisions_in_a_row_are_taken_one_by_one() -> None:
    graph = chain(4)
    first, second, third = fork(graph, 1), fork(graph, 2), fork(graph, 3)
    clones = {b: graph.branches[b].arms[1] for b in (first, second, third)}
    order = graph.topological_order()
    route = lower(graph, order, {first: 1, second: 1})
    assert route.order == (0, clones[first], clones[second], 3, 4)
    assert route.reads == {clones[second]: (clones[first],), 3: (clones[second],)}
    route = lower(graph, order, {first: 1, third: 1})
    assert route.order == (0, clones[first], 2, clones[third], 4)


def test_a_decision_inside_an_arm_counts_only_where_that_arm_runs() -> None:
    graph = chain(4)
    inner = fork(graph, 2)
    fused = add(graph, "fused", 1)
    outer = graph.open_branch(1).add_arm(3).add_arm(fused).finalize_branches(graph, 4)
    assert outer is not None
    order = graph.topological_order()
    inner_clone = graph.branches[inner].arms[1]
    assert [b for b, _ in upstream_first(graph)] == [outer, inner]
    assert lower(graph, order, {inner: 1}).order == (0, 1, inner_clone, 3, 4)
    assert lower(graph, order, {outer: 1}).order == (0, 1, fused, 4)
    assert lower(graph, order, {outer: 1, inner: 1}) == lower(graph, order, {outer: 1})


def test_the_wider_of_two_decisions_with_one_exit_goes_first() -> None:
    graph = chain(4)
    inner = fork(graph, 3)
    fused = add(graph, "fused", 1)
    outer = graph.open_branch(1).add_arm(3).add_arm(fused).finalize_branches(graph, 4)
    assert outer is not None
    order = graph.topological_order()
    assert lower(graph, order, {inner: 1, outer: 1}).order == (0, 1, fused, 4)
    assert lower(graph, order, {inner: 1}).order == (0, 1, 2, graph.branches[inner].arms[1], 4)


def test_a_decision_inside_a_further_arm_is_followed_where_that_arm_is_picked() -> None:
    graph = chain(3)
    p = add(graph, "p", 1)
    q = add(graph, "q", p)
    outer = graph.open_branch(1).add_arm(2).add_arm(q).finalize_branches(graph, 3)
    other_p = add(graph, "p", 1)
    inner = graph.open_branch(1).add_arm(p).add_arm(other_p).finalize_branches(graph, q)
    assert outer is not None
    assert inner is not None
    order = graph.topological_order()
    assert lower(graph, order, {inner: 1}).order == order
    assert lower(graph, order, {outer: 1}).order == (0, 1, p, q, 3)
    assert lower(graph, order, {outer: 1, inner: 1}).order == (0, 1, other_p, q, 3)


def test_a_node_that_overwrites_its_input_stays_behind_the_earlier_readers() -> None:
    graph = chain(1)
    other = add(graph, "y", kind="input")
    fast = add(graph, "fast", other)
    view = add(graph, "view", 1, kind="view")
    reader = add(graph, "reader", view)
    writer = graph.push(Node("writer", (1,), VECTOR, name="writer", writes_input=0))
    total = add(graph, "total", fast, reader)
    graph.outputs = [total, writer]
    slow = add(graph, "slow", other, writer)  # moves the writer up to where `fast` stood
    branch = graph.open_branch(other).add_arm(fast).add_arm(slow).finalize_branches(graph, total)
    assert branch is not None
    order = graph.topological_order()
    assert order == (0, 1, other, fast, view, reader, writer, total)
    route = lower(graph, order, {branch: 1})
    assert route.order == (0, 1, other, view, reader, writer, slow, total)
    graph.replace(reader, replace(graph.node(reader), inputs=(view, fast)))
    graph.replace(total, replace(graph.node(total), inputs=(reader,)))
    graph.branches[branch] = replace(graph.branches[branch], reconverge=reader)
    with pytest.raises(PlanError, match="need one another"):
        # `reader` reads what the writer overwrites, and waits for `slow`, which waits for it.
        lower(graph, order, {branch: 1})


def test_arms_that_need_one_another_are_refused() -> None:
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
    order = graph.topological_order()
    assert lower(graph, order, {first: 1}).order == (x, y, q, after_q, other_p, after_p)
    with pytest.raises(PlanError, match="the picked arms need one another"):
        lower(graph, order, {first: 1, second: 1})


def test_an_output_that_only_a_left_arm_read_still_runs() -> None:
    graph = Graph()
    x, y = add(graph, "x", kind="input"), add(graph, "y", kind="input")
    given_out = add(graph, "given out", y)
    arm = add(graph, "arm", x, given_out)
    last = add(graph, "last", arm)
    other = add(graph, "other", x)
    graph.outputs = [last, given_out]
    branch = graph.open_branch(x).add_arm(arm).add_arm(other).finalize_branches(graph, last)
    assert branch is not None
    route = lower(graph, graph.topological_order(), {branch: 1})
    assert route.order == (x, y, given_out, other, last)
    graph.outputs = [last]
    assert lower(graph, graph.topological_order(), {branch: 1}).order == (x, other, last)


def test_two_decisions_that_point_at_each_other_settle_on_the_first() -> None:
    graph = Graph()
    x = add(graph, "x", kind="input")
    left, right = add(graph, "same", x), add(graph, "same", x)
    total = add(graph, "add", left, right)
    graph.outputs = [total]
    first = graph.open_branch(x).add_arm(left).add_arm(right).finalize_branches(graph, total)
    second = graph.open_branch(x).add_arm(right).add_arm(left).finalize_branches(graph, total)
    assert first is not None
    assert second is not None
    route = lower(graph, graph.topological_order(), {first: 1, second: 1})
    assert route.reads == {total: (right, right)}
    assert route.order == (x, right, total)


def test_picks_name_branches_and_arms_that_exist() -> None:
    graph = chain(3)
    branch = fork(graph, 1)
    order = graph.topological_order()
    with pytest.raises(InvalidBranchError, match="node 2 is picked but is no branch"):
        lower(graph, order, {2: 0})
    with pytest.raises(InvalidBranchError, match=f"arm 2 of branch {branch} does not exist"):
        lower(graph, order, {branch: 2})
    with pytest.raises(InvalidBranchError, match=f"arm -1 of branch {branch}"):
        lower(graph, order, {branch: -1})
