"""`plan_scenarios`: one graph placed under many tables at once, over arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.arrays.placement_steps import plus
from fuel_gpu.calibration.rates import Rates, device_rates
from fuel_gpu.calibration.table import Table
from fuel_gpu.calibration.transfers import TableTransfers
from fuel_gpu.device import HOST, Device
from fuel_gpu.errors import PlanError, UsageError
from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.kernels.binding import BindingTable, default_bindings
from fuel_gpu.numbers import U64_MAX
from fuel_gpu.planner.candidate import composite_ns_arrays
from fuel_gpu.planner.decision_points import DecisionPoints, decision_points
from fuel_gpu.planner.menus import Choice, choice_rates
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
    pins: Mapping[NodeId, Device] | None = None,
    entry: Device = HOST,
    exit: Device = HOST,
    bindings: BindingTable | None = None,
) -> ScenarioPlans:
    """Place a graph by the carry-forward DP under every table at once.

    The placements are those that the DP commits for each table by itself; unlike `plan` this
    neither refines them nor compares them with baselines, and keeps no memory limits.

    Parameters
    ----------
    graph
        A graph whose shapes are all known; its placements are hard pins.
    tables
        The scenarios: other machines, link speeds, or sets of devices.
    pins
        Nodes that must run on a device that every table has.
    entry, exit
        Where the inputs lie before the run and where the outputs are wanted after.

    Raises
    ------
    UsageError
        If there is no table.
    PlanError
        If a node can run on no device of some table; the message names both.
    """
    if not tables:
        raise UsageError("plan_scenarios needs at least one table")
    devices = tuple(
        dict.fromkeys(d.device for table in tables for d in table.devices if not d.simulated)
    )
    rates = [
        {d.device: device_rates(table, d.device) for d in table.devices if not d.simulated}
        for table in tables
    ]
    pinned = graph.copy()
    pinned.placements.update(pins or {})
    order = graph.topological_order()
    options = PlanOptions(
        devices=devices,
        rates=_all_rates(rates),
        pinned_device=devices[0],
        input_residency={n: entry for n in order if graph.node(n).kind == "input"},
        estimator=TableTransfers(tables[0]),
        exit_device=exit,
    )
    points = decision_points(pinned, order, bindings or default_bindings(), options)
    rows = scenario_rows(pinned, order, points, options)
    transfers = _transfer_times(rows, points.devices, tables)
    times, available = _node_times(points, rows, rates)
    lost = ~available.any(axis=1)
    if lost.any():
        row, scenario = (int(x) for x in np.argwhere(lost)[0])
        node = graph.node(points.nodes[row])
        raise PlanError(f"node {node.name} ({node.op}) can run on no device of table {scenario}")
    problem = rows.problem(times, available, transfers)
    slot = place_batch(problem).slot if problem.rows else np.zeros((0, len(tables)), np.uint8)
    placement = rows.placement(slot)
    nothing: dict[NodeId, Sequence[int | None]] = dict.fromkeys(points.nodes, ())
    finished = build_problem(graph, points.nodes, points.devices, nothing, entry=entry, exit=exit)
    return ScenarioPlans(
        nodes=points.nodes,
        devices=points.devices,
        placement=placement.T.astype(np.uint8),
        total_ns=_priced(rows, finished, placement, times, transfers),
    )


def _all_rates(
    rates: Sequence[Mapping[Device, Mapping[str, Rates]]],
) -> dict[Device, dict[str, Rates]]:
    """For each device every dtype that any table has; which figures stand there does not matter."""
    joined: dict[Device, dict[str, Rates]] = {}
    for table in rates:
        for device, rows in table.items():
            joined.setdefault(device, {}).update(rows)
    return joined


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
) -> tuple[Times, NDArray[np.bool_]]:
    """Give each node's least time at each of its slots, and whether it can run there.

    Returns
    -------
    times, available
        (nodes, slots, scenarios), uint64 and bool.
    """
    shape = (*rows.codes.shape, len(rates))
    times = np.full(shape, U64_MAX, np.uint64)
    available = np.zeros(shape, np.bool_)
    first = points.first_of_device()
    owner = points.point[first]
    slot = np.arange(len(owner)) - np.searchsorted(owner, owner)
    moved = points.bytes_moved
    flops = np.array([cost.flops for cost in points.costs], np.uint64)[points.point]
    for scenario, table in enumerate(rates):
        priced = [_priced_menu(menu.choices, table) for menu in points.menus]
        widths = np.cumsum([0, *(len(each) for each in priced)])
        flat = widths[points.menu_of[points.point]] + points.column
        columns = np.concatenate([*priced, np.empty((0, 4))])[flat]
        row_ns = composite_ns_arrays(
            flops, moved, columns[:, 2].astype(np.uint64), columns[:, 0], columns[:, 1], xp=np
        )
        runs = columns[:, 3] > 0
        row_ns = np.where(runs, row_ns, np.uint64(U64_MAX))
        times[owner, slot, scenario] = np.minimum.reduceat(row_ns, first)
        available[owner, slot, scenario] = np.logical_or.reduceat(runs, first)
    return times, available


def _priced_menu(
    choices: Sequence[Choice], table: Mapping[Device, Mapping[str, Rates]]
) -> NDArray[np.float64]:
    """Give each choice's rates and launch overhead under a table, and whether it can run there.

    Returns
    -------
    float64 (choices, 4)
        FLOP/ns, bytes/ns, ns, and 1 or 0.
    """
    priced = np.ones((len(choices), 4))
    for column, choice in enumerate(choices):
        rows = table.get(choice.device)
        runs = rows is not None and (choice.kernel.dtype in (choice.stored, *rows))
        rates, launch_ns, _ = choice_rates(choice.device, rows, choice.kernel.dtype, choice.stored)
        priced[column] = rates.flops_per_ns, rates.bytes_per_ns, launch_ns, runs
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
