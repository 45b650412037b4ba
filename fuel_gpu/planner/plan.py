"""`plan`: a graph's best placement by a table, priced with every edge, beside its baselines."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fuel_gpu.calibration.rates import device_rates
from fuel_gpu.calibration.table import Table
from fuel_gpu.calibration.transfers import TableTransfers
from fuel_gpu.device import HOST, Device
from fuel_gpu.errors import PlanError, UsageError
from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.kernels.binding import BindingTable, default_bindings
from fuel_gpu.numbers import saturating_add
from fuel_gpu.planner.alternative_set import KEEP_PER_DEVICE
from fuel_gpu.planner.baselines import all_on, greedy
from fuel_gpu.planner.compile import compile_plan
from fuel_gpu.planner.execution_plan import ExecutionPlan
from fuel_gpu.planner.filters import Filter, precision_floor
from fuel_gpu.planner.fit import (
    Pool,
    all_devices,
    excesses,
    fitting_placement,
    step_bytes,
)
from fuel_gpu.planner.memory import peak_bytes
from fuel_gpu.planner.options import PlanOptions
from fuel_gpu.planner.pools import device_limits, memory_pools
from fuel_gpu.planner.pricing import Copy, copies, total_ns
from fuel_gpu.planner.problem import Problem, build_problem


@dataclass(frozen=True, slots=True)
class Baseline:
    """A placement that a person would think of, and its price.

    Parameters
    ----------
    name
        A device, for everything on it, or ``greedy``.
    total_ns
        Its predicted time; None where it cannot run.
    reason
        Why it cannot run.
    """

    name: str
    total_ns: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Where every operation of a graph should run, and what that is predicted to take.

    Parameters
    ----------
    graph, table
        What was planned, and the numbers that it was planned with.
    execution
        The decisions node by node, with the retained alternatives.
    problem
        The steps and values that the placement is priced against.
    placement
        The device's position in ``problem.devices`` for each step.
    chosen
        Where the placement comes from: ``placement-dp``, ``fitted``, or a baseline's name.
    total_ns
        The predicted time: each node's, and each copy once per destination device.
    copies
        The copies that the placement needs.
    baselines
        The same figure for the placements that a person would think of.
    pools
        The memory limits that were kept.
    cold
        Whether the weights' upload is part of the price.
    """

    graph: Graph
    table: Table
    execution: ExecutionPlan
    problem: Problem
    placement: tuple[int, ...]
    chosen: str
    total_ns: int
    copies: tuple[Copy, ...]
    baselines: tuple[Baseline, ...]
    pools: tuple[Pool, ...]
    cold: bool
    rows: Mapping[NodeId, Mapping[int, int]] = field(repr=False)
    """For each node the best candidate's row on each device of the problem."""

    def device_of(self, step: int) -> Device:
        """Give the device that a step is placed on."""
        return self.problem.devices[self.placement[step]]

    def step_ns(self, step: int) -> int:
        """Give a step's own time on its device."""
        time_ns = self.problem.time_ns[step][self.placement[step]]
        assert time_ns is not None
        return time_ns

    @property
    def device_ns(self) -> dict[Device, int]:
        """How long each device computes."""
        busy = dict.fromkeys(self.problem.devices, 0)
        for step in range(len(self.placement)):
            device = self.device_of(step)
            busy[device] = saturating_add(busy[device], self.step_ns(step))
        return busy

    @property
    def copy_ns(self) -> int:
        """How long all copies take."""
        return saturating_add(*(c.ns for c in self.copies))

    @property
    def peak_bytes(self) -> dict[Device, int]:
        """The most memory in use at once on each device, resident weights included."""
        return peak_bytes(self.problem, self.placement, all_devices(self.problem))


