"""The rows, edges and closings that all scenarios of a graph share, as arrays for the batch DP."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.arrays.placement_steps import plus
from fuel_gpu.device import Device
from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.planner.decision_points import DecisionPoints
from fuel_gpu.planner.options import PlanOptions
from fuel_gpu.planner.placement_problem import Closings, PlacementProblem
from fuel_gpu.planner.residency import copy_target, known_residency

Times = NDArray[np.uint64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioRows:
    """What `compile_plan`'s walk finds in a graph before any time is known.

    Nodes are positions in the decision points. A node that lists one device is decided; each of
    the others is a row.

    Parameters
    ----------
    codes
        int64 (nodes, slots): each node's devices, the decision device first; the first repeated
        where it has fewer than `slots`.
    listed
        bool (nodes, slots): which of them are its own.
    row_node
        int64 (rows,): the node of each row.
    edges
        For each row the rows that it reads, with the sizes of each edge (a value read twice has
        its size twice).
    fixed
        For each node the inputs whose residency is known: a device code and a size.
    closings
        A row, how many rows were pushed before, the reader's device code, and sizes.
    exit_code, exit_sizes
        Where outputs are wanted (None: nowhere), and each row's size.
    sizes
        All sizes that may cross, ascending.
    """

    codes: Codes
    listed: NDArray[np.bool_]
    row_node: Codes
    edges: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...]
    fixed: tuple[tuple[tuple[int, int], ...], ...]
    closings: tuple[tuple[int, int, int, tuple[int, ...]], ...]
    exit_code: int | None
    exit_sizes: tuple[int, ...]
    sizes: NDArray[np.uint64]

    def problem(self, times: Times, transfers: Times) -> PlacementProblem:
        """Price the rows.

        Parameters
        ----------
        times
            uint64 (nodes, slots, scenarios): each node's least time at each slot.
        transfers
            uint64 (devices, devices, sizes, scenarios): what a copy takes.
        """
        own = times[self.row_node].copy()
        for row, node in enumerate(self.row_node.tolist()):
            for device, size in self.fixed[node]:
                arriving = transfers[device, self.codes[node], self._at(size)]
                own[row] = plus(np, own[row], arriving)
        first_edge = np.cumsum([0, *(len(read) for read in self.edges)], dtype=np.int64)
        flat = [(row, *edge) for row, read in enumerate(self.edges) for edge in read]
        crossings: dict[tuple[bytes, bytes, tuple[int, ...]], int] = {}
        crossing: list[int] = []
        tables: list[Times] = []
        for row, producer, sizes in flat:
            src, dst = self.codes[self.row_node[producer]], self.codes[self.row_node[row]]
            key = (src.tobytes(), dst.tobytes(), sizes)
            if key not in crossings:
                crossings[key] = len(tables)
                tables.append(self._crossing(transfers, src[:, None], dst[None, :], sizes))
            crossing.append(crossings[key])
        slots, scenarios = times.shape[1:]
        empty = np.zeros((0, slots, slots, scenarios), np.uint64)
        exits = None
        if self.exit_code is not None:
            exits = np.array(
                [
                    transfers[self.codes[node], self.exit_code, self._at(size)]
                    for node, size in zip(self.row_node, self.exit_sizes, strict=True)
                ],
                np.uint64,
            ).reshape(len(self.row_node), slots, scenarios)
        return PlacementProblem(
            first_edge=first_edge,
            producer=np.array([producer for _, producer, _ in flat], np.int64),
            crossing=np.array(crossing, np.int64),
            cost_ns=own,
            crossing_ns=np.array(tables, np.uint64) if tables else empty,
            exit_ns=exits,
            available=self._available(scenarios),
            closings=self._closings(transfers, slots, scenarios),
        )

    def placement(self, slot: NDArray[np.uint8]) -> Codes:
        """Turn the rows' slots (rows, scenarios) into device codes (nodes, scenarios)."""
        codes = np.repeat(self.codes[:, :1], slot.shape[1], axis=1)
        if len(self.row_node):
            codes[self.row_node] = np.take_along_axis(
                self.codes[self.row_node], slot.astype(np.int64), axis=1
            )
        return codes

    def _available(self, scenarios: int) -> NDArray[np.bool_] | None:
        """Mark the slots that rows have, where some have fewer than others."""
        listed = self.listed[self.row_node]
        return None if listed.all() else np.repeat(listed[:, :, None], scenarios, axis=2)

    def _closings(self, transfers: Times, slots: int, scenarios: int) -> Closings | None:
        if not self.closings:
            return None
        crossing_ns = [
            self._crossing(transfers, self.codes[self.row_node[row]], np.int64(device), sizes)
            for row, _, device, sizes in self.closings
        ]
        return Closings(
            row=np.array([row for row, *_ in self.closings], np.int64),
            after=np.array([after for _, after, *_ in self.closings], np.int64),
            crossing_ns=np.array(crossing_ns, np.uint64).reshape(-1, slots, scenarios),
        )

    def _crossing(
        self, transfers: Times, src: Codes, dst: Codes | np.int64, sizes: Sequence[int]
    ) -> Times:
        """Sum the copies of all `sizes` between broadcast device codes, saturating."""
        total: Times = transfers[src, dst, self._at(sizes[0])]
        for size in sizes[1:]:
            total = plus(np, total, transfers[src, dst, self._at(size)])
        return total

    def _at(self, size: int) -> int:
        return int(np.searchsorted(self.sizes, np.uint64(size)))


