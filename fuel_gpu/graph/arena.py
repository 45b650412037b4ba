"""The graph arena: typed nodes by id, and side tables for placements and backend stamps."""

import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from fuel_gpu.device import Device
from fuel_gpu.dtypes import tensor_bytes
from fuel_gpu.errors import PlanError
from fuel_gpu.graph.branches import Branch, BranchBuilder
from fuel_gpu.graph.node_checks import check_node

NodeId = int
Kind = Literal["input", "weight", "constant", "view", "pick", "copy", "branch", "kernel"]
"""What a node is to the planner.

input     a graph input; lies where the caller says (the CPU by default)
weight    an initializer; resident wherever it is used
constant  a node that depends on no input: computed once at load, then like a weight
view      reshape-like; shares the bytes of its first input and its residency
pick      a further output of the node it reads; own bytes, that node's residency
copy      moves its input's bytes to the device the placement table gives
branch    a recorded decision; its inputs are the arms' exits, arm 0 first
kernel    anything that a kernel must run
"""

_NO_ATTRIBUTES: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TensorType:
    """The element type and shape of a value; every dimension is known."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """How many elements; 1 for a scalar."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """How many bytes, packed."""
        return tensor_bytes(self.dtype, self.elements)


@dataclass(frozen=True, slots=True)
class Node:
    """One operation and the value that it gives (its first output).

    Parameters
    ----------
    op
        The ONNX operator type (``Conv``), or the kind's own name for structural nodes.
    inputs
        Ids of the values read, in ONNX order without the absent optional ones; a value read
        twice stands twice.
    type
        The value's element type and shape.
    kind
        What the node is to the planner.
    name
        The name people know it by; unique within a graph that the ONNX reader made.
    attributes
        The operator's attributes as plain Python values; for a pick, ``index``: which of the
        outputs it is, counted from 0 for the node's own value.
    bodies
        Nested graphs (If, Loop, Scan).
    writes_input
        Position of the input that the operation overwrites, if it is destructive.
    """

    op: str
    inputs: tuple[NodeId, ...]
    type: TensorType
    kind: Kind = "kernel"
    name: str = ""
    attributes: Mapping[str, Any] = field(default_factory=lambda: _NO_ATTRIBUTES, hash=False)
    bodies: tuple["Graph", ...] = field(default=(), hash=False)
    writes_input: int | None = None


class Graph:
    """An append-only arena of nodes, with outputs and side tables.

    Node ids are positions in the arena. Nodes are immutable; `replace` swaps one for another and
    counts a new topology generation, so that a plan made before refuses to run. Appending a node
    or recording a branch counts none: no value that the outputs need is computed differently.

    Attributes
    ----------
    outputs
        The values that the graph is computed for.
    placements
        Where a node must run, or where a copy puts its value.
    target_backends
        The backend that a node is stamped with.
    branches
        The recorded decisions, by branch node.
    value_names
        The node of each value that an ONNX model names, by that name: what a node gives can be
        asked for even where the node's own name is another's too.
    topology_generation
        How often the flow of values was changed.
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._readers: list[list[NodeId]] = []
        self._positions: list[int] | None = []
        self.outputs: list[NodeId] = []
        self.placements: dict[NodeId, Device] = {}
        self.target_backends: dict[NodeId, str] = {}
        self.branches: dict[NodeId, Branch] = {}
        self.value_names: dict[str, NodeId] = {}
        self.topology_generation = 0

    def __len__(self) -> int:
        return len(self._nodes)

    def node(self, node_id: NodeId) -> Node:
        """Give the node with that id.

        Raises
        ------
        PlanError
            If no such node exists.
        """
        if not 0 <= node_id < len(self._nodes):
            raise PlanError(
                f"node {node_id} does not exist: the graph has {len(self._nodes)} nodes"
            )
        return self._nodes[node_id]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, by id."""
        return tuple(self._nodes)

    def push(self, node: Node) -> NodeId:
        """Append a node whose inputs all exist and give its id.

        Raises
        ------
        PlanError
            If an input does not exist yet, or another field cannot be meant: an unknown dtype or
            kind, a negative size, a value of more than 2**63 - 1 bytes. Nothing changes.
        """
        node_id = len(self._nodes)
        check_node(node, node_id, node_id)
        self._nodes.append(node)
        self._readers.append([])
        for value in dict.fromkeys(node.inputs):
            self._readers[value].append(node_id)
        if self._positions is not None:
            self._positions.append(node_id)
        return node_id

    def replace(self, node_id: NodeId, node: Node) -> None:
        """Put another node in the place of one, and start a new topology generation.

        Raises
        ------
        PlanError
            If the node does not exist, or as `push` does; nothing changes.
        """
        self._put(node_id, node)
        self.topology_generation += 1

    def _put(self, node_id: NodeId, node: Node) -> None:
        before = self.node(node_id)
        check_node(node, node_id, len(self._nodes))
        for value in dict.fromkeys(before.inputs):
            self._readers[value].remove(node_id)
        for value in dict.fromkeys(node.inputs):
            self._readers[value].append(node_id)
        self._nodes[node_id] = node
        places = self._positions
        if places is not None and any(places[i] >= places[node_id] for i in node.inputs):
            self._positions = None

    def readers(self, node_id: NodeId) -> tuple[NodeId, ...]:
        """List the nodes that read a value, each once, branch nodes among them, by id."""
        self.node(node_id)
        return tuple(sorted(self._readers[node_id]))

    def position(self, node_id: NodeId) -> int:
        """Give the node's place in one order of the whole arena, producers before readers.

        Constant time, unless a node was replaced by one that reads a later value: then the
        next call orders the arena anew.

        Raises
        ------
        PlanError
            If no such node exists, or the nodes form a cycle.
        """
        self.node(node_id)
        if self._positions is None:
            places = [0] * len(self._nodes)
            for place, each in enumerate(self._kahn(list(range(len(self._nodes))))):
                places[each] = place
            self._positions = places
        return self._positions[node_id]

    def open_branch(self, diverge: NodeId) -> BranchBuilder:
        """Begin recording a decision between routes that part after `diverge`."""
        return BranchBuilder(diverge)

    def record_branch(self, branch: Branch) -> NodeId:
        """Append a branch node; `BranchBuilder` checks the rules first, this does not."""
        node_id = self.push(
            Node("branch", branch.arms, self.node(branch.arms[0]).type, kind="branch")
        )
        self.branches[node_id] = branch
        return node_id

    def update_branch(self, node_id: NodeId, branch: Branch) -> None:
        """Write a recorded branch anew; with one arm left it is no decision and is closed."""
        self._put(node_id, replace(self.node(node_id), inputs=branch.arms))
        self.branches[node_id] = branch
        if len(branch.arms) == 1:
            del self.branches[node_id]

    def copy(self) -> "Graph":
        """Give a graph of the same nodes that changes on its own."""
        twin = Graph()
        twin.restore(self)
        return twin

    def restore(self, saved: "Graph") -> None:
        """Become what `saved`, an earlier copy of this graph, holds."""
        self._nodes = list(saved._nodes)
        self._readers = [list(each) for each in saved._readers]
        self._positions = None if saved._positions is None else list(saved._positions)
        self.outputs = list(saved.outputs)
        self.placements = dict(saved.placements)
        self.target_backends = dict(saved.target_backends)
        self.branches = dict(saved.branches)
        self.value_names = dict(saved.value_names)
        self.topology_generation = saved.topology_generation

    def storage(self, node_id: NodeId) -> NodeId:
        """Follow views to the node whose bytes this value shares (itself, if it is no view)."""
        while self._nodes[node_id].kind == "view":
            node_id = self._nodes[node_id].inputs[0]
        return node_id

    def carrier(self, node_id: NodeId) -> NodeId:
        """Follow views and picks to the node whose residency this value has."""
        while self._nodes[node_id].kind in ("view", "pick"):
            node_id = self._nodes[node_id].inputs[0]
        return node_id

    def topological_order(self, roots: Iterable[NodeId] | None = None) -> tuple[NodeId, ...]:
        """Order the nodes that `roots` (the outputs by default) need, producers first.

        Among nodes that are ready the smallest id comes first, so a graph built producers first
        keeps its own order. Without recursion.

        Raises
        ------
        PlanError
            If the nodes form a cycle; the message names one node on it.
        """
        wanted = list(self.outputs if roots is None else roots)
        reached: set[NodeId] = set()
        while wanted:
            node_id = wanted.pop()
            if node_id not in reached:
                reached.add(node_id)
                wanted.extend(self.node(node_id).inputs)
        order = sorted(reached)
        position = {node_id: k for k, node_id in enumerate(order)}
        if all(position[i] < k for k, n in enumerate(order) for i in self._nodes[n].inputs):
            return tuple(order)
        return self._kahn(order)

    def _kahn(self, reached: list[NodeId]) -> tuple[NodeId, ...]:
        waiting = {n: len(set(self._nodes[n].inputs)) for n in reached}
        readers: dict[NodeId, list[NodeId]] = {n: [] for n in reached}
        for n in reached:
            for value in set(self._nodes[n].inputs):
                readers[value].append(n)
        ready = [n for n in reached if waiting[n] == 0]
        order: list[NodeId] = []
        while ready:
            n = heapq.heappop(ready)
            order.append(n)
            for reader in readers[n]:
                waiting[reader] -= 1
                if waiting[reader] == 0:
                    heapq.heappush(ready, reader)
        if len(order) < len(reached):
            stuck = min(n for n in reached if waiting[n] > 0)
            raise PlanError(f"node {stuck} ({self._nodes[stuck].name}) lies on a cycle")
        return tuple(order)
