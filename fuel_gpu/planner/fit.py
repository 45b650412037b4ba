"""Placements that fit: move work off a device whose memory is exceeded, at little added time."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.device import Device
from fuel_gpu.planner.memory import live_spans, usage_bytes
from fuel_gpu.planner.min_cut import best_by_cuts
from fuel_gpu.planner.pricing import Transfer, total_ns
from fuel_gpu.planner.problem import Problem
from fuel_gpu.planner.refine import refine

_PRICE_ROUNDS = 16
_PRICE_GROWTH = 1.8
_BISECTIONS = 8
_CUT_WORK = 1_000_000
"""Steps that all cuts together may price, for each pair of devices."""
_MOST_PLACEMENTS = 4_096
"""Placements up to which all are tried where no search found one that fits."""
_REPAIR_WORK = 300_000
"""Steps that all moves of a repair together may price."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Memory that one or more devices share, and its limit in bytes."""

    name: str
    devices: tuple[Device, ...]
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class Excess:
    """By how much a placement exceeds a pool, at its fullest step."""

    pool: Pool
    peak_bytes: int

    @property
    def bytes(self) -> int:
        """Bytes above the limit."""
        return self.peak_bytes - self.pool.limit_bytes


def pool_usage_bytes(
    problem: Problem, placement: Sequence[int], pools: Sequence[Pool]
) -> NDArray[Any]:
    """Bytes in use in every pool at every step, shape (pools, steps)."""
    devices = all_devices(problem, pools)
    usage = usage_bytes(problem, placement, devices)
    position = {device: k for k, device in enumerate(devices)}
    rows = [usage[[position[d] for d in pool.devices]].sum(axis=0) for pool in pools]
    return np.array(rows).reshape(len(pools), -1)


def all_devices(problem: Problem, pools: Sequence[Pool] = ()) -> tuple[Device, ...]:
    """The devices that can hold a value: those planned on, entry and exit, and the pools'."""
    held = (d for pool in pools for d in pool.devices)
    return tuple(dict.fromkeys([*problem.devices, problem.entry, problem.exit, *held]))


def excesses(
    problem: Problem, placement: Sequence[int], pools: Sequence[Pool]
) -> tuple[Excess, ...]:
    """List the pools that the placement exceeds."""
    usage = pool_usage_bytes(problem, placement, pools)
    peaks = [int(row.max()) for row in usage]
    return tuple(
        Excess(pool, peak)
        for pool, peak in zip(pools, peaks, strict=True)
        if peak > pool.limit_bytes
    )


def step_bytes(problem: Problem, step: int) -> int:
    """What a step alone needs on its device: the values it reads and writes, weights too."""
    touched = {*problem.reads[step], *problem.writes[step]}
    return sum(problem.values[v].bytes for v in touched)


def fitting_placement(
    problem: Problem,
    start: Sequence[int],
    pools: Sequence[Pool],
    transfer: Transfer,
    pins: Mapping[int, int],
    *,
    cold: bool = False,
) -> list[int] | None:
    """Find a placement within all limits whose total time is as low as the search can find.

    Three sources of placements, the best that fits is improved by single moves: prices on memory
    (a Lagrangian relaxation: each byte on an overfull step costs time, raised until the best
    placement fits, then lowered by bisection), cuts (the first or last steps on one device and
    the rest on another), and `start` itself. Where none of them fits, the one that exceeds least
    is repaired by the moves that relieve its fullest step most; of a small problem all
    placements are tried at last.

    Returns
    -------
    list of int or None
        A device's position for each step; None if nothing that fits was found.
    """
    best: tuple[int, list[int]] | None = None
    nearest: tuple[int, list[int]] | None = None
    for placement in _proposals(problem, list(start), pools, transfer, pins):
        ns = total_ns(problem, placement, transfer, cold=cold)
        if ns is None or (best is not None and ns >= best[0]):
            continue
        over = sum(excess.bytes for excess in excesses(problem, placement, pools))
        if not over:
            best = (ns, placement)
        elif nearest is None or over < nearest[0]:
            nearest = (over, placement)
    found = best[1] if best else _repaired(problem, nearest, pools, pins)
    if found is None:
        found = _searched(problem, pools, transfer, pins, cold=cold)
    if found is None:
        return None
    return refine(
        problem,
        found,
        transfer,
        pins,
        cold=cold,
        admits=lambda placement: not excesses(problem, placement, pools),
    )


