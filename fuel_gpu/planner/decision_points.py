"""Every candidate of every node of a graph, as one structure of arrays grouped by node."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.calibration.table import Provenance
from fuel_gpu.device import Device
from fuel_gpu.errors import PlanError
from fuel_gpu.graph.arena import Graph, Node, NodeId, TensorType
from fuel_gpu.kernels.binding import BindingTable, stored_dtype
from fuel_gpu.kernels.costs import OperationCost, operands_of, operation_cost
from fuel_gpu.kernels.terms import summed_terms
from fuel_gpu.numbers import U64_MAX
from fuel_gpu.planner.alternative_set import AlternativeSet, DecisionContext
from fuel_gpu.planner.candidate import Candidate, composite_ns_arrays
from fuel_gpu.planner.cost_vector import precision_digits
from fuel_gpu.planner.filters import apply_filter_chain
from fuel_gpu.planner.judge import (
    Judge,
    attention_size_class,
    matmul_size_class,
    measured_cost,
    size_class,
)
from fuel_gpu.planner.menus import Choice, Menu, build_menu, choices_on, describe, devices_for
from fuel_gpu.planner.options import PlanOptions


@dataclass(frozen=True, slots=True, eq=False)
class DecisionPoints:
    """All candidates of all decision points.

    Parameters
    ----------
    nodes
        The kernel nodes in the order of the walk.
    contexts
        What a judge knows each node by.
    costs
        Each node's work.
    menus
        The distinct menus.
    menu_of
        For each node its menu, shape (nodes,).
    starts
        Rows ``starts[k]`` to ``starts[k + 1]`` are node k's candidates, shape (nodes + 1,).
    point, column
        For each row its node's position, and its column in that node's menu.
    device_codes, backend_codes
        For each row the position of its device in `devices`, and a code for its backend.
    static_ns
        For each row the kernel's own time, uint64: roofline or measured, without transfers.
    bytes_moved, digits, accuracy
        For each row the other axes of its cost vector.
    measured
        For each row whether a judge's measurement replaced the roofline.
    devices
        What the device codes stand for.
    """

    nodes: tuple[NodeId, ...]
    contexts: tuple[DecisionContext, ...]
    costs: tuple[OperationCost, ...]
    menus: tuple[Menu, ...]
    menu_of: NDArray[np.intp]
    starts: NDArray[np.intp]
    point: NDArray[np.intp]
    column: NDArray[np.intp]
    device_codes: NDArray[np.int32]
    backend_codes: NDArray[np.int32]
    static_ns: NDArray[np.uint64]
    bytes_moved: NDArray[np.uint64]
    digits: NDArray[np.uint8]
    accuracy: NDArray[np.uint8]
    measured: NDArray[np.bool_]
    devices: tuple[Device, ...]

    def listed_codes(self) -> list[list[int]]:
        """List each node's device codes in the order of its candidates, which lie by device."""
        if not len(self.point):
            return [[] for _ in self.nodes]
        codes, first = self.device_codes, self.first_of_device()
        ends = np.cumsum(np.bincount(self.point[first], minlength=len(self.nodes)))[:-1]
        return [part.tolist() for part in np.split(codes[first], ends)]

    def first_of_device(self) -> NDArray[np.intp]:
        """Give the rows that are the first of their node on their device."""
        codes, point = self.device_codes, self.point
        changes = (codes[1:] != codes[:-1]) | (point[1:] != point[:-1])
        return np.flatnonzero(np.concatenate([np.ones(min(len(codes), 1), np.bool_), changes]))

    def choice(self, row: int) -> Choice:
        """Give the kernel, device and rates of one candidate."""
        return self.menus[int(self.menu_of[self.point[row]])].choices[int(self.column[row])]

    def provenance(self, row: int) -> Provenance:
        """How one candidate's own time was obtained."""
        return "measured" if self.measured[row] else self.choice(row).provenance

    def candidate(self, row: int, inbound_transfer_ns: int = 0) -> Candidate:
        """Build one candidate for people to look at."""
        choice = self.choice(row)
        if self.measured[row]:
            measured = replace(choice, launch_ns=int(self.static_ns[row]))
            return measured.candidate(OperationCost(0, 0), inbound_transfer_ns)
        return choice.candidate(self.costs[self.point[row]], inbound_transfer_ns)