def scenario_rows(
    graph: Graph,
    order: Sequence[NodeId],
    points: DecisionPoints,
    devices: Sequence[Device],
    options: PlanOptions,
) -> ScenarioRows:
    """Walk a graph as `compile_plan` does and note what it reads, before any time is known.

    Parameters
    ----------
    devices
        What device codes stand for; they begin with the decision points' own.
    """
    walk = _Structure(graph, points, devices, options)
    for node_id in order:
        walk.visit(node_id)
    listed = walk.listed
    slots = max((len(codes) for codes in listed), default=1)
    exit_device = options.exit_device
    sizes = {
        *(size for read in walk.edges for _, edge in read for size in edge),
        *(size for fixed in walk.fixed for _, size in fixed),
        *(size for *_, edge in walk.closings for size in edge),
        *walk.sizes,
        *(node.type.bytes for node in graph.nodes),
    }
    return ScenarioRows(
        codes=np.array([[*c, *[c[0]] * (slots - len(c))] for c in listed], np.int64).reshape(
            -1, slots
        ),
        listed=np.array([[k < len(c) for k in range(slots)] for c in listed], np.bool_).reshape(
            -1, slots
        ),
        row_node=np.array(walk.row_node, np.int64),
        edges=tuple(walk.edges),
        fixed=tuple(walk.fixed),
        closings=tuple(walk.closings),
        exit_code=None if exit_device is None else walk.code_of[exit_device],
        exit_sizes=tuple(walk.sizes),
        sizes=np.array(sorted(sizes), np.uint64),
    )


@dataclass(slots=True)
class _Structure:
    graph: Graph
    points: DecisionPoints
    devices: Sequence[Device]
    options: PlanOptions
    listed: list[list[int]] = field(init=False)
    code_of: dict[Device, int] = field(init=False)
    position: dict[NodeId, int] = field(init=False)
    alias: dict[NodeId, NodeId] = field(default_factory=dict)
    row_of: dict[NodeId, int] = field(default_factory=dict)
    row_node: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    edges: list[tuple[tuple[int, tuple[int, ...]], ...]] = field(default_factory=list)
    fixed: list[tuple[tuple[int, int], ...]] = field(init=False)
    closings: list[tuple[int, int, int, tuple[int, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.listed = self.points.listed_codes()
        self.code_of = {device: code for code, device in enumerate(self.devices)}
        self.position = {node_id: k for k, node_id in enumerate(self.points.nodes)}
        self.fixed = [() for _ in self.points.nodes]

    def visit(self, node_id: NodeId) -> None:
        node = self.graph.node(node_id)
        if node.kind == "copy":
            self._close(node_id, self.code_of[copy_target(self.graph, node_id)])
        elif node.kind in ("view", "pick", "branch"):
            self.alias[node_id] = self.alias.get(node.inputs[0], node.inputs[0])
        elif node.kind == "kernel":
            self._decide(node_id)

    def _decide(self, node_id: NodeId) -> None:
        k = self.position[node_id]
        fixed: list[tuple[int, int]] = []
        read: dict[int, list[int]] = {}
        for value in self.graph.node(node_id).inputs:
            size = self.graph.node(value).type.bytes
            where = self._residency(value)
            row = self.row_of.get(self.alias.get(value, value))
            if where is not None:
                fixed.append((where, size))
            elif row is not None:
                read.setdefault(row, []).append(size)
        self.fixed[k] = tuple(fixed)
        if len(self.listed[k]) == 1:
            self._close(node_id, self.listed[k][0])
            return
        self.row_of[node_id] = len(self.row_node)
        self.row_node.append(k)
        self.sizes.append(self.graph.node(node_id).type.bytes)
        self.edges.append(tuple((row, tuple(sizes)) for row, sizes in read.items()))

    def _close(self, node_id: NodeId, device: int) -> None:
        edges: dict[int, list[int]] = {}
        for value in self.graph.node(node_id).inputs:
            row = self.row_of.get(self.alias.get(value, value))
            if row is not None and self._residency(value) is None:
                edges.setdefault(row, []).append(self.graph.node(value).type.bytes)
        pushed = len(self.row_node)
        self.closings += [(row, pushed, device, tuple(sizes)) for row, sizes in edges.items()]

    def _residency(self, value: NodeId) -> int | None:
        where = known_residency(
            self.graph,
            value,
            self.options.input_residency,
            self._decided,
            self.position.__contains__,
        )
        return None if where is None else self.code_of[where]

    def _decided(self, node_id: NodeId) -> Device | None:
        """The device of a node that lists only one."""
        k = self.position.get(node_id)
        if k is None or len(self.listed[k]) > 1:
            return None
        return self.devices[self.listed[k][0]]
