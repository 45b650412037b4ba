"""Copies between the host and a device over all sizes, in both directions."""

import itertools
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final, Literal

from fuel_gpu.calibration.backends import Copies
from fuel_gpu.calibration.curves import sizes_at_bends
from fuel_gpu.calibration.effort import Budget, Effort
from fuel_gpu.calibration.figures import now
from fuel_gpu.calibration.records import CopyMeasured, Doing, Note, Record, Swept
from fuel_gpu.calibration.sampling import LONG_NS, STEADY_NS, relative_half_width, summarize
from fuel_gpu.calibration.table import Conditions, Point
from fuel_gpu.probes.report import DeviceInfo
from fuel_gpu.sizes import size_text

_TURN_NS: Final = 1_000_000
"""A copy of twice this length is visited in every second pass only, and so on: short ones vary
most, and long ones would take all the time."""

_SHORT_PASSES: Final = 4
"""Copies shorter than that are visited so many times more, however late it is."""

_TELL_EVERY_S: Final = 0.5
_SEED: Final = 1
_REFINED_AT: Final = (0.2, 0.4)
"""Shares of the time after which the curve's bends are looked for."""

_MOST_ADDED: Final = 4
_BEND: Final = 0.15
"""A point that its neighbours miss by more than this is in a bend of the curve."""

_MEMORY_SHARE: Final = 8
"""A copy takes at most this part of the device's memory, and of the host's free memory."""

Direction = Literal["upload", "download"]
DIRECTIONS: Final[tuple[Direction, ...]] = ("upload", "download")