@dataclass(frozen=True, slots=True)
class Oversized:
    """A step that alone exceeds every device that it may run on, and the one with most room."""

    step: int
    needed_bytes: int
    device: Device
    limit_bytes: int


def oversized_step(
    problem: Problem, pools: Sequence[Pool], pins: Mapping[int, int]
) -> Oversized | None:
    """Find the largest step that alone exceeds the memory of every device that it may run on."""
    room: dict[Device, int] = {}
    for pool in pools:
        for device in pool.devices:
            room[device] = min(room.get(device, pool.limit_bytes), pool.limit_bytes)
    found: Oversized | None = None
    for step in range(len(problem.nodes)):
        needed = step_bytes(problem, step)
        choices = [pins[step]] if step in pins else list(_runnable(problem, step))
        roomiest = max((problem.devices[d] for d in choices), key=lambda d: room.get(d, needed))
        limit = room.get(roomiest, needed)
        if needed > limit and (found is None or needed > found.needed_bytes):
            found = Oversized(step, needed, roomiest, limit)
    return found


def _repaired(
    problem: Problem,
    nearest: tuple[int, list[int]] | None,
    pools: Sequence[Pool],
    pins: Mapping[int, int],
) -> list[int] | None:
    """Move the step that relieves most, again and again; None if that leaves an excess."""
    if nearest is None:
        return None
    over, placement = nearest
    work = 0
    while over and work < _REPAIR_WORK:
        best: tuple[int, int, int] | None = None
        for step in _at_the_fullest(problem, placement, pools):
            if step in pins:
                continue
            here = placement[step]
            for device in _runnable(problem, step):
                if device != here:
                    placement[step] = device
                    work += len(placement)
                    left = sum(e.bytes for e in excesses(problem, placement, pools))
                    if left < over and (best is None or left < best[0]):
                        best = (left, step, device)
            placement[step] = here
        if best is None:
            return None
        over, step, device = best
        placement[step] = device
    return None if over else placement


def _searched(
    problem: Problem,
    pools: Sequence[Pool],
    transfer: Transfer,
    pins: Mapping[int, int],
    *,
    cold: bool,
) -> list[int] | None:
    """Try every placement, if there are few enough; the best that fits, or None."""
    steps = range(len(problem.nodes))
    choices = [[pins[s]] if s in pins else list(_runnable(problem, s)) for s in steps]
    if math.prod(len(each) for each in choices) > _MOST_PLACEMENTS:
        return None
    fitting = (list(p) for p in itertools.product(*choices) if not excesses(problem, p, pools))
    priced = ((total_ns(problem, p, transfer, cold=cold) or 0, p) for p in fitting)
    return min(priced, default=(0, None))[1]


def _at_the_fullest(problem: Problem, placement: Sequence[int], pools: Sequence[Pool]) -> list[int]:
    """List the steps that touch what is alive at the fullest step of the pool most exceeded."""
    usage = pool_usage_bytes(problem, placement, pools)
    over = [int(row.max()) - pool.limit_bytes for row, pool in zip(usage, pools, strict=True)]
    worst = int(np.argmax(over))
    moment = int(usage[worst].argmax())
    steps: set[int] = set()
    for span in live_spans(problem, placement):
        if span.device in pools[worst].devices and span.first <= moment <= span.last:
            value = problem.values[span.value]
            steps.update(value.readers)
            if value.producer is not None:
                steps.add(value.producer)
    return sorted(steps)


