"""Pick a route at run time: an arm at each branch, from the devices' free memory and load."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from fuel_gpu.device import Device
from fuel_gpu.errors import UsageError
from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.graph.branches import ArmPrice, Branch
from fuel_gpu.graph.lowering import nodes_on_route, upstream_first

REPICK_FACTOR = 10
"""By how much a device's free memory must grow or shrink before a cached pick is redone."""


@dataclass(frozen=True, slots=True)
class DeviceTelemetry:
    """How a device is doing now.

    Parameters
    ----------
    free_bytes
        Memory that nobody uses, in bytes.
    load
        The share of its time in which it is busy, 0 to 1.
    """

    free_bytes: int
    load: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what no device can report.

        Raises
        ------
        UsageError
            If `free_bytes` is negative or `load` lies outside 0 .. 1.
        """
        if self.free_bytes < 0:
            raise UsageError(f"free_bytes is {self.free_bytes}: memory cannot be negative")
        if not 0.0 <= self.load <= 1.0:
            raise UsageError(f"load is {self.load}: give the busy share of time, 0 to 1")


Telemetry = Mapping[Device, DeviceTelemetry]
NamedTelemetry = Mapping[str, DeviceTelemetry]


def pick_arms(graph: Graph, telemetry: Telemetry | NamedTelemetry | None) -> dict[NodeId, int]:
    """Pick an arm at each branch, upstream first.

    An arm can be picked if its price is known, its device reports, and the device's free memory
    covers the arm's bytes. Of these the one with the least ``time_ns / (1 - load)`` is picked, the
    earlier one where two are equal; a device that is busy all the time is infinitely slow. Arm
    0 stays if no arm can be picked, or if arm 0 cannot be weighed because its price or its
    device's telemetry is missing; so with no telemetry arm 0 is followed everywhere.

    Returns
    -------
    dict
        For each branch on the picked route its arm; a branch inside an arm that another pick
        leaves is not on it. `fuel_gpu.graph.lowering.lower` follows the picks.

    Raises
    ------
    UsageError
        If a key of the telemetry is no device and no device's name, or a value is no
        `DeviceTelemetry`.
    """
    _check_graph(graph)
    reported = _by_device(telemetry or {})
    picks: dict[NodeId, int] = {}
    for branch_id, branch in upstream_first(graph):
        picks[branch_id] = _pick(branch, reported)
    on_route = nodes_on_route(graph, picks)
    return {b: arm for b, arm in picks.items() if graph.branches[b].arms[arm] in on_route}


class RoutePicker:
    """Keeps a pick until a device's free memory moves by an order of magnitude.

    Raises
    ------
    UsageError
        If it is made of anything but a graph.
    """

    def __init__(self, graph: Graph) -> None:
        _check_graph(graph)
        self._graph = graph
        self._picks: dict[NodeId, int] = {}
        self._basis: Telemetry = {}
        self._branches: Mapping[NodeId, Branch] = {}

    def pick(self, telemetry: Telemetry | NamedTelemetry | None) -> Mapping[NodeId, int]:
        """Give the picked arm of each branch.

        The cached pick is given again unless a device's free memory is at least ten times or at
        most a tenth of what it was at that pick, a device began or ceased to report, or the
        graph's branches are others. Load alone never redoes a pick. Without telemetry arm 0 is
        picked everywhere and the cache stays as it is.

        Raises
        ------
        UsageError
            If a key of the telemetry is no device and no device's name, or a value is no
            `DeviceTelemetry`.
        """
        if not telemetry:
            return pick_arms(self._graph, None)
        reported = _by_device(telemetry)
        if self._branches != self._graph.branches or _moved(self._basis, reported):
            self._picks = pick_arms(self._graph, reported)
            self._basis = reported
            self._branches = dict(self._graph.branches)
        return dict(self._picks)


def _check_graph(graph: object) -> None:
    if not isinstance(graph, Graph):
        raise UsageError(f"graph: {graph!r:.60} is no graph")


def _by_device(telemetry: Telemetry | NamedTelemetry) -> dict[Device, DeviceTelemetry]:
    if not isinstance(telemetry, Mapping):
        raise UsageError(f"telemetry: {telemetry!r:.60} maps no devices to their DeviceTelemetry")
    for name, now in telemetry.items():
        if not isinstance(now, DeviceTelemetry):
            raise UsageError(f"telemetry: {now!r:.60} for {name} is no DeviceTelemetry")
    return {Device.of(name, "telemetry"): now for name, now in telemetry.items()}


def _pick(branch: Branch, telemetry: Telemetry) -> int:
    chosen = branch.prices[0]
    if chosen is None or chosen.device not in telemetry:
        return 0
    best, best_time = None, math.inf
    for arm, price in enumerate(branch.prices):
        if price is None or not _fits(price, telemetry):
            continue
        time = _loaded_ns(price, telemetry)
        if best is None or time < best_time:
            best, best_time = arm, time
    return best or 0


def _fits(price: ArmPrice, telemetry: Telemetry) -> bool:
    now = telemetry.get(price.device)
    return now is not None and price.bytes <= now.free_bytes


def _loaded_ns(price: ArmPrice, telemetry: Telemetry) -> float:
    idle = 1.0 - telemetry[price.device].load
    return price.time_ns / idle if idle > 0.0 else math.inf


def _moved(before: Telemetry, now: Telemetry) -> bool:
    if before.keys() != now.keys():
        return True
    return any(_by_a_factor(before[d].free_bytes, now[d].free_bytes) for d in now)


def _by_a_factor(before: int, now: int) -> bool:
    low, high = sorted((before, now))
    return low != high and high >= REPICK_FACTOR * low
