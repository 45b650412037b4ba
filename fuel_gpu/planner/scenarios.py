"""`plan_scenarios`: one graph placed under many tables at once, over arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.arrays.engine import EngineName
from fuel_gpu.arrays.placement_steps import plus
from fuel_gpu.calibration.rates import Rates, device_rates, rated_devices
from fuel_gpu.calibration.table import Table
from fuel_gpu.calibration.transfers import TableTransfers
from fuel_gpu.device import HOST, Device
from fuel_gpu.errors import PlanError, UsageError
from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.kernels.binding import BindingTable, default_bindings
from fuel_gpu.numbers import U64_MAX
from fuel_gpu.planner.arguments import checked_graph_and_tables, find_node, known_device
from fuel_gpu.planner.candidate import composite_ns_arrays
from fuel_gpu.planner.decision_points import (
    DecisionPoints,
    decision_points,
    launch_overheads_ns,
)
from fuel_gpu.planner.menus import Choice, choice_rates, describe
from fuel_gpu.planner.options import PlanOptions
from fuel_gpu.planner.placement_batch import place_batch
from fuel_gpu.planner.problem import Problem, build_problem
from fuel_gpu.planner.scenario_rows import ScenarioRows, scenario_rows

Times = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioPlans:
    """Where each node runs under each table, and what that is predicted to take.

    Parameters
    ----------
    nodes
        The kernel nodes, in the order of execution.
    devices
        The devices of all tables, in the order in which they first appear.
    placement
        uint8 (scenarios, nodes): a position in `devices`.
    total_ns
        uint64 (scenarios,): each node's time, and each copy once per destination device.
    """

    nodes: tuple[NodeId, ...]
    devices: tuple[Device, ...]
    placement: NDArray[np.uint8]
    total_ns: Times


def plan_scenarios(
    graph: Graph,
    tables: Sequence[Table],
    *,
    pins: Mapping[NodeId | str, Device | str] | None = None,
    entry: Device | str = HOST,
    exit: Device | str = HOST,
    bindings: BindingTable | None = None,
    engine: EngineName | None = None,
) -> ScenarioPlans:
    """Place a graph by the carry-forward DP under every table at once.

    The placements are those that the DP commits for each table by itself; unlike `plan` this
    neither refines them nor compares them with baselines, and keeps no memory limits. Tables with
    the same devices and dtypes are one problem over arrays.

    Parameters
    ----------
    graph
        A graph whose shapes are all known; its placements are hard pins.
    tables
        The scenarios: other machines, link speeds, or sets of devices.
    pins
        Nodes that must run on a device, which every table must have.
    entry, exit
        Where the inputs lie before the run and where the outputs are wanted after.
    bindings
        Which backend has which kernel; the shipped ones by default.
    engine
        Where the DP's arrays are worked on: ``numpy``, ``cupy``, or ``auto``, which is NumPy. None
        is ``FUEL_GPU_ENGINE``, else ``auto``.

    Raises
    ------
    UsageError
        If there is no table, or a table lacks `entry` or `exit`.
    PlanError
        If a node can run on no device of some table; the message names both.
    """
    if not isinstance(tables, Sequence) or not tables:
        raise UsageError("tables: plan_scenarios needs a list of at least one table")
    checked_graph_and_tables(graph, tables)
    entry, exit = Device.of(entry, "entry"), Device.of(exit, "exit")
    pinned = graph.copy()
    for pin, where in (pins or {}).items():
        pinned.placements[find_node(graph, pin)] = Device.of(where, "pins")
    devices = tuple(dict.fromkeys([*_devices(*tables), *pinned.placements.values(), entry, exit]))
    rates = [
        {device: device_rates(table, device) for device in _devices(table)} for table in tables
    ]
    alike: dict[object, list[int]] = {}
    for scenario, by_device in enumerate(rates):
        key = tuple((device, frozenset(rows)) for device, rows in by_device.items())
        alike.setdefault(key, []).append(scenario)

    placement, total_ns = None, np.zeros(len(tables), np.uint64)
    nodes: tuple[NodeId, ...] = ()
    for scenarios in alike.values():
        group = _Group([tables[s] for s in scenarios], [rates[s] for s in scenarios])
        try:
            nodes, placed, priced = _placed(pinned, group, entry, exit, bindings, engine)
        except PlanError as error:
            raise PlanError(f"under table {scenarios[0]}: {error}") from error
        if placement is None:
            placement = np.zeros((len(tables), len(nodes)), np.uint8)
        own = np.array([devices.index(device) for device in placed.devices], np.uint8)
        placement[scenarios] = own[placed.codes].T
        total_ns[scenarios] = priced
    assert placement is not None
    return ScenarioPlans(nodes, devices, placement, total_ns)


@dataclass(frozen=True, slots=True)
class _Group:
    """Tables with the same devices and dtypes, and their rates."""

    tables: Sequence[Table]
    rates: Sequence[Mapping[Device, Mapping[str, Rates]]]


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    """Device codes (nodes, scenarios) and the devices that they stand for."""

    devices: tuple[Device, ...]
    codes: NDArray[np.int64]


def _devices(*tables: Table) -> tuple[Device, ...]:
    return tuple(dict.fromkeys(device for table in tables for device in rated_devices(table)))


def _placed(
    graph: Graph,
    group: _Group,
    entry: Device,
    exit: Device,
    bindings: BindingTable | None,
    engine: EngineName | None,
) -> tuple[tuple[NodeId, ...], _Placed, Times]:
    """Place and price a graph under tables that have the same devices and dtypes."""
    order = graph.topological_order()
    devices = _devices(group.tables[0])
    if not devices:
        raise PlanError("it has no rates of any device")
    for node_id, where in graph.placements.items():
        if where not in devices:
            node = graph.node(node_id)
            raise PlanError(f"node {describe(node_id, node)} is placed on {where}, which it lacks")
    for argument, where in (("entry", entry), ("exit", exit)):
        known_device(group.tables[0], where, argument)
    options = PlanOptions(
        devices=devices,
        rates=group.rates[0],
        pinned_device=devices[0],
        input_residency={n: entry for n in order if graph.node(n).kind == "input"},
        estimator=TableTransfers(group.tables[0]),
        exit_device=exit,
    )
    points = decision_points(graph, order, bindings or default_bindings(), options)
    known = tuple(dict.fromkeys([*points.devices, entry, exit]))
    rows = scenario_rows(graph, order, points, known, options)
    transfers = _transfer_times(rows, known, group.tables)
    times = _node_times(points, rows, group.rates)
    problem = rows.problem(times, transfers)
    scenarios = len(group.tables)
    slot = np.zeros((0, scenarios), np.uint8)
    if problem.rows:
        slot = place_batch(problem, engine=engine).slot
    placed = _Placed(known, rows.placement(slot))
    nothing: dict[NodeId, Sequence[int | None]] = dict.fromkeys(points.nodes, ())
    finished = build_problem(graph, points.nodes, known, nothing, entry=entry, exit=exit)
    return points.nodes, placed, _priced(rows, finished, placed.codes, times, transfers)


def _transfer_times(
    rows: ScenarioRows, devices: tuple[Device, ...], tables: Sequence[Table]
) -> Times:
    """Price every size between every two devices under every table."""
    times = np.zeros((len(devices), len(devices), len(rows.sizes), len(tables)), np.uint64)
    for scenario, table in enumerate(tables):
        transfers = TableTransfers(table)
        for a, src in enumerate(devices):
            for b, dst in enumerate(devices):
                times[a, b, :, scenario] = transfers.estimate_transfer_ns_array(
                    src, dst, rows.sizes
                )
    return times


def _node_times(
    points: DecisionPoints,
    rows: ScenarioRows,
    rates: Sequence[Mapping[Device, Mapping[str, Rates]]],
) -> Times:
    """Give each node's least time at each of its slots, uint64 (nodes, slots, scenarios)."""
    times = np.full((*rows.codes.shape, len(rates)), U64_MAX, np.uint64)
    first = points.first_of_device()
    owner = points.point[first]
    slot = np.arange(len(owner)) - np.searchsorted(owner, owner)
    flops = np.array([cost.flops for cost in points.costs], np.uint64)[points.point]
    widths = np.cumsum([0, *(len(menu.choices) for menu in points.menus)])
    flat = widths[points.menu_of[points.point]] + points.column
    for scenario, table in enumerate(rates):
        priced = [_menu_rates(menu.choices, table) for menu in points.menus]
        columns = np.concatenate([*priced, np.empty((0, 3))])[flat]
        row_ns = composite_ns_arrays(
            flops,
            points.bytes_moved,
            launch_overheads_ns(columns[:, 2].astype(np.uint64), points.costs, points.point),
            columns[:, 0],
            columns[:, 1],
            xp=np,
        )
        if len(first):
            times[owner, slot, scenario] = np.minimum.reduceat(row_ns, first)
    return times