def size_bound_bytes(info: DeviceInfo, host_available_bytes: int) -> int:
    """Bytes of the largest copy to try on a device."""
    bounds = [info.memory_bytes // _MEMORY_SHARE, host_available_bytes // _MEMORY_SHARE]
    if info.largest_allocation_bytes is not None:
        bounds.append(info.largest_allocation_bytes)
    return min(bounds)


def measure_copies(
    ends: tuple[str, str],
    allocate: Callable[[int], Copies],
    sizes_bytes: Sequence[int],
    bound_bytes: int,
    effort: Effort,
    budget: Budget,
    weight: float,
    *,
    check: bool = True,
    refine: bool = True,
    conditions: Callable[[], Conditions | None] = lambda: None,
) -> Iterator[Record]:
    """Measure copies both ways between two ends at every size that the bound allows.

    A first pass over all sizes, so that an interrupted run has them all, is followed by passes over
    those that are not settled, until the time is up. Each pass is in random order, and each visit
    takes one sample: how soon a driver's threads wake depends on what was copied just before, and
    differs from moment to moment far more than within one. Early on, sizes are added where the
    curve bends.

    Parameters
    ----------
    ends
        Ids of the devices: uploads go from the first to the second.
    allocate
        Gives copies of up to so many bytes.
    sizes_bytes
        What to measure, ascending, each a multiple of 8.
    bound_bytes
        The largest size that may be.
    check
        Whether to see first that a copy of each size arrives.
    refine
        Whether to add sizes where the curve bends.
    conditions
        What is known by now of the conditions under which the copies are measured.
    """
    sizes = [size for size in sizes_bytes if size <= bound_bytes]
    if not sizes:
        yield Note(text=f"no copies: only {size_text(bound_bytes)} of memory may be used for one")
        return
    begun, deadline = time.monotonic(), budget.deadline(weight)
    copies = allocate(sizes[-1])
    try:
        for run in (copies.upload, copies.download):
            run(sizes[-1])  # touches all memory, which costs more than copying it
        sweep = _Sweep(ends, copies, effort, bound_bytes, conditions)
        yield from _first_visits(sweep, copies, sizes, budget, check=check)
        for share in _REFINED_AT if refine else ():
            yield from _passes(sweep, begun + share * (deadline - begun), copies.memory, budget)
            yield from _first_visits(sweep, copies, sweep.sizes_at_bends(), budget, check=True)
        yield from _passes(sweep, deadline, copies.memory, budget, for_short=_SHORT_PASSES)
        for src, dst in (ends, ends[::-1]):
            yield Swept(src=src, dst=dst, memory=copies.memory)
    finally:
        copies.release()


def _first_visits(
    sweep: "_Sweep", copies: Copies, sizes: list[int], budget: Budget, *, check: bool
) -> Iterator[Record]:
    for size in random.Random(_SEED).sample(sizes, len(sizes)):
        what = f"copies, {copies.memory}, {size_text(size)}"
        yield Doing(what=what, spent=budget.spent())
        if check and not copies.arrived(size):
            yield Note(text=f"{what}: came back different, left out")
            continue
        for direction in DIRECTIONS:
            sweep.visit(direction, size)
            yield sweep.record(direction, size)


def _passes(
    sweep: "_Sweep", deadline: float, memory: str, budget: Budget, *, for_short: int = 0
) -> Iterator[Record]:
    order = random.Random(_SEED)
    visited: set[tuple[Direction, int]] = set()
    told = time.monotonic()
    for number in itertools.count():
        unsettled = sweep.unsettled()
        if not unsettled or (number >= for_short and time.monotonic() >= deadline):
            break
        order.shuffle(unsettled)
        for key in unsettled:
            last_ns = sweep.last_ns(*key)
            if order.random() * last_ns < _TURN_NS and (
                time.monotonic() < deadline or (number < for_short and last_ns < _TURN_NS)
            ):
                sweep.visit(*key)
                visited.add(key)
        if time.monotonic() > told + _TELL_EVERY_S:
            yield Doing(what=f"copies, {memory}, once more", spent=budget.spent())
            yield from (sweep.record(*key) for key in sorted(visited))
            visited.clear()
            told = time.monotonic()
    yield from (sweep.record(*key) for key in sorted(visited))


class _Sweep:
    """The samples so far, by direction and size."""

    def __init__(
        self,
        ends: tuple[str, str],
        copies: Copies,
        effort: Effort,
        bound_bytes: int,
        conditions: Callable[[], Conditions | None],
    ) -> None:
        self._ends: dict[Direction, tuple[str, str]] = {"upload": ends, "download": ends[::-1]}
        self._runs: dict[Direction, Callable[[int], int]] = {
            "upload": copies.upload,
            "download": copies.download,
        }
        self._memory, self._effort, self._bound_bytes = copies.memory, effort, bound_bytes
        self._conditions = conditions
        self._samples: dict[tuple[Direction, int], list[int]] = {}
        self._steady_from: dict[Direction, float] = dict.fromkeys(DIRECTIONS, math.inf)

    def visit(self, direction: Direction, size: int) -> None:
        """Take a sample, after a copy that is not counted unless it is known to be long."""
        run = self._runs[direction]
        taken = run(size)
        if size < self._steady_from[direction]:
            taken = run(size)
            if taken >= STEADY_NS:
                self._steady_from[direction] = size
        self._samples.setdefault((direction, size), []).append(taken)

    def last_ns(self, direction: Direction, size: int) -> int:
        """The latest sample."""
        return self._samples[direction, size][-1]

    def record(self, direction: Direction, size: int) -> CopyMeasured:
        """Say what the samples of one size say by now."""
        samples = self._samples[direction, size]
        found = summarize(samples, width=self._effort.width)
        src, dst = self._ends[direction]
        return CopyMeasured(
            src=src,
            dst=dst,
            memory=self._memory,
            size_bound_bytes=self._bound_bytes,
            point=Point(
                bytes=size,
                ns=round(found.value),
                samples=tuple(samples),
                interval=(round(found.interval[0]), round(found.interval[1])),
                flags=found.flags,
            ),
            measured=now(),
            conditions=self._conditions(),
        )

    def sizes_at_bends(self) -> list[int]:
        """Sizes to add because the curve of one direction bends there."""
        added: set[int] = set()
        for direction in DIRECTIONS:
            sizes = sorted(size for way, size in self._samples if way == direction)
            samples = [self._samples[direction, size] for size in sizes]
            medians = [round(median(taken)) for taken in samples]
            doubts = [relative_half_width(taken) for taken in samples]
            added |= set(sizes_at_bends(sizes, medians, doubts, tolerance=_BEND, most=_MOST_ADDED))
        return sorted(added)

    def unsettled(self) -> list[tuple[Direction, int]]:
        """Directions and sizes to visit again."""
        return [key for key, samples in self._samples.items() if not self._enough(samples)]

    def _enough(self, samples: list[int]) -> bool:
        if len(samples) >= self._effort.most:
            return True
        if len(samples) < self._effort.fewest_copies and sum(samples) < LONG_NS:
            return False
        return relative_half_width(samples) <= self._effort.width