def _runnable(problem: Problem, step: int) -> Iterator[int]:
    return (d for d, ns in enumerate(problem.time_ns[step]) if ns is not None)


def _proposals(
    problem: Problem,
    start: list[int],
    pools: Sequence[Pool],
    transfer: Transfer,
    pins: Mapping[int, int],
) -> Iterator[list[int]]:
    yield start
    yield from _priced(problem, start, pools, transfer, pins)
    yield from _cuts(problem, pins)


def _cuts(problem: Problem, pins: Mapping[int, int]) -> Iterator[list[int]]:
    steps = len(problem.nodes)
    stride = max(1, steps // 200, steps * steps // _CUT_WORK)
    for a in range(len(problem.devices)):
        for b in range(len(problem.devices)):
            if a == b:
                continue
            for cut in range(0, steps + 1, stride):
                placement = [a] * cut + [b] * (steps - cut)
                for step, device in enumerate(placement):
                    if step in pins:
                        placement[step] = pins[step]
                    elif problem.time_ns[step][device] is None:
                        placement[step] = next(_runnable(problem, step))
                yield placement


def _priced(
    problem: Problem,
    start: list[int],
    pools: Sequence[Pool],
    transfer: Transfer,
    pins: Mapping[int, int],
) -> Iterator[list[int]]:
    """Raise the price of memory on overfull steps until the placement fits, then bisect it."""
    limits = np.array([[pool.limit_bytes] for pool in pools], np.float64)
    prices = np.zeros((len(pools), max(len(problem.nodes), 1)))
    serial_ns = total_ns(problem, start, transfer) or 1
    unit = serial_ns / np.maximum(limits, 1.0) / 64
    placement = start
    for _ in range(_PRICE_ROUNDS):
        usage = pool_usage_bytes(problem, placement, pools)
        over = np.maximum(usage - limits, 0.0) / np.maximum(limits, 1.0)
        if not over.any():
            break
        prices += unit * over / max(float(over.max()), 1e-12)
        unit = unit * _PRICE_GROWTH
        placement = _with_memory_priced(problem, placement, pools, prices, transfer, pins)
        yield placement
    else:
        return
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        placement = _with_memory_priced(problem, placement, pools, prices * middle, transfer, pins)
        yield placement
        if excesses(problem, placement, pools):
            low = middle
        else:
            high = middle


def _memory_ns(
    problem: Problem, pools: Sequence[Pool], prices: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What each step's memory costs on each device: its outputs while they live, its weights."""
    end = max(len(problem.nodes) - 1, 0)
    sums = np.concatenate([np.zeros((len(pools), 1)), np.cumsum(prices, axis=1)], axis=1)
    extra = np.zeros((len(problem.nodes), len(problem.devices)))
    for row, pool in enumerate(pools):
        columns = [d for d, device in enumerate(problem.devices) if device in pool.devices]
        for value in problem.values:
            if value.is_weight:
                cost = value.bytes * sums[row, end + 1] / max(len(value.readers), 1)
                for step in value.readers:
                    extra[step, columns] += cost
            elif value.producer is not None:
                last = end if value.is_output else max(value.readers, default=value.producer)
                cost = value.bytes * (sums[row, last + 1] - sums[row, value.producer])
                extra[value.producer, columns] += cost
    return extra


def _with_memory_priced(
    problem: Problem,
    placement: Sequence[int],
    pools: Sequence[Pool],
    prices: NDArray[np.float64],
    transfer: Transfer,
    pins: Mapping[int, int],
) -> list[int]:
    """Find the best placement where each step's time includes what its memory costs."""
    extra = _memory_ns(problem, pools, prices).astype(np.int64)
    times = tuple(
        tuple(None if ns is None else ns + int(extra[step, d]) for d, ns in enumerate(row))
        for step, row in enumerate(problem.time_ns)
    )
    return best_by_cuts(replace(problem, time_ns=times), placement, transfer, pins)[0]