def _menu_rates(
    choices: Sequence[Choice], table: Mapping[Device, Mapping[str, Rates]]
) -> NDArray[np.float64]:
    """Give each choice's FLOP/ns, bytes/ns and launch overhead (ns) under a table, (choices, 3)."""
    priced = np.empty((len(choices), 3))
    for column, choice in enumerate(choices):
        rates, launch_ns, _ = choice_rates(
            choice.device, table.get(choice.device), choice.kernel.dtype, choice.stored
        )
        priced[column] = rates.flops_per_ns, rates.bytes_per_ns, launch_ns
    return priced


def _priced(
    rows: ScenarioRows,
    problem: Problem,
    placement: NDArray[np.int64],
    times: Times,
    transfers: Times,
) -> Times:
    """Price finished placements (nodes, scenarios) with every edge, as `total_ns` does."""
    code_of = {device: code for code, device in enumerate(problem.devices)}
    entry, exit = code_of[problem.entry], code_of[problem.exit]
    scenarios = np.arange(placement.shape[1])
    slot = (rows.codes[:, :, None] == placement[:, None, :]).argmax(axis=1)
    total = np.zeros(len(scenarios), np.uint64)
    for own in np.take_along_axis(times, slot[:, None, :], axis=1)[:, 0]:
        total = plus(np, total, own)
    for value in problem.values:
        if value.is_weight or value.bytes == 0:
            continue
        size = int(np.searchsorted(rows.sizes, np.uint64(value.bytes)))
        src = (
            np.full_like(scenarios, entry) if value.producer is None else placement[value.producer]
        )
        for device in range(len(problem.devices)):
            wanted = (placement[list(value.readers)] == device).any(axis=0)
            if value.is_output and device == exit:
                wanted = np.ones_like(wanted)
            copied = np.where(wanted, transfers[src, device, size, scenarios], np.uint64(0))
            total = plus(np, total, copied)
    return total
