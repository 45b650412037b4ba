"""Recording a decision: what a branch holds, and the rules that refuse one."""

from collections.abc import Sequence

import pytest
from decided_graphs import VECTOR, add, chain, fork, graphs, try_branch
from hypothesis import given, settings
from hypothesis import strategies as st

from fuel_gpu.device import Device
from fuel_gpu.errors import InvalidBranchError
from fuel_gpu.graph.arena import Graph, Node, NodeId, TensorType
from fuel_gpu.graph.branches import ArmPrice, Branch, arm_nodes, check_branch


def refuse(graph: Graph, diverge: NodeId, arms: Sequence[NodeId], reconverge: NodeId) -> str:
    """Fail to record a branch, leave the graph as it was, and give the message."""
    before = graph.nodes
    builder = graph.open_branch(diverge)
    for exit_id in arms:
        builder.add_arm(exit_id)
    with pytest.raises(InvalidBranchError) as refused:
        builder.finalize_branches(graph, reconverge)
    assert graph.nodes == before
    assert graph.branches == {}
    assert graph.topology_generation == 0
    return str(refused.value)


def test_a_branch_reads_its_arms_and_the_live_flow_stays() -> None:
    graph = chain(3)
    clone = add(graph, "f2", 1)
    price = ArmPrice(Device("cuda"), "cuda", time_ns=40, bytes=32)
    builder = graph.open_branch(1).add_arm(2).add_arm(clone, price)
    branch = builder.finalize_branches(graph, 3)
    assert branch == 5
    assert graph.node(5) == Node("branch", (2, clone), VECTOR, kind="branch")
    assert graph.branches == {
        5: Branch(diverge=1, reconverge=3, arms=(2, clone), prices=(None, price))
    }
    assert graph.node(3).inputs == (2,)
    assert graph.topological_order() == (0, 1, 2, 3)
    assert graph.topology_generation == 0


def test_one_arm_is_no_decision() -> None:
    graph = chain(3)
    assert graph.open_branch(1).add_arm(2).finalize_branches(graph, 3) is None
    assert graph.nodes == chain(3).nodes
    assert graph.branches == {}


def test_no_arm_is_refused() -> None:
    assert "has no arm" in refuse(chain(3), 1, [], 3)


@pytest.mark.parametrize(
    ("diverge", "arms", "reconverge", "named"),
    [
        (9, [2, 4], 3, "diverge is node 9"),
        (-1, [2, 4], 3, "diverge is node -1"),
        (1, [2, 4], 5, "reconverge is node 5"),
        (1, [2, 7], 3, "arm 1's exit is node 7"),
    ],
)
def test_ids_exist(diverge: NodeId, arms: list[NodeId], reconverge: NodeId, named: str) -> None:
    graph = chain(3)
    add(graph, "f2", 1)
    message = refuse(graph, diverge, arms, reconverge)
    assert named in message
    assert "the graph has 5 nodes" in message


@pytest.mark.parametrize("diverge", [3, 4])
def test_reconverge_comes_strictly_after_diverge(diverge: NodeId) -> None:
    graph = chain(4)
    clone = add(graph, "f2", 1)
    message = refuse(graph, diverge, [2, clone], 3)
    assert f"node 3 (f3) does not come after node {diverge} (f{diverge})" in message


@pytest.mark.parametrize("other", [TensorType("float32", (5,)), TensorType("float16", (4,))])
def test_exits_agree_in_dtype_and_shape(other: TensorType) -> None:
    graph = chain(3)
    clone = graph.push(Node("f2", (1,), other, name="narrow"))
    message = refuse(graph, 1, [2, clone], 3)
    assert f"arm 1 ends at node 4 (narrow) with {other.dtype} {other.shape}" in message
    assert "arm 0 at node 2 (f2) with float32 (4,)" in message


def test_reconverge_reads_the_exit_of_arm_0() -> None:
    graph = chain(4)
    clone = add(graph, "f2", 1)
    assert "node 4 (f4) does not read arm 0's exit, node 2 (f2)" in refuse(graph, 1, [2, clone], 4)
    assert f"arm 0's exit, node {clone}" in refuse(graph, 1, [clone, 2], 3)


def test_every_arm_has_a_node_of_its_own() -> None:
    graph = chain(3)
    assert "arm 1 ends at node 1 (f1)" in refuse(graph, 1, [2, 1], 3)
    unrelated = add(graph, "other", 0)
    assert f"arm 1 ends at node {unrelated} (other)" in refuse(graph, 1, [2, unrelated], 3)


def test_arms_share_no_node() -> None:
    graph = chain(4)
    clone = add(graph, "f3", 2)
    assert "arms 0 and 1 share node 2 (f2)" in refuse(graph, 1, [3, clone], 4)
    assert "arms 0 and 1 share node 2 (f2)" in refuse(graph, 1, [2, 2], 3)


def test_nothing_outside_reads_the_inside_of_an_arm() -> None:
    graph = chain(4)
    peek = add(graph, "peek", 2)
    graph.outputs.append(peek)
    clone = add(graph, "fused", 1)
    expected = f"node {peek} (peek) reads node 2 (f2) from outside its arm"
    assert expected in refuse(graph, 1, [3, clone], 4)
    assert expected in refuse(graph, 1, [2, clone], 3)  # an exit has the one reader, reconverge


def test_before_outputs_are_named_every_last_node_counts_as_a_reader() -> None:
    graph = chain(4)
    graph.outputs = []
    peek = add(graph, "peek", 2)
    clone = add(graph, "fused", 1)
    assert f"node {peek} (peek) reads node 2" in refuse(graph, 1, [3, clone], 4)


