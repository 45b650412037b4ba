"""Decide a recorded branch for good: collapse it to one arm, or drop one of its arms."""

from dataclasses import replace

from fuel_gpu.errors import InvalidBranchError
from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.graph.branches import Branch, arm_nodes, check_branch, is_live


def collapse(graph: Graph, branch_id: NodeId, arm: int) -> None:
    """Take one arm of a branch and forget the others.

    Branches inside the arms not taken are closed with them. Taking arm 0 changes no value's flow;
    taking another redirects the readers of arm 0's exit and starts a new topology generation.
    The nodes of the arms not taken stay in the arena, where no output needs them.

    Raises
    ------
    InvalidBranchError
        If there is no such branch or arm, or if the arm needs what comes after it because of
        decisions taken before; the graph is unchanged.
    """
    branch = _branch(graph, branch_id, arm)
    dropped = [k for k in range(len(branch.arms)) if k != arm]
    _keep_arms(graph, branch_id, branch, kept=[arm], dropped=dropped)


def drop_arm(graph: Graph, branch_id: NodeId, arm: int) -> None:
    """Discard one arm of a branch; with a single arm left the branch is closed.

    Dropping arm 0 makes the next arm the chosen one and starts a new topology generation;
    dropping another changes no value's flow. A closed branch has no arm to drop, so the last
    route always stays.

    Raises
    ------
    InvalidBranchError
        As for `collapse`.
    """
    branch = _branch(graph, branch_id, arm)
    kept = [k for k in range(len(branch.arms)) if k != arm]
    _keep_arms(graph, branch_id, branch, kept=kept, dropped=[arm])


def _branch(graph: Graph, branch_id: NodeId, arm: int) -> Branch:
    branch = graph.branches.get(branch_id)
    if branch is None:
        raise InvalidBranchError(f"node {branch_id} is no open branch of the graph")
    if not 0 <= arm < len(branch.arms):
        raise InvalidBranchError(
            f"arm {arm} of branch {branch_id} does not exist: it has {len(branch.arms)} arms"
        )
    return branch


def _keep_arms(
    graph: Graph, branch_id: NodeId, branch: Branch, *, kept: list[int], dropped: list[int]
) -> None:
    before, after = branch.arms[0], branch.arms[kept[0]]
    readers = [r for r in graph.readers(before) if graph.node(r).kind != "branch"]
    if before != after:
        _check_no_cycle(graph, after, readers)
    gone = {n for k in dropped for n in arm_nodes(graph, branch.diverge, branch.arms[k])}
    inside = gone - {branch.arms[k] for k in dropped}
    graph.update_branch(
        branch_id,
        replace(
            branch,
            arms=tuple(branch.arms[k] for k in kept),
            prices=tuple(branch.prices[k] for k in kept),
        ),
    )
    if before != after:
        for reader in readers:
            node = graph.node(reader)
            inputs = tuple(after if i == before else i for i in node.inputs)
            graph.replace(reader, replace(node, inputs=inputs))
    _close_inside(graph, gone, inside)
    _follow(graph, gone, {before: after})


def _check_no_cycle(graph: Graph, exit_id: NodeId, readers: list[NodeId]) -> None:
    first = min((graph.position(r) for r in readers), default=0)
    reached = {exit_id}
    waiting = [exit_id]
    while waiting:
        node_id = waiting.pop()
        if node_id in readers:
            raise InvalidBranchError(
                f"the arm that ends at node {exit_id} needs node {node_id}, which would read it"
            )
        for value in graph.node(node_id).inputs:
            if value not in reached and graph.position(value) >= first:
                reached.add(value)
                waiting.append(value)


def _close_inside(graph: Graph, gone: set[NodeId], inside: set[NodeId]) -> None:
    """Close the branches inside arms that are gone, and those inside these branches' arms."""
    found = True
    while found:
        found = False
        for branch_id, branch in list(graph.branches.items()):
            if branch.arms[0] in inside:
                nodes = {n for a in branch.arms for n in arm_nodes(graph, branch.diverge, a)}
                gone |= nodes
                inside |= nodes
                _close(graph, branch_id, branch)
                found = True


def _follow(graph: Graph, gone: set[NodeId], now: dict[NodeId, NodeId]) -> None:
    """Let the other branches name the nodes that run now; close those that no longer hold."""
    for branch_id, branch in list(graph.branches.items()):
        if gone.isdisjoint((branch.diverge, branch.reconverge, *branch.arms)):
            continue
        arms = tuple(now.get(exit_id, exit_id) for exit_id in branch.arms)
        reconverge = branch.reconverge
        if reconverge in gone:
            # The dropped arm began there; the arm that is kept begins at another reader.
            live = [r for r in graph.readers(arms[0]) if is_live(graph, r)]
            reconverge = live[0] if len(live) == 1 else reconverge
        moved = Branch(now.get(branch.diverge, branch.diverge), reconverge, arms, branch.prices)
        try:
            check_branch(graph, moved)
        except InvalidBranchError:
            _close(graph, branch_id, branch)
        else:
            graph.update_branch(branch_id, moved)


def _close(graph: Graph, branch_id: NodeId, branch: Branch) -> None:
    graph.update_branch(branch_id, replace(branch, arms=branch.arms[:1], prices=branch.prices[:1]))
