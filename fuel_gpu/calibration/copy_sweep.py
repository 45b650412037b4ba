"""Copies between the host and a device over all sizes, in both directions."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final, Literal

from fuel_gpu.calibration.backends import Copies, OpenDevice
from fuel_gpu.calibration.effort import Budget, Effort
from fuel_gpu.calibration.records import CopyMeasured, Doing, Note, Record
from fuel_gpu.calibration.sampling import relative_half_width, summarize
from fuel_gpu.calibration.sizes import size_text
from fuel_gpu.calibration.table import Point
from fuel_gpu.device import HOST
from fuel_gpu.probes.report import DeviceInfo

_WARM_UPS: Final = 2
_FEWEST_VISITS: Final = 3
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
    info: DeviceInfo,
    device: OpenDevice,
    memory: str,
    effort: Effort,
    bound_bytes: int,
    budget: Budget,
    weight: float,
) -> Iterator[Record]:
    """Measure uploads and downloads at every size that the bound allows.

    A first pass over all sizes, so that an interrupted run has them all, is followed by further
    passes over those that are not settled, until the time is up. The samples of one size so come
    from several moments: a disturbance that lasts a second does not decide any of them.
    """
    sizes = [size for size in effort.copy_sizes_bytes if size <= bound_bytes]
    if not sizes:
        yield Note(text=f"no copies: only {size_text(bound_bytes)} of memory may be used")
        return
    deadline = budget.deadline(weight)
    copies = device.copies(sizes[-1], memory)
    try:
        sweep = _Sweep(info, copies, memory, effort, bound_bytes)
        for size in sizes:
            yield Doing(what=f"copies, {memory}, {size_text(size)}", spent=budget.spent())
            if not copies.arrived(size):
                yield Note(text=f"copies of {size_text(size)} ({memory}) came back different")
                continue
            yield sweep.visit("upload", size)
            yield sweep.visit("download", size)
        while time.monotonic() < deadline and (open_ones := sweep.unsettled()):
            yield Doing(what=f"copies, {memory}, once more", spent=budget.spent())
            for direction, size in open_ones:
                if time.monotonic() < deadline:
                    yield sweep.visit(direction, size)
    finally:
        copies.release()


class _Sweep:
    """The samples so far, by direction and size."""

    def __init__(
        self, info: DeviceInfo, copies: Copies, memory: str, effort: Effort, bound_bytes: int
    ) -> None:
        self._ends = {"upload": (str(HOST), info.id), "download": (info.id, str(HOST))}
        self._runs: dict[Direction, Callable[[int], int]] = {
            "upload": copies.upload,
            "download": copies.download,
        }
        self._memory, self._effort, self._bound_bytes = memory, effort, bound_bytes
        self._samples: dict[tuple[Direction, int], list[int]] = {}
        self._visits: Counter[tuple[Direction, int]] = Counter()

    def visit(self, direction: Direction, size: int) -> CopyMeasured:
        run = self._runs[direction]
        for _ in range(_WARM_UPS):
            run(size)
        self._visits[direction, size] += 1
        samples = self._samples.setdefault((direction, size), [])
        deadline = time.monotonic() + self._effort.visit_s
        samples += [run(size) for _ in range(self._effort.fewest)]
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

    def unsettled(self) -> list[tuple[Direction, int]]:
        """Directions and sizes to visit again, in the order of the first pass."""
        return [
            key
            for key, samples in self._samples.items()
            if self._visits[key] < _FEWEST_VISITS or not self._enough(samples)
        ]
