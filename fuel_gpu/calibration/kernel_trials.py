"""Rates of a device: its kernels compete once, wrong ones drop out, the best is measured."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import psutil

from fuel_gpu.calibration.backends import (
    OpenDevice,
    Workload,
    begin_watching,
    conditions_of,
)
from fuel_gpu.calibration.effort import MIB, Effort
from fuel_gpu.calibration.figures import Figure, figure
from fuel_gpu.calibration.records import Chosen
from fuel_gpu.calibration.sampling import LONG_NS, STEADY_NS, relative_half_width
from fuel_gpu.probes.report import DeviceInfo

_FIRST_PRODUCT_N: Final = 512
_PRODUCT_STEP: Final = 256
_LARGEST_PRODUCT_N: Final = 16_384
_TRIAL_RUNS: Final = 3
_TRIAL_S: Final = 0.03
_SHORT_NS: Final = 1_000_000
_PAUSE_S: Final = 0.002
_FINALISTS: Final = 2
_STREAM_BYTES: Final = 256 * MIB
_BUFFER_SHARE: Final = 16
"""One of a workload's buffers takes at most this part of the device's memory."""

_PADDED_ELEMENT_BYTES: Final = 9
"""An element of the widest dtype, with its share of the padding of rows."""


class WrongResult(Exception):
    """A kernel whose first result was right gave a wrong one later."""


Kernels = Callable[[str], tuple[str, ...]]
Make = Callable[[str, str, int], Workload]


def measure_launch(device: OpenDevice, effort: Effort, deadline: float) -> Figure:
    """Nanoseconds that starting an empty kernel takes."""
    work = device.launch()
    work.run()
    begin_watching(device)
    samples = collect(work.run, effort, deadline)
    return figure([samples], width=effort.width, conditions=conditions_of(device))


def best_product(
    info: DeviceInfo,
    device: OpenDevice,
    dtype: str,
    effort: Effort,
    deadline: float,
    notes: list[str],
) -> tuple[Chosen, Workload] | None:
    """Give the kernel that multiplies matrices fastest, on such as keep it busy for a while.

    All kernels are tried on a small product; the best two meet again on one that takes
    `effort.product_run_ns`.
    """
    trials = Trials(lambda kernel, n: device.product(dtype, kernel, n), dtype, notes)
    ranked = trials.rank(device.product_kernels(dtype), _FIRST_PRODUCT_N, deadline)
    if not ranked:
        return None
    n = _busy_n(info, ranked[0][1], effort)
    if n > _FIRST_PRODUCT_N:
        names = [kernel for kernel, _ in ranked[:_FINALISTS]]
        ranked = trials.rank(names, n, deadline) or ranked
    return trials.chosen(ranked[0][0])


def best_stream(
    info: DeviceInfo,
    device: OpenDevice,
    dtype: str,
    effort: Effort,
    deadline: float,
    notes: list[str],
) -> tuple[Chosen, Workload] | None:
    """Give the kernel that copies a large array fastest."""
    trials = Trials(lambda kernel, size: device.stream(dtype, kernel, size), dtype, notes)
    ranked = trials.rank(device.stream_kernels(dtype), stream_bytes(info, effort.stream_caches), deadline)
    return trials.chosen(ranked[0][0]) if ranked else None


def same_again(chosen: Chosen, dtype: str, kernels: Kernels, make: Make) -> Workload:
    """Make the workload that an earlier sitting chose.

    Raises
    ------
    LookupError
        If the device does not offer that kernel now.
    """
    if chosen.kernel not in kernels(dtype):
        raise LookupError(f"{chosen.kernel} was measured before and is not offered any more")
    work = make(dtype, chosen.kernel, chosen.size)
    work.run()  # compiles
    return work


def measure_rate(
    device: object, work: Workload, kernel: str, effort: Effort, deadline: float
) -> Figure:
    """Amount of work a nanosecond, FLOPs or bytes.

    Raises
    ------
    WrongResult
        If the last result is wrong.
    """
    begin_watching(device)
    samples = [work.amount / ns for ns in collect(work.run, effort, deadline)]
    conditions = conditions_of(device)
    if not work.correct():
        raise WrongResult
    return figure([samples], width=effort.width, kernel=kernel, conditions=conditions)


def stream_bytes(info: DeviceInfo, times_caches: int) -> int:
    """Size of the array to stream: `times_caches` the last-level caches, 256 MiB at least.

    Bounded by a share of the memory and by the largest allocation; a whole number of MiB.

    Notes
    -----
    Four times the caches is the rule of J. D. McCalpin's STREAM benchmark for its arrays. As large
    as the caches, the array that is read and the one that is written push each other out as well,
    and a guest that sees all the caches of a large host can have them touched in a second.
    """
    caches = info.details.get("caches") or [{}]
    cached = int(caches[-1].get("size_bytes", 0)) * int(caches[-1].get("instances", 1))
    memory = min(info.memory_bytes, psutil.virtual_memory().available)
    wanted = min(max(_STREAM_BYTES, times_caches * cached), memory // _BUFFER_SHARE)
    if info.largest_allocation_bytes is not None:
        wanted = min(wanted, info.largest_allocation_bytes)
    return max(wanted // MIB, 1) * MIB


def _busy_n(info: DeviceInfo, flops_per_ns: float, effort: Effort) -> int:
    wanted = (effort.product_run_ns * flops_per_ns / 2) ** (1 / 3)
    limits = (info.largest_allocation_bytes, info.details.get("largest_binding_bytes"))
    fitting = [(limit / _PADDED_ELEMENT_BYTES) ** 0.5 for limit in limits if limit]
    fitting.append((info.memory_bytes / _BUFFER_SHARE / 8) ** 0.5)
    n = min(wanted, *fitting, _LARGEST_PRODUCT_N)
    return max(int(n) // _PRODUCT_STEP * _PRODUCT_STEP, _FIRST_PRODUCT_N)


@dataclass(slots=True)
class Trials:
    """Kernels tried at a size; those that work are kept, with their workloads, to be measured."""

    make: Callable[[str, int], Workload]
    dtype: str
    notes: list[str]
    size: int = 0
    workloads: dict[str, Workload] = field(default_factory=dict)

    def rank(self, kernels: Sequence[str], size: int, deadline: float) -> list[tuple[str, float]]:
        """Give the kernels that are right, fastest first, with their rates.

        Kernels left when the time is up are not tried, unless none has worked yet.
        """
        found: dict[str, float] = {}
        workloads: dict[str, Workload] = {}
        for kernel in kernels:
            if found and time.monotonic() > deadline:
                break
            try:
                work = self.make(kernel, size)
                work.run()  # compiles
                if not work.correct():
                    self.notes.append(f"{self.dtype}, {kernel}: wrong result, left out")
                    continue
                found[kernel] = work.amount / _best_ns(work.run)
                workloads[kernel] = work
            except Exception as error:
                self.notes.append(f"{self.dtype}, {kernel}: {one_line(error)}")
        if found:
            self.size, self.workloads = size, workloads
        return sorted(found.items(), key=lambda item: item[1], reverse=True)

    def chosen(self, kernel: str) -> tuple[Chosen, Workload]:
        """Give one of the kernels that worked, at the size of the last trial."""
        return Chosen(kernel=kernel, size=self.size), self.workloads[kernel]


def _best_ns(run: Callable[[], int]) -> int:
    """The least time of a few runs, more of them if they are short."""
    end = time.monotonic() + _TRIAL_S
    best, runs = run(), 1
    while runs < _TRIAL_RUNS or time.monotonic() < end:
        best, runs = min(best, run()), runs + 1
    return best


def collect(run: Callable[[], int], effort: Effort, deadline: float) -> list[int]:
    """Take samples until the median is settled, there are enough, or the time is up.

    They go on for `effort.dwell_s` at least: a few runs that agree may all have met one neighbour.
    Short runs are taken in bouts with a pause and a run that is not counted in between, because
    how soon a driver's threads wake differs from moment to moment far more than within one.
    """
    begun = time.monotonic()
    samples: list[int] = []
    while len(samples) < effort.most:
        samples.append(run())
        if samples[-1] < STEADY_NS:
            samples += [run() for _ in range(_TRIAL_RUNS - 1)]
        if samples[-1] < _SHORT_NS:
            time.sleep(_PAUSE_S)
            run()
        now = time.monotonic()
        if (len(samples) >= effort.fewest or sum(samples) >= LONG_NS) and (
            now > deadline
            or (now > begun + effort.dwell_s and relative_half_width(samples) <= effort.width)
        ):
            break
    return samples


def one_line(error: Exception) -> str:
    """An error in one short line."""
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
