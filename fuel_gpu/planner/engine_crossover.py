"""The size of work from which the GPU's array engine wins on this machine, measured."""

import time
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from fuel_gpu.arrays.engine import NUMPY, Engine, cupy_engine
from fuel_gpu.errors import UsageError
from fuel_gpu.planner.candidate_table import CandidateTable, rank_and_retain

SIZES: Final = tuple(1 << power for power in range(10, 21))
"""Candidates of the tables that are tried, eight to a node."""

_RUNS: Final = 5


def measure_crossover() -> int | None:
    """Find the number of candidates from which ranking and retaining is faster on the GPU.

    The GPU's time includes the way there and back.

    Returns
    -------
    int or None
        None where there is no usable GPU, or where it never wins.
    """
    try:
        gpu = cupy_engine()
    except UsageError:
        return None
    return crossover(SIZES, lambda n: _median_ns(n, NUMPY), lambda n: _median_ns(n, gpu))


def crossover(
    sizes: Sequence[int], numpy_ns: Callable[[int], int], cupy_ns: Callable[[int], int]
) -> int | None:
    """Give the least of ascending `sizes` from which `cupy_ns` is below `numpy_ns` to the end."""
    least = None
    for size in reversed(sizes):
        if cupy_ns(size) >= numpy_ns(size):
            break
        least = size
    return least


def _median_ns(candidates: int, engine: Engine) -> int:
    table = _random_table(candidates)
    rank_and_retain(table, engine=engine)  # compiles kernels and fills pools
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter_ns()
        rank_and_retain(table, engine=engine)
        times.append(time.perf_counter_ns() - start)
    return sorted(times)[_RUNS // 2]


def _random_table(candidates: int) -> CandidateTable:
    """Make nodes of eight candidates over two devices, with costs that tie now and then."""
    rng = np.random.default_rng(20_220_101)
    row = np.arange(candidates)
    device = (row % 2).astype(np.int32)
    moved = rng.integers(0, 64, candidates, np.uint64)
    nothing = np.zeros_like(moved)
    return CandidateTable(
        node=row // 8,
        device=device,
        backend=device,
        time_ns=rng.integers(0, 256, candidates, np.uint64),
        host_bytes=np.where(device == 0, moved, nothing),
        device_bytes=np.where(device == 0, nothing, moved),
        precision=rng.integers(0, 19, candidates, np.uint8),
        accuracy=rng.integers(0, 5, candidates, np.uint8),
    )
