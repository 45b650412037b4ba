"""Cut a route into runs: the stretches between decision points."""

from collections.abc import Sequence
from dataclasses import dataclass

from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.graph.branches import arm_nodes


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of a route in which nothing is decided.

    Parameters
    ----------
    nodes
        Its nodes in the order of running.
    arms
        The arms that it is part of as (branch node, arm), the outermost first; empty where every
        route goes.
    """

    nodes: tuple[NodeId, ...]
    arms: tuple[tuple[NodeId, int], ...]


def extract_runs(graph: Graph, order: Sequence[NodeId]) -> tuple[Run, ...]:
    """Cut an order into its runs.

    A cut falls behind each node where routes part, before each node where they meet, and where
    the order passes into or out of an arm.

    Parameters
    ----------
    order
        The order of a lowered route.

    Returns
    -------
    tuple of Run
        Joined, their nodes are `order`; without branches a single run, for an empty order none.
    """
    on_route = set(order)
    arms_of: dict[NodeId, list[tuple[int, NodeId, int]]] = {}
    for branch_id, branch in graph.branches.items():
        for arm, exit_id in enumerate(branch.arms):
            nodes = arm_nodes(graph, branch.diverge, exit_id)
            for node_id in nodes & on_route:
                arms_of.setdefault(node_id, []).append((-len(nodes), branch_id, arm))
    parts = {branch.diverge for branch in graph.branches.values()}
    meets = {branch.reconverge for branch in graph.branches.values()}

    runs: list[Run] = []
    nodes_so_far: list[NodeId] = []
    arms_so_far: tuple[tuple[NodeId, int], ...] = ()
    for node_id in order:
        arms = tuple((b, arm) for _, b, arm in sorted(arms_of.get(node_id, ())))
        if nodes_so_far and (arms != arms_so_far or node_id in meets or nodes_so_far[-1] in parts):
            runs.append(Run(tuple(nodes_so_far), arms_so_far))
            nodes_so_far = []
        arms_so_far = arms
        nodes_so_far.append(node_id)
    if nodes_so_far:
        runs.append(Run(tuple(nodes_so_far), arms_so_far))
    return tuple(runs)
