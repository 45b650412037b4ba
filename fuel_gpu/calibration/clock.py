"""Wall-clock timing of one call, less what reading the clock costs."""

import time
from collections.abc import Callable
from functools import lru_cache


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