def plan(
    graph: Graph,
    table: Table,
    *,
    devices: Sequence[Device] | None = None,
    pins: Mapping[NodeId, Device] | None = None,
    entry: Device = HOST,
    exit: Device = HOST,
    cold: bool = False,
    precision_digits: int | None = None,
    bit_stable: bool = False,
    memory: Mapping[Device, int] | None = None,
    keep: int = KEEP_PER_DEVICE,
    bindings: BindingTable | None = None,
) -> Plan:
    """Place a graph's operations with a table's numbers.

    The carry-forward DP decides, the finished placement is priced with every edge, and the best
    of it and the baselines is returned. Where that exceeds a device's memory, work moves until
    it fits.

    Parameters
    ----------
    graph
        A graph whose shapes are all known; its placements are hard pins too. It is not changed.
    table
        A calibration table, from this machine or another.
    devices
        The devices to plan over; all of the table's but simulators by default.
    pins
        Nodes that must run on a device.
    entry, exit
        Where the inputs lie before the run and where the outputs are wanted after.
    cold
        Price the upload of the weights too; otherwise they lie where they are used.
    precision_digits
        The fewest decimal digits that every kernel must promise. With it, kernels narrower than
        the model's own dtype are admitted; without it they are not.
    bit_stable
        Whether every kernel must give the same bits again on the same hardware.
    memory
        Limits in bytes in place of a device's whole memory.
    keep
        How many candidates each node keeps on each device.
    bindings
        Which backend has which kernel; the shipped ones by default.

    Raises
    ------
    UsageError
        If a device is not in the table, or a pinned node not in the graph.
    PlanError
        If a node has no kernel that is allowed, or nothing fits the memory.
    """
    chosen_devices = _devices(table, devices)
    limits = dict(memory or {})
    for device in (*(pins or {}).values(), entry, exit, *limits):
        _known(table, device)
    pools = memory_pools(table, limits)
    transfers = TableTransfers(table)
    pinned = copy.copy(graph)
    pinned.placements = {**graph.placements, **(pins or {})}
    planned_on = tuple(dict.fromkeys([*chosen_devices, *pinned.placements.values()]))
    order = graph.topological_order()
    filters: tuple[Filter, ...] = ()
    if precision_digits is not None or bit_stable:
        filters = (precision_floor(min_digits=precision_digits, bit_stable=bit_stable),)
    execution = compile_plan(
        pinned,
        order,
        bindings or default_bindings(),
        PlanOptions(
            devices=chosen_devices,
            rates={device: device_rates(table, device) for device in planned_on},
            pinned_device=chosen_devices[0],
            input_residency={n: entry for n in order if graph.node(n).kind == "input"},
            estimator=transfers,
            filters=filters,
            keep=keep,
            exit_device=exit,
            narrower=precision_digits is not None,
            largest_step_bytes=device_limits(pools),
        ),
    )
    return _priced(graph, table, execution, planned_on, transfers, pools, entry, exit, cold, pinned)


