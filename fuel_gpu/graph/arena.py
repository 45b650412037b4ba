"""The graph arena: typed nodes by id, and side tables for placements and backend stamps."""

import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from fuel_gpu.device import Device
from fuel_gpu.dtypes import tensor_bytes
from fuel_gpu.errors import PlanError

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
        The operator's attributes as plain Python values; for a pick, ``index``.
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
    counts a new topology generation, so that a plan made before refuses to run.
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self.outputs: list[NodeId] = []
        self.placements: dict[NodeId, Device] = {}
        self.target_backends: dict[NodeId, str] = {}
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
            If an input does not exist yet.
        """
        for value in node.inputs:
            self.node(value)
        self._nodes.append(node)
        return len(self._nodes) - 1

    def replace(self, node_id: NodeId, node: Node) -> None:
        """Put another node in the place of one, and start a new topology generation."""
        self.node(node_id)
        for value in node.inputs:
            self.node(value)
        self._nodes[node_id] = node
        self.topology_generation += 1

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
