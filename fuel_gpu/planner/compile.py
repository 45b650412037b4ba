"""`compile_plan`: walk a graph in order, decide every node, and carry open decisions forward."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.arrays.placement_steps import plus
from fuel_gpu.device import Device
from fuel_gpu.errors import PlanError
from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.kernels.binding import BindingTable
from fuel_gpu.numbers import U64_MAX, saturating_add
from fuel_gpu.planner.candidate_table import CandidateTable, rank_and_retain
from fuel_gpu.planner.decision_points import DecisionPoints, decision_points
from fuel_gpu.planner.execution_plan import ExecutionPlan, RetainedPoint
from fuel_gpu.planner.options import PlanOptions
from fuel_gpu.planner.placement_dp import ChainInput, PlacementDP
from fuel_gpu.planner.residency import copy_target, known_residency

_MAY_SATURATE = np.uint64(2**63)
"""Times from which a sum may saturate, so that transfers no longer shift a device's times alike."""


def compile_plan(
    graph: Graph, order: Sequence[NodeId], bindings: BindingTable, options: PlanOptions
) -> ExecutionPlan:
    """Decide every kernel node of `order`.

    All candidates are enumerated, filtered, costed, ranked and retained as arrays; the walk then
    prices inputs of known residency, decides nodes whose candidates lie on one device at once,
    and opens a row of the placement DP for the others. A committed device prunes its node's set.

    Parameters
    ----------
    graph
        The graph; its placements are hard pins.
    order
        A topological order of the nodes to plan.
    bindings
        Which backend has which kernel.
    options
        Devices, rates, residency, floors and switches.

    Raises
    ------
    PlanError
        If transfer pricing is required and there is no estimator; if a node has no decision
        device or no candidate; if a hard filter keeps none; if the plan to reuse is for another
        topology generation.
    """
    if options.require_transfer_pricing and options.estimator is None:
        raise PlanError("transfer pricing is required, but no transfer estimator was given")
    reused = options.reuse_plan
    if reused is not None:
        reused.check(graph)
    fresh = [n for n in order if reused is None or not reused.covers(n)]
    points = decision_points(graph, fresh, bindings, options)
    walk = _Walk(graph, points, options)
    for node_id in order:
        walk.visit(node_id)
    return walk.finish(tuple(order))