def test_a_reader_that_no_output_needs_does_not_count() -> None:
    graph = chain(4)
    add(graph, "unused", 2)
    clone = add(graph, "fused", 1)
    branch = graph.open_branch(1).add_arm(3).add_arm(clone).finalize_branches(graph, 4)
    assert branch in graph.branches


def test_an_output_inside_an_arm_is_refused() -> None:
    graph = chain(4)
    graph.outputs.append(2)
    clone = add(graph, "fused", 1)
    message = refuse(graph, 1, [3, clone], 4)
    assert "node 2 (f2) lies inside an arm and is an output" in message


def test_an_exit_that_is_an_output_is_refused() -> None:
    graph = chain(4)
    graph.outputs.append(3)
    clone = add(graph, "fused", 1)
    assert "node 3 (f3) lies inside an arm" in refuse(graph, 1, [3, clone], 4)


def test_reconverge_reads_exits_and_nothing_else_of_an_arm() -> None:
    graph = chain(3)
    graph.outputs = [add(graph, "both", 3, 2)]
    clone = add(graph, "fused", 1)
    message = refuse(graph, 1, [3, clone], 4)
    assert "node 4 (both) reads node 2 (f2) from outside its arm" in message


def test_reconverge_may_read_every_exit() -> None:
    graph = Graph()
    x = add(graph, "x", kind="input")
    left, right = add(graph, "same", x), add(graph, "same", x)
    total = add(graph, "add", left, right)
    graph.outputs = [total]
    branch = graph.open_branch(x).add_arm(left).add_arm(right).finalize_branches(graph, total)
    assert branch in graph.branches


def test_decisions_in_a_row_can_be_recorded_in_either_order() -> None:
    for order in ([1, 2, 3], [3, 2, 1]):
        graph = chain(4)
        for node_id in order:
            fork(graph, node_id)
        assert sorted(b.arms[0] for b in graph.branches.values()) == [1, 2, 3]


def test_before_outputs_are_named_a_recorded_alternative_is_no_reader() -> None:
    graph = chain(4)
    graph.outputs = []
    for node_id in (2, 1):  # the clone of f2 reads f1
        clone = add(graph, f"f{node_id}", node_id - 1)
        builder = graph.open_branch(node_id - 1).add_arm(node_id).add_arm(clone)
        assert builder.finalize_branches(graph, node_id + 1) in graph.branches


def test_a_decision_may_lie_inside_an_arm_whichever_comes_first() -> None:
    graph = chain(4)
    fork(graph, 2)  # inside the arm 2, 3; its clone reads node 1 and is read by its branch only
    fused = add(graph, "fused", 1)
    branch = graph.open_branch(1).add_arm(3).add_arm(fused).finalize_branches(graph, 4)
    assert branch in graph.branches


def test_an_arm_holds_what_its_exit_needs_after_diverge() -> None:
    graph = Graph()
    x = add(graph, "x", kind="input")
    w = add(graph, "w", kind="weight")
    a = add(graph, "a", x)
    scaled = add(graph, "scaled", w)
    b = add(graph, "b", a, scaled)
    assert arm_nodes(graph, x, b) == {a, b}
    assert arm_nodes(graph, w, b) == {scaled, b}
    assert arm_nodes(graph, a, b) == {b}
    assert arm_nodes(graph, b, b) == frozenset()
    assert arm_nodes(graph, b, a) == frozenset()


def naive_refuses(graph: Graph, branch: Branch) -> bool:
    """The rules in the plainest words, over all nodes, by reachability alone."""

    def reach(start: set[NodeId], *, forward: bool) -> set[NodeId]:
        found = set(start)
        while True:
            more = {
                reader if forward else value
                for reader, node in enumerate(graph.nodes)
                for value in node.inputs
                if (value if forward else reader) in found
            }
            if more <= found:
                return found
            found |= more

    after = reach({branch.diverge}, forward=True) - {branch.diverge}
    arms = [reach({exit_id}, forward=False) & after for exit_id in branch.arms]
    live = reach(set(graph.outputs), forward=False)
    return (
        branch.reconverge not in after
        or branch.arms[0] not in graph.node(branch.reconverge).inputs
        or any(not arm for arm in arms)
        or any(a & b for k, a in enumerate(arms) for b in arms[:k])
        or any(arm & set(graph.outputs) for arm in arms)
        or any(
            value in arm
            and reader in live - arm
            and (value, reader) != (exit_id, branch.reconverge)
            for arm, exit_id in zip(arms, branch.arms, strict=True)
            for reader, node in enumerate(graph.nodes)
            for value in node.inputs
        )
    )


@settings(max_examples=300)
@given(graphs(), st.data())
def test_the_rules_agree_with_plain_reachability(graph: Graph, data: st.DataObject) -> None:
    ids = st.integers(0, len(graph) - 1)
    for _ in range(data.draw(st.integers(0, 2))):  # recorded before, so that clones lie about
        reconverge = data.draw(st.integers(2, len(graph) - 1))
        if graph.node(reconverge).kind != "branch":
            exit_id = data.draw(st.sampled_from(graph.node(reconverge).inputs))
            try_branch(graph, data.draw(st.integers(0, exit_id)), exit_id, reconverge)
    ids = st.sampled_from([n for n, node in enumerate(graph.nodes) if node.kind != "branch"])
    reconverge = data.draw(ids)
    exits = st.sampled_from(graph.node(reconverge).inputs) if reconverge > 1 else ids
    branch = Branch(data.draw(ids), reconverge, (data.draw(exits), data.draw(ids)), (None, None))
    try:
        check_branch(graph, branch)
        refused = False
    except InvalidBranchError:
        refused = True
    assert refused == naive_refuses(graph, branch)