def decision_points(
    graph: Graph, order: Sequence[NodeId], bindings: BindingTable, options: PlanOptions
) -> DecisionPoints:
    """Enumerate, filter and cost the candidates of every kernel node in `order`.

    Raises
    ------
    PlanError
        If a node has no decision device, or no candidate on any device that it may use, or a
        hard filter keeps none; the message names the node, its op and dtypes.
    """
    devices = tuple(
        dict.fromkeys(
            [
                *options.devices,
                *graph.placements.values(),
                *(Device(backend) for backend in graph.target_backends.values()),
                *([options.pinned_device] if options.pinned_device else []),
            ]
        )
    )
    codes = {device: code for code, device in enumerate(devices)}
    backends: dict[str, int] = {}
    nodes: list[NodeId] = []
    contexts: list[DecisionContext] = []
    costs: list[OperationCost] = []
    menus: dict[tuple[object, ...], int] = {}
    built: list[Menu] = []
    menu_of: list[int] = []
    kept: list[NDArray[np.intp]] = []
    kept_of_menu: dict[int, NDArray[np.intp]] = {}
    by_kernel = all(each.by_kernel for each in options.filters)

    for node_id in order:
        node = graph.node(node_id)
        if node.kind != "kernel":
            continue
        operands = operands_of(graph, node_id)
        cost = operation_cost(graph, node_id)
        context = decision_context(node, operands.inputs)
        allowed = _with_room(graph, node_id, devices_for(graph, node_id, options), options)
        stored = stored_dtype(node, operands.inputs)
        key = (node.op, stored, summed_terms(operands), allowed)
        menu = menus.get(key)
        if menu is None:
            choices = _choices(graph, node_id, operands.inputs, bindings, allowed, options)
            menu = menus[key] = len(built)
            built.append(build_menu(choices, codes, backends))
        columns = kept_of_menu.get(menu)
        if columns is None or not by_kernel:
            columns = _filtered(graph, node_id, built[menu].choices, cost, context, options)
            kept_of_menu[menu] = columns
        nodes.append(node_id)
        contexts.append(context)
        costs.append(cost)
        menu_of.append(menu)
        kept.append(columns)

    counts = np.array([len(columns) for columns in kept], np.intp)
    starts = np.concatenate([np.zeros(1, np.intp), np.cumsum(counts)]).astype(np.intp)
    point = np.repeat(np.arange(len(nodes), dtype=np.intp), counts)
    column = np.concatenate([*kept, np.empty(0, np.intp)])
    menus_of = np.array(menu_of, np.intp)
    widths = np.array([len(menu.choices) for menu in built], np.intp)
    offsets = np.concatenate([np.zeros(1, np.intp), np.cumsum(widths)]).astype(np.intp)
    flat = offsets[menus_of[point]] + column

    def by_row(name: str, dtype: Any) -> NDArray[Any]:
        columns = [getattr(menu, name) for menu in built]
        joined: NDArray[Any] = np.concatenate([*columns, np.empty(0, dtype)]).astype(dtype)
        rows: NDArray[Any] = joined[flat]
        return rows

    moved = np.array([cost.bytes_moved for cost in costs], np.uint64)[point]
    points = DecisionPoints(
        nodes=tuple(nodes),
        contexts=tuple(contexts),
        costs=tuple(costs),
        menus=tuple(built),
        menu_of=menus_of,
        starts=starts,
        point=point,
        column=column,
        device_codes=by_row("device_codes", np.int32),
        backend_codes=by_row("backend_codes", np.int32),
        static_ns=composite_ns_arrays(
            np.array([cost.flops for cost in costs], np.uint64)[point],
            moved,
            launch_overheads_ns(by_row("launch_ns", np.uint64), costs, point),
            by_row("flops_per_ns", np.float64),
            by_row("bytes_per_ns", np.float64),
            xp=np,
        ),
        bytes_moved=moved,
        digits=by_row("digits", np.uint8),
        accuracy=by_row("accuracy", np.uint8),
        measured=np.zeros(len(point), np.bool_),
        devices=devices,
    )
    return points if options.judge is None else _judged(points, options.judge)


