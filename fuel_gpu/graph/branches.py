"""Recorded decisions: a branch between routes that give the same value, and its rules.

The live flow keeps reading arm 0; the branch node only reads the arms' exits, and no output needs
it. So recording a branch changes no value, no order and no topology generation, and the plan that
led to it stays valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fuel_gpu.device import Device
from fuel_gpu.errors import InvalidBranchError

if TYPE_CHECKING:
    from fuel_gpu.graph.arena import Graph, NodeId


@dataclass(frozen=True, slots=True)
class ArmPrice:
    """What an arm costs where it would run, as it was known when the branch was recorded.

    Parameters
    ----------
    device, backend
        Where the arm runs.
    time_ns
        Nanoseconds, its inputs' transfers included.
    bytes
        Bytes that it needs there while it runs: what it reads and what it gives.
    """

    device: Device
    backend: str
    time_ns: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A decision between routes from one node to another; arm 0 is the chosen one.

    Parameters
    ----------
    diverge
        The node after which the routes part.
    reconverge
        The node that reads arm 0's exit, and another arm's once that is picked.
    arms
        The last node of each route, arm 0 first.
    prices
        Each arm's price, None where nobody gave one.
    """

    diverge: NodeId
    reconverge: NodeId
    arms: tuple[NodeId, ...]
    prices: tuple[ArmPrice | None, ...]


class BranchBuilder:
    """Collects the arms of one decision; `Graph.open_branch` gives one."""

    def __init__(self, diverge: NodeId) -> None:
        self._diverge = diverge
        self._arms: list[NodeId] = []
        self._prices: list[ArmPrice | None] = []

    def add_arm(self, exit_id: NodeId, price: ArmPrice | None = None) -> BranchBuilder:
        """Add the route that ends with this node; the first one added is arm 0."""
        self._arms.append(exit_id)
        self._prices.append(price)
        return self

    def finalize_branches(self, graph: Graph, reconverge: NodeId) -> NodeId | None:
        """Check the decision and record it.

        Returns
        -------
        int or None
            The branch node; None for one arm, which is no decision.

        Raises
        ------
        InvalidBranchError
            If the decision breaks a rule (see `check_branch`); the graph is unchanged.
        """
        if len(self._arms) == 1:
            return None
        branch = Branch(self._diverge, reconverge, tuple(self._arms), tuple(self._prices))
        check_branch(graph, branch)
        return graph.record_branch(branch)


def arm_nodes(graph: Graph, diverge: NodeId, exit_id: NodeId) -> frozenset[NodeId]:
    """Give the nodes of an arm: those after `diverge` that its exit needs, the exit included.

    Empty where the exit does not come after `diverge`.
    """
    first = graph.position(diverge)
    needed = {exit_id}
    waiting = [exit_id]
    while waiting:
        for value in graph.node(waiting.pop()).inputs:
            if value not in needed and graph.position(value) > first:
                needed.add(value)
                waiting.append(value)
    after = {diverge}
    for node_id in sorted(needed, key=graph.position):
        if not after.isdisjoint(graph.node(node_id).inputs):
            after.add(node_id)
    return frozenset(after - {diverge})


