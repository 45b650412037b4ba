"""Copies between the host and a device over all sizes, in both directions."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Final, Literal

from fuel_gpu.calibration.backends import Copies
from fuel_gpu.calibration.curves import sizes_at_bends
from fuel_gpu.calibration.effort import Budget, Effort
from fuel_gpu.calibration.records import CopyMeasured, Doing, Note, Record
from fuel_gpu.calibration.sampling import relative_half_width, summarize
from fuel_gpu.calibration.table import Point
from fuel_gpu.probes.report import DeviceInfo
from fuel_gpu.sizes import size_text

_WARM_UPS: Final = 1
_FEWEST_RUNS: Final = 3
_FEWEST_VISITS: Final = 3
_REFINEMENTS: Final = 2
_MOST_ADDED: Final = 4
_BEND: Final = 0.15
"""A point that its neighbours miss by more than this is in a bend of the curve."""

_MEMORY_SHARE: Final = 8
"""A copy takes at most this part of the device's memory, and of the host's free memory."""

Direction = Literal["upload", "download"]


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
    refine: bool = True,
) -> Iterator[Record]:
    """Measure copies both ways between two ends at every size that the bound allows.

    A first pass over all sizes, so that an interrupted run has them all, is followed by sizes in
    between where the curve bends, and then by further passes over those that are not settled, until
    the time is up. The samples of one size so come from several moments: a disturbance that lasts
    a second does not decide any of them.

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
    refine
        Whether to add sizes where the curve bends.
    """
    sizes = [size for size in sizes_bytes if size <= bound_bytes]
    if not sizes:
        yield Note(text=f"no copies: only {size_text(bound_bytes)} of memory may be used for one")
        return
    deadline = budget.deadline(weight)
    copies = allocate(sizes[-1])
    try:
        sweep = _Sweep(ends, copies, effort, bound_bytes)
        for _ in range(1 + _REFINEMENTS * refine):
            for size in sizes:
                what = f"copies, {copies.memory}, {size_text(size)}"
                yield Doing(what=what, spent=budget.spent())
                if copies.arrived(size):
                    yield sweep.visit("upload", size)
                    yield sweep.visit("download", size)
                else:
                    yield Note(text=f"{what}: came back different, left out")
            sizes = sweep.sizes_at_bends()
        while time.monotonic() < deadline and (unsettled := sweep.unsettled()):
            yield Doing(what=f"copies, {copies.memory}, once more", spent=budget.spent())
            for direction, size in unsettled:
                if time.monotonic() < deadline:
                    yield sweep.visit(direction, size)
    finally:
        copies.release()


class _Sweep:
    """The samples so far, by direction and size."""

    def __init__(
        self, ends: tuple[str, str], copies: Copies, effort: Effort, bound_bytes: int
    ) -> None:
        self._ends: dict[Direction, tuple[str, str]] = {"upload": ends, "download": ends[::-1]}
        self._runs: dict[Direction, Callable[[int], int]] = {
            "upload": copies.upload,
            "download": copies.download,
        }
        self._memory, self._effort, self._bound_bytes = copies.memory, effort, bound_bytes
        self._samples: dict[tuple[Direction, int], list[int]] = {}
        self._visits: Counter[tuple[Direction, int]] = Counter()

    def visit(self, direction: Direction, size: int) -> CopyMeasured:
        run = self._runs[direction]
        for _ in range(_WARM_UPS):
            run(size)
        self._visits[direction, size] += 1
        samples = self._samples.setdefault((direction, size), [])
        deadline = time.monotonic() + self._effort.visit_s
        samples += [run(size) for _ in range(_FEWEST_RUNS)]
        while time.monotonic() < deadline and not self._enough(samples):
            samples.append(run(size))
        found = summarize(samples, width=self._effort.width)
        src, dst = self._ends[direction]
        return CopyMeasured(
            src=src,
            dst=dst,
            memory=self._memory,
            size_bound_bytes=self._bound_bytes,
            point=Point(
                bytes=size,
                ns=round(found.median),
                samples=tuple(samples),
                interval=(round(found.interval[0]), round(found.interval[1])),
                flags=found.flags,
            ),
            measured=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _enough(self, samples: list[int]) -> bool:
        return len(samples) >= self._effort.most or (
            relative_half_width(samples) <= self._effort.width
        )

    def sizes_at_bends(self) -> list[int]:
        """Sizes to add because the curve of one direction bends there."""
        added: set[int] = set()
        for direction in self._ends:
            sizes = sorted(size for way, size in self._samples if way == direction)
            medians = [round(median(self._samples[direction, size])) for size in sizes]
            added |= set(sizes_at_bends(sizes, medians, tolerance=_BEND, most=_MOST_ADDED))
        return sorted(added)

    def unsettled(self) -> list[tuple[Direction, int]]:
        """Directions and sizes to visit again, in the order of the first pass."""
        return [
            key
            for key, samples in self._samples.items()
            if self._visits[key] < _FEWEST_VISITS or not self._enough(samples)
        ]