def _priced(
    graph: Graph,
    table: Table,
    execution: ExecutionPlan,
    devices: tuple[Device, ...],
    transfers: TableTransfers,
    pools: tuple[Pool, ...],
    entry: Device,
    exit: Device,
    cold: bool,
    pinned: Graph,
) -> Plan:
    """Price the DP's placement and the baselines, and take the best that fits."""
    transfer = transfers.estimate_transfer_ns
    nodes = tuple(n for n in execution.order if execution.covers(n))
    rows = {n: _best_rows(execution, n, devices) for n in nodes}
    times = {n: _times(execution, n, rows[n], len(devices)) for n in nodes}
    problem = build_problem(graph, nodes, devices, times, entry=entry, exit=exit)
    position = {device: k for k, device in enumerate(devices)}
    pins = {
        step: position[pinned.placements[n]]
        for step, n in enumerate(nodes)
        if n in pinned.placements
    }
    dp = [position[execution.placements[n]] for n in nodes]
    proposals: dict[str, list[int] | None] = {"placement-dp": dp}
    for k, device in enumerate(devices):
        proposals[str(device)] = all_on(problem, k, pins)
    proposals["greedy"] = greedy(problem, transfer, pins)

    best: tuple[int, str, list[int]] | None = None
    cheapest: tuple[int, list[int]] | None = None
    baselines: list[Baseline] = []
    for name, placement in proposals.items():
        ns = None if placement is None else total_ns(problem, placement, transfer, cold=cold)
        reason = _lacking_kernel(problem, name, position) if ns is None else ""
        if placement is not None and ns is not None:
            if cheapest is None or ns < cheapest[0]:
                cheapest = (ns, placement)
            over = excesses(problem, placement, pools)
            if over:
                reason = f"needs {over[0].bytes:,} bytes more than {over[0].pool.name} has"
                ns = None
            elif best is None or ns < best[0]:
                best = (ns, name, placement)
        if name != "placement-dp":
            baselines.append(Baseline(name, ns, reason))
    assert cheapest is not None
    if best is None or cheapest[0] < best[0]:
        fitted = fitting_placement(problem, cheapest[1], pools, transfer, pins, cold=cold)
        ns = None if fitted is None else total_ns(problem, fitted, transfer, cold=cold)
        if fitted is not None and ns is not None and (best is None or ns < best[0]):
            best = (ns, "fitted", fitted)
    if best is None:
        raise PlanError(_nothing_fits(graph, problem, cheapest[1], pools))
    total, chosen, placement = best
    return Plan(
        graph=graph,
        table=table,
        execution=execution,
        problem=problem,
        placement=tuple(placement),
        chosen=chosen,
        total_ns=total,
        copies=tuple(copies(problem, placement, transfer, cold=cold)),
        baselines=tuple(baselines),
        pools=pools,
        cold=cold,
        rows=rows,
    )


def _devices(table: Table, wanted: Sequence[Device] | None) -> tuple[Device, ...]:
    usable = tuple(d.device for d in table.devices if not d.simulated)
    if wanted is None:
        if not usable:
            raise PlanError("the table has no device to plan on: run `fuel-gpu calibrate` again")
        return usable
    for device in wanted:
        _known(table, device)
    if not wanted:
        raise UsageError("no device is left to plan on")
    return tuple(dict.fromkeys(wanted))


def _known(table: Table, device: Device) -> None:
    names = [d.id for d in table.devices if not d.simulated]
    if device != HOST and str(device) not in names:
        raise UsageError(f"the table has no device {device}; it has {', '.join(names)}")


def _best_rows(
    execution: ExecutionPlan, node_id: NodeId, devices: tuple[Device, ...]
) -> dict[int, int]:
    point = execution.retained[node_id]
    position = {device: k for k, device in enumerate(devices)}
    best: dict[int, int] = {}
    for row in point.rows.tolist():
        device = point.points.devices[point.points.device_codes[row]]
        if device in position:
            best.setdefault(position[device], row)
    return best


def _times(
    execution: ExecutionPlan, node_id: NodeId, rows: Mapping[int, int], devices: int
) -> list[int | None]:
    static_ns = execution.retained[node_id].points.static_ns
    return [int(static_ns[rows[k]]) if k in rows else None for k in range(devices)]


def _lacking_kernel(problem: Problem, name: str, position: Mapping[Device, int]) -> str:
    missing = [
        step
        for step, times in enumerate(problem.time_ns)
        if name in {str(d) for d in position} and times[position[Device.parse(name)]] is None
    ]
    return f"{len(missing)} nodes have no kernel there" if missing else "cannot be placed"


def _nothing_fits(
    graph: Graph, problem: Problem, placement: Sequence[int], pools: Sequence[Pool]
) -> str:
    worst = max(excesses(problem, placement, pools), key=lambda e: e.bytes)
    step = max(range(len(problem.nodes)), key=lambda s: step_bytes(problem, s))
    node = graph.node(problem.nodes[step])
    return (
        f"nothing that was tried fits the memory: the fastest placement exceeds {worst.pool.name} "
        f"({worst.pool.limit_bytes:,} bytes) by {worst.bytes:,} bytes; the largest node is "
        f"{node.name} ({node.op}), which needs {step_bytes(problem, step):,} bytes. Give more "
        "memory, a smaller batch, or another device"
    )
