"""`plan`: a graph's best placement by a table, priced with every edge, beside its baselines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fuel_gpu.arrays.engine import EngineName
from fuel_gpu.calibration.rates import device_rates
from fuel_gpu.calibration.table import Table
from fuel_gpu.calibration.transfers import TableTransfers
from fuel_gpu.device import HOST, Device
from fuel_gpu.errors import PlanError
from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.kernels.binding import BindingTable, default_bindings
from fuel_gpu.numbers import saturating_add
from fuel_gpu.planner.alternative_set import KEEP_PER_DEVICE
from fuel_gpu.planner.arguments import (
    checked_count,
    checked_devices,
    checked_digits,
    checked_graph_and_tables,
    checked_memory,
    checked_pins,
    known_device,
)
from fuel_gpu.planner.choose import Baseline, Choice, choose
from fuel_gpu.planner.compile import compile_plan
from fuel_gpu.planner.decision_points import DecisionPoints
from fuel_gpu.planner.execution_plan import ExecutionPlan
from fuel_gpu.planner.filters import Filter, precision_floor
from fuel_gpu.planner.fit import (
    Pool,
    all_devices,
    excesses,
    oversized_step,
    step_bytes,
)
from fuel_gpu.planner.memory import peak_bytes
from fuel_gpu.planner.options import PlanOptions
from fuel_gpu.planner.pools import device_limits, memory_pools
from fuel_gpu.planner.pricing import Copy, copies
from fuel_gpu.planner.problem import Problem, build_problem

_ENDS_OF_AXES = 10
"""Both ends of the cost vector's five axes; a crowding cap below may drop a device's fastest."""


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
        Where the placement comes from: ``placement-dp``, ``min-cut``, ``fitted``, or a baseline's
        name; see `Choice`.
    total_ns
        The predicted time: each node's, and each copy once per destination device.
    copies
        The copies that the placement needs.
    lower_bound_ns
        With two devices a time that no placement falls below; None with more, and where `keep`
        is so small that a device's fastest kernel may have been dropped.
    baselines
        The same figure for the placements that a person would think of.
    pools
        The memory limits that were kept.
    cold
        Whether the weights' upload is part of the price.
    rows
        For each node the best candidate's row on each device of the problem.
    transfers
        The table's estimates of copies, which priced the plan.
    bindings, options
        What the graph was compiled with.
    held_steps
        How many steps were pinned.
    """

    graph: Graph
    table: Table
    execution: ExecutionPlan
    problem: Problem
    placement: tuple[int, ...]
    chosen: str
    total_ns: int
    copies: tuple[Copy, ...]
    lower_bound_ns: int | None
    baselines: tuple[Baseline, ...]
    pools: tuple[Pool, ...]
    cold: bool
    rows: Mapping[NodeId, Mapping[int, int]] = field(repr=False)
    transfers: TableTransfers = field(repr=False)
    bindings: BindingTable = field(repr=False)
    options: PlanOptions = field(repr=False)
    held_steps: int

    def device_of(self, step: int) -> Device:
        """Give the device that a step is placed on."""
        return self.problem.devices[self.placement[step]]

    def chosen_candidate(self, step: int) -> tuple[DecisionPoints, int]:
        """Give the decision points that a step's candidate is in, and its row there."""
        node_id = self.problem.nodes[step]
        return self.execution.retained[node_id].points, self.rows[node_id][self.placement[step]]

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
    devices: Sequence[Device | str] | None = None,
    pins: Mapping[NodeId | str, Device | str] | None = None,
    entry: Device | str = HOST,
    exit: Device | str = HOST,
    cold: bool = False,
    precision_digits: int | None = None,
    bit_stable: bool = False,
    memory: Mapping[Device | str, int] | None = None,
    keep: int = KEEP_PER_DEVICE,
    bindings: BindingTable | None = None,
    engine: EngineName | None = None,
) -> Plan:
    """Place a graph's operations with a table's numbers.

    The carry-forward DP decides, the finished placement is priced with every edge, and the best
    of it and the baselines is improved by minimum cuts. Where that exceeds a device's memory,
    work moves until it fits.

    Parameters
    ----------
    graph
        A graph whose shapes are all known; its placements are hard pins too. It is not changed.
    table
        A calibration table, from this machine or another.
    devices
        The devices to plan over, as devices or names like ``cuda:0``; by default all whose rates
        the table has, but simulators. One named here that has none is priced by the priors.
    pins
        Nodes that must run on a device, by id or name.
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
    engine
        Where arrays are worked on: ``numpy``, ``cupy``, or ``auto``, which takes the GPU from the
        size on that the table's calibration found. None is ``FUEL_GPU_ENGINE``, else ``auto``.

    Raises
    ------
    UsageError
        If an argument cannot be meant: a device that the table lacks, a pinned node that the
        graph lacks or that contradicts `devices`, a limit that is no number of bytes.
    PlanError
        If a node has no kernel that is allowed, or nothing fits the memory.
    """
    checked_graph_and_tables(graph, [table])
    chosen_devices = checked_devices(table, devices)
    fixed = checked_pins(graph, table, pins or {}, None if devices is None else chosen_devices)
    entry, exit = known_device(table, entry, "entry"), known_device(table, exit, "exit")
    checked_count(keep, "keep")
    checked_digits(precision_digits)
    pools = memory_pools(table, checked_memory(table, memory or {}))
    transfers = TableTransfers(table)
    pinned = graph.copy()
    pinned.placements.update(fixed)
    planned_on = tuple(dict.fromkeys([*chosen_devices, *fixed.values()]))
    order = graph.topological_order()
    filters: tuple[Filter, ...] = ()
    if precision_digits is not None or bit_stable:
        filters = (precision_floor(min_digits=precision_digits, bit_stable=bit_stable),)
    options = PlanOptions(
        devices=chosen_devices,
        rates={device: device_rates(table, device) for device in planned_on},
        pinned_device=chosen_devices[0],
        input_residency={n: place for n in order if (place := _start(graph, n, entry, cold))},
        estimator=transfers,
        filters=filters,
        keep=keep,
        exit_device=exit,
        narrower=precision_digits is not None,
        engine=engine,
        crossover=table.engine_crossover,
        largest_step_bytes=device_limits(pools),
    )
    kernels = bindings or default_bindings()
    execution = compile_plan(pinned, order, kernels, options)
    nodes = tuple(n for n in order if execution.covers(n))
    rows = {n: _best_rows(execution, n, planned_on) for n in nodes}
    times = {n: _times(execution, n, rows[n], len(planned_on)) for n in nodes}
    problem = build_problem(graph, nodes, planned_on, times, entry=entry, exit=exit)
    held = {s: planned_on.index(where) for s, n in enumerate(nodes) if (where := fixed.get(n))}
    choice = choose(
        problem,
        [planned_on.index(execution.placements[n]) for n in nodes],
        held,
        transfers.estimate_transfer_ns,
        pools,
        cold=cold,
    )
    if choice.placement is None:
        raise PlanError(_nothing_fits(graph, problem, choice, held, pools))
    placed = {n: planned_on[d] for n, d in zip(nodes, choice.placement, strict=True)}
    return Plan(
        graph=graph,
        table=table,
        execution=execution.committed_to(graph, placed),
        problem=problem,
        placement=choice.placement,
        chosen=choice.name,
        total_ns=choice.total_ns,
        copies=tuple(copies(problem, choice.placement, transfers.estimate_transfer_ns, cold=cold)),
        lower_bound_ns=choice.lower_bound_ns if keep >= _ENDS_OF_AXES else None,
        baselines=choice.baselines,
        pools=pools,
        cold=cold,
        rows=rows,
        transfers=transfers,
        bindings=kernels,
        options=options,
        held_steps=len(held),
    )