class _Walk:
    """The state of one walk: what is decided, and the DP over what is still open."""

    def __init__(self, graph: Graph, points: DecisionPoints, options: PlanOptions) -> None:
        self.graph = graph
        self.points = points
        self.options = options
        self.dp: PlacementDP[NodeId] = PlacementDP()
        self.decided: dict[NodeId, Device] = {}
        self.position = {node_id: k for k, node_id in enumerate(points.nodes)}
        self.inbound_ns = np.zeros((len(points.nodes), len(points.devices)), np.uint64)
        self.kept = np.zeros(len(points.point), np.bool_)
        self.kept[_retained(points, slice(None), points.static_ns, options)] = True
        self.capped = np.diff(points.starts) > max(options.keep, 1)
        self.capped[points.point[points.static_ns >= _MAY_SATURATE]] = True
        self.codes = points.listed_codes()
        self.best_ns = self._best_ns().tolist()

    def _best_ns(self) -> NDArray[np.uint64]:
        """Each node's least retained time on each device, shape (nodes, devices)."""
        points = self.points
        best = np.full((len(points.nodes), len(points.devices)), U64_MAX, np.uint64)
        rows = np.flatnonzero(self.kept)
        np.minimum.at(best, (points.point[rows], points.device_codes[rows]), points.static_ns[rows])
        return best

    def visit(self, node_id: NodeId) -> None:
        node = self.graph.node(node_id)
        if node.kind == "copy":
            self._close_inputs(node_id, copy_target(self.graph, node_id))
        elif node.kind != "kernel":
            if node.inputs and node.kind in ("view", "pick", "branch"):
                self.dp.add_alias(node_id, node.inputs[0])
        elif node_id not in self.position:
            assert self.options.reuse_plan is not None
            device = self.options.reuse_plan.placements[node_id]
            self._close_inputs(node_id, device)
            self.decided[node_id] = device
        else:
            self._decide(node_id)

    def _decide(self, node_id: NodeId) -> None:
        k = self.position[node_id]
        fixed, chained = self._inputs(node_id)
        estimator = self.options.estimator
        codes = self.codes[k]
        devices = [self.points.devices[code] for code in codes]
        if estimator is not None and fixed:
            for code, device in zip(codes, devices, strict=True):
                arrivals = (estimator.estimate_transfer_ns(src, device, b) for src, b in fixed)
                self.inbound_ns[k, code] = saturating_add(*arrivals)
            if self.capped[k] or self.inbound_ns[k].max() >= _MAY_SATURATE:
                self._retain_again(k)
        if len(devices) == 1 or estimator is None:
            device = devices[0] if len(devices) == 1 else self._winner(k)
            self._close_inputs(node_id, device)
            self.decided[node_id] = device
            return
        costs = [
            (device, self.best_ns[k][code]) for code, device in zip(codes, devices, strict=True)
        ]
        self.dp.push_row(node_id, costs, fixed, chained, estimator)

    def _inputs(self, node_id: NodeId) -> tuple[list[tuple[Device, int]], list[ChainInput[NodeId]]]:
        """Split a node's input edges: residency known, and open rows that it chains."""
        fixed: list[tuple[Device, int]] = []
        chained: dict[NodeId, list[int]] = {}
        for value in self.graph.node(node_id).inputs:
            size = self.graph.node(value).type.bytes
            row = self.dp.resolve(value)
            where = self.residency(value)
            if where is not None:
                fixed.append((where, size))
            elif self.dp.is_open(row):
                chained.setdefault(row, []).append(size)
        return fixed, [ChainInput(row, tuple(sizes)) for row, sizes in chained.items()]

    def residency(self, value: NodeId) -> Device | None:
        """Where a value lies, as far as it is known now."""
        return known_residency(
            self.graph,
            value,
            self.options.input_residency,
            self.decided.get,
            self.position.__contains__,
        )

    def _close_inputs(self, node_id: NodeId, device: Device) -> None:
        """Commit the open rows that feed a node whose device is decided."""
        estimator = self.options.estimator
        if estimator is None or self.dp.is_empty:
            return
        edges: dict[NodeId, list[int]] = {}
        for value in self.graph.node(node_id).inputs:
            row = self.dp.resolve(value)
            if self.dp.is_open(row):
                edges.setdefault(row, []).append(self.graph.node(value).type.bytes)
        for row, sizes in edges.items():
            self.decided.update(self.dp.close_toward(row, device, sizes, estimator))

    def _times(self, rows: NDArray[np.intp] | slice) -> NDArray[np.uint64]:
        """Candidates' times with the inbound transfers of their device, saturating."""
        points = self.points
        static = points.static_ns[rows]
        inbound_ns = self.inbound_ns[points.point[rows], points.device_codes[rows]]
        total: NDArray[np.uint64] = plus(np, static, inbound_ns)
        return total

    def _retain_again(self, k: int) -> None:
        """Retain a node with its inbound transfers: the winner that the cap protects may differ."""
        points = self.points
        rows = slice(int(points.starts[k]), int(points.starts[k + 1]))
        self.kept[rows] = False
        self.kept[_retained(points, rows, self._times(rows), self.options)] = True
        best = [U64_MAX] * len(points.devices)
        for row in range(rows.start, rows.stop):
            if self.kept[row]:
                code = points.device_codes[row]
                best[code] = min(best[code], int(points.static_ns[row]))
        self.best_ns[k] = best

    def _winner(self, k: int) -> Device:
        rows = np.arange(self.points.starts[k], self.points.starts[k + 1], dtype=np.intp)
        rows = rows[self.kept[rows]]
        ranked = rows[np.argsort(self._times(rows), kind="stable")]
        return self.points.devices[int(self.points.device_codes[ranked[0]])]

    def _ranked(self, rows: NDArray[np.intp], committed: NDArray[np.int32]) -> NDArray[np.intp]:
        """Rank rows within their nodes, those on the node's committed device first."""
        points = self.points
        away = points.device_codes[rows] != committed[points.point[rows]]
        order = np.lexsort(
            (
                points.bytes_moved[rows],
                -points.accuracy[rows].astype(np.int16),
                -points.digits[rows].astype(np.int16),
                self._times(rows),
                away,
                points.point[rows],
            )
        )
        return rows[order]

    def finish(self, order: tuple[NodeId, ...]) -> ExecutionPlan:
        """Commit every open row and collect the plan."""
        estimator = self.options.estimator
        if estimator is not None and not self.dp.is_empty:
            self.decided.update(
                self.dp.finish(self.options.exit_device, self._output_bytes, estimator)
            )
        known = {n: where for n in order if (where := self.residency(n)) is not None}
        reused = self.options.reuse_plan
        retained = {} if reused is None else dict(reused.retained)
        retained.update(self._retained_points())
        return ExecutionPlan(
            order=order,
            placements={n: self.decided[n] for n in order if n in self.decided},
            residency=known,
            topology_generation=self.graph.topology_generation,
            retained=retained,
        )

    def _retained_points(self) -> dict[NodeId, RetainedPoint]:
        points = self.points
        code_of = {device: code for code, device in enumerate(points.devices)}
        committed = np.array([code_of[self.decided[n]] for n in points.nodes], np.int32)
        ranked = self._ranked(np.flatnonzero(self.kept), committed)
        owner = points.point[ranked]
        here = points.device_codes[ranked] == committed[owner]
        starts = np.searchsorted(owner, np.arange(len(points.nodes) + 1))
        counts = np.bincount(owner[here], minlength=len(points.nodes))
        return {
            node_id: RetainedPoint(
                points, ranked[starts[k] : starts[k + 1]], int(counts[k]), self.inbound_ns[k]
            )
            for k, node_id in enumerate(points.nodes)
        }

    def _output_bytes(self, node_id: NodeId) -> int:
        return self.graph.node(node_id).type.bytes


def _retained(
    points: DecisionPoints, rows: slice, times: NDArray[np.uint64], options: PlanOptions
) -> NDArray[np.intp]:
    """Give the rows that their nodes retain, of a contiguous range of rows."""
    codes = points.device_codes[rows]
    on_host = np.array([device.is_host for device in points.devices], np.bool_)[codes]
    moved = points.bytes_moved[rows]
    table = CandidateTable(
        node=points.point[rows].astype(np.int64),
        device=codes,
        backend=points.backend_codes[rows],
        time_ns=times,
        host_bytes=np.where(on_host, moved, np.uint64(0)),
        device_bytes=np.where(on_host, np.uint64(0), moved),
        precision=points.digits[rows],
        accuracy=points.accuracy[rows],
    )
    kept = rank_and_retain(table, options.keep, engine=options.engine, crossover=options.crossover)
    found: NDArray[np.intp] = kept.rows + (rows.start or 0)
    return found
