"""Wall-clock timing of one call, less what reading the clock costs, and devices' own clocks."""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

_LEAST_SHARE: Final = 0.5
_LARGEST_SHARE: Final = 1.05
"""Waiting costs something, so that the wall shows more; a wrong unit is off by ten and more."""


def timed(call: Callable[[], object]) -> int:
    """Nanoseconds that `call` takes, at least 1."""
    start = time.perf_counter_ns()
    call()
    elapsed = time.perf_counter_ns() - start
    return max(1, elapsed - timer_overhead_ns())


@lru_cache(maxsize=1)
def timer_overhead_ns() -> int:
    """Nanoseconds between two readings of the clock with nothing between them: the median."""
    gaps = []
    for _ in range(1001):
        start = time.perf_counter_ns()
        gaps.append(time.perf_counter_ns() - start)
    return sorted(gaps)[len(gaps) // 2]


def keeps_time(device_ns: Sequence[int], wall_ns: Sequence[int]) -> bool:
    """Whether a device's own clock tells the time of the wall's, both of the same long runs."""
    shares = [device / wall for device, wall in zip(device_ns, wall_ns, strict=True)]
    return _LEAST_SHARE <= statistics.median(shares) <= _LARGEST_SHARE