def check_branch(graph: Graph, branch: Branch) -> tuple[frozenset[NodeId], ...]:
    """Hold a branch against the rules and give each arm's nodes.

    Every id exists; `reconverge` comes strictly after `diverge`; the exits agree in dtype and
    shape; `reconverge` reads arm 0's exit; every arm has a node of its own after `diverge`, no two
    arms share one, and nothing outside an arm reads its inside. `reconverge` may read the exits.
    A recorded alternative elsewhere may read anything: it runs only where it is picked.

    Raises
    ------
    InvalidBranchError
        If a rule is broken; the message names the nodes.
    """
    _check_ids(graph, branch)
    reconverge, diverge = branch.reconverge, branch.diverge
    if not arm_nodes(graph, diverge, reconverge):
        raise InvalidBranchError(
            f"{_name(graph, reconverge)} does not come after {_name(graph, diverge)}, "
            "so routes cannot part at the latter and meet at the former"
        )
    wanted = graph.node(branch.arms[0]).type
    for arm, exit_id in enumerate(branch.arms):
        found = graph.node(exit_id).type
        if found != wanted:
            raise InvalidBranchError(
                f"arm {arm} ends at {_name(graph, exit_id)} with {found.dtype} {found.shape}, "
                f"arm 0 at {_name(graph, branch.arms[0])} with {wanted.dtype} {wanted.shape}; "
                "all arms must give the same dtype and shape"
            )
    if branch.arms[0] not in graph.node(reconverge).inputs:
        raise InvalidBranchError(
            f"{_name(graph, reconverge)} does not read arm 0's exit, {_name(graph, branch.arms[0])}"
        )
    arms = tuple(arm_nodes(graph, diverge, exit_id) for exit_id in branch.arms)
    _check_own_nodes(graph, branch, arms)
    for nodes, exit_id in zip(arms, branch.arms, strict=True):
        _check_readers(graph, branch, nodes, exit_id)
    return arms


def _check_ids(graph: Graph, branch: Branch) -> None:
    if not branch.arms:
        raise InvalidBranchError(
            f"the branch from node {branch.diverge} to node {branch.reconverge} has no arm"
        )
    named = [("diverge", branch.diverge), ("reconverge", branch.reconverge)]
    named += [(f"arm {arm}'s exit", exit_id) for arm, exit_id in enumerate(branch.arms)]
    for role, node_id in named:
        if not 0 <= node_id < len(graph):
            raise InvalidBranchError(
                f"{role} is node {node_id}, which does not exist: the graph has {len(graph)} nodes"
            )


def _check_own_nodes(graph: Graph, branch: Branch, arms: tuple[frozenset[NodeId], ...]) -> None:
    taken: dict[NodeId, int] = {}
    for arm, nodes in enumerate(arms):
        if not nodes:
            raise InvalidBranchError(
                f"arm {arm} ends at {_name(graph, branch.arms[arm])}, which does not come after "
                f"{_name(graph, branch.diverge)}: an arm needs a node of its own"
            )
        for node_id in sorted(nodes):
            if node_id in taken:
                raise InvalidBranchError(
                    f"arms {taken[node_id]} and {arm} share {_name(graph, node_id)}; "
                    "copy it, or let the routes part after it"
                )
            taken[node_id] = arm


def _check_readers(graph: Graph, branch: Branch, nodes: frozenset[NodeId], exit_id: NodeId) -> None:
    for node_id in sorted(nodes):
        inside = _name(graph, node_id)
        if node_id in graph.outputs:
            raise InvalidBranchError(
                f"{inside} lies inside an arm and is an output of the graph, "
                "which no other arm would give"
            )
        for reader in graph.readers(node_id):
            if reader in nodes or (node_id == exit_id and reader == branch.reconverge):
                continue
            if is_live(graph, reader):
                raise InvalidBranchError(
                    f"{_name(graph, reader)} reads {inside} from outside its arm, "
                    "which does not run where another arm is picked"
                )


def is_live(graph: Graph, node_id: NodeId) -> bool:
    """Whether an output needs the node; before outputs are named, whether any last node does."""
    outputs = set(graph.outputs)
    reached = {node_id}
    waiting = [node_id]
    while waiting:
        each = waiting.pop()
        if graph.node(each).kind == "branch":
            continue
        readers = graph.readers(each)
        if each in outputs or not (outputs or readers):
            return True
        for reader in readers:
            if reader not in reached:
                reached.add(reader)
                waiting.append(reader)
    return False


def _name(graph: Graph, node_id: NodeId) -> str:
    node = graph.node(node_id)
    return f"node {node_id} ({node.name or node.op})"