def launch_overheads_ns(
    launch_ns: NDArray[np.uint64], costs: Sequence[OperationCost], point: NDArray[np.intp]
) -> NDArray[np.uint64]:
    """Multiply each row's launch overhead by the kernels that its node launches, saturating."""
    launches = np.array([cost.launches for cost in costs], np.uint64)[point]
    if not len(launches) or int(launches.max()) == 1:
        return launch_ns
    most = np.uint64(U64_MAX) // np.maximum(launch_ns, np.uint64(1))
    return np.where(launches > most, np.uint64(U64_MAX), launch_ns * launches)


def decision_context(node: Node, input_types: tuple[TensorType, ...]) -> DecisionContext:
    """Say what a judge knows the node by: its op, its first input's dtype, its size class."""
    if not input_types:
        return DecisionContext(node.op, node.type.dtype, 0)
    first = input_types[0]
    shapes = [t.shape for t in input_types]
    if node.op == "MatMul" and len(shapes) > 1 and all(shapes[:2]):
        size = matmul_size_class(shapes[0], shapes[1])
    elif node.op == "Attention" and len(shapes) > 1 and len(shapes[0]) == len(shapes[1]) == 4:
        size = attention_size_class(shapes[0], shapes[1][2])
    else:
        size = size_class(first.elements)
    return DecisionContext(node.op, first.dtype, size)


def _choices(
    graph: Graph,
    node_id: NodeId,
    input_types: tuple[TensorType, ...],
    bindings: BindingTable,
    allowed: tuple[Device, ...],
    options: PlanOptions,
) -> tuple[Choice, ...]:
    choices = choices_on(allowed, graph, node_id, input_types, bindings, options)
    fallback = node_id not in graph.placements and graph.node(node_id).writes_input is None
    if not choices and fallback:
        choices = choices_on(options.devices, graph, node_id, input_types, bindings, options)
    if not choices:
        node = graph.node(node_id)
        dtypes = ", ".join(t.dtype for t in input_types) or "no inputs"
        tried = ", ".join(map(str, dict.fromkeys([*allowed, *options.devices])))
        raise PlanError(
            f"node {describe(node_id, node)} of {dtypes} has no kernel on "
            f"{tried if fallback else allowed[0]}; BindingTable.with_kernel adds one"
        )
    return choices


def _with_room(
    graph: Graph, node_id: NodeId, allowed: tuple[Device, ...], options: PlanOptions
) -> tuple[Device, ...]:
    """Leave out the devices that the node alone would overfill, unless it overfills all."""
    limits = options.largest_step_bytes
    if not limits:
        return allowed
    touched = {graph.storage(value) for value in (*graph.node(node_id).inputs, node_id)}
    needed = sum(graph.node(value).type.bytes for value in touched)
    roomy = tuple(device for device in allowed if needed <= limits.get(device, needed))
    return roomy or allowed


def _filtered(
    graph: Graph,
    node_id: NodeId,
    choices: tuple[Choice, ...],
    cost: OperationCost,
    context: DecisionContext,
    options: PlanOptions,
) -> NDArray[np.intp]:
    """Apply the filter chain to a node's choices and give the columns that it keeps."""
    if not options.filters:
        return np.arange(len(choices), dtype=np.intp)
    candidates = [choice.candidate(cost) for choice in choices]
    column_of = {id(candidate): column for column, candidate in enumerate(candidates)}
    alternatives = AlternativeSet.from_candidates(candidates)
    alternatives.set_context(context)
    try:
        apply_filter_chain(alternatives, options.filters)
    except PlanError as error:
        most = max(precision_digits(choice.precision) for choice in choices)
        raise PlanError(
            f"node {describe(node_id, graph.node(node_id))}: {error}; its kernels here promise "
            f"{most} digits at most"
        ) from error
    return np.array([column_of[id(candidate)] for candidate in alternatives], np.intp)


def _judged(points: DecisionPoints, judge: Judge) -> DecisionPoints:
    static_ns, moved = points.static_ns.copy(), points.bytes_moved.copy()
    measured = points.measured.copy()
    for k, context in enumerate(points.contexts):
        for row in range(points.starts[k], points.starts[k + 1]):
            cost = measured_cost(points.candidate(row), context, judge)
            if cost is not None:
                static_ns[row], moved[row], measured[row] = cost.kernel_overhead_ns, 0, True
    return replace(points, static_ns=static_ns, bytes_moved=moved, measured=measured)