def _start(graph: Graph, node_id: NodeId, entry: Device, cold: bool) -> Device | None:
    """Where a value lies before the run, if anything says so: weights only where it is cold."""
    kind = graph.node(node_id).kind
    if kind == "input":
        return entry
    return HOST if cold and kind in ("weight", "constant") else None


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


def _nothing_fits(
    graph: Graph, problem: Problem, choice: Choice, pins: Mapping[int, int], pools: Sequence[Pool]
) -> str:
    advice = "Give more memory, a smaller batch, or another device"
    large = oversized_step(problem, pools, pins)
    if large is not None:
        node = graph.node(problem.nodes[large.step])
        return (
            f"nothing fits the memory: the largest node is {node.name} ({node.op}), which alone "
            f"needs {large.needed_bytes:,} bytes and exceeds {large.device} "
            f"({large.limit_bytes:,} bytes) by {large.needed_bytes - large.limit_bytes:,} bytes. "
            f"{advice}"
        )
    worst = max(excesses(problem, choice.fastest, pools), key=lambda e: e.bytes)
    said = (
        f"nothing that was tried fits the memory: the fastest placement exceeds {worst.pool.name} "
        f"({worst.pool.limit_bytes:,} bytes) by {worst.bytes:,} bytes"
    )
    if not problem.nodes:
        return f"{said}. {advice}"
    step = max(range(len(problem.nodes)), key=lambda s: step_bytes(problem, s))
    node = graph.node(problem.nodes[step])
    return (
        f"{said}; the largest node is {node.name} ({node.op}), which needs "
        f"{step_bytes(problem, step):,} bytes. {advice}"
    )
