"""Measures the CPU with all its cores: NumPy's BLAS, threaded copies, a ufunc's call."""

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

from fuel_gpu.calibration.backends import Copies, Workload
from fuel_gpu.calibration.backends.answers import ProductCheck
from fuel_gpu.calibration.clock import timed
from fuel_gpu.probes.report import DeviceInfo

_BLAS_DTYPES: Final = ("float32", "float64")
_CALLS_PER_LAUNCH_SAMPLE: Final = 2_000


def open_device(info: DeviceInfo) -> "CpuDevice":
    """Open the CPU."""
    return CpuDevice()


class CpuDevice:
    """The host's processor and memory; nothing is copied to it."""

    host_memory_kinds: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._cores = usable_cores()
        self._pool = ThreadPoolExecutor(self._cores)

    def copies(self, largest_bytes: int, memory: str) -> Copies:
        """Refuse: the host's memory is where copies start."""
        raise NotImplementedError("the CPU works in the host's memory: there is nothing to copy")

    def launch(self) -> Workload:
        """Call a ufunc on one element: the cost of entering NumPy, averaged over 2,000 calls."""
        x, one = np.zeros(1, dtype=np.float32), np.ones(1, dtype=np.float32)
        add = np.add

        def calls() -> None:
            for _ in range(_CALLS_PER_LAUNCH_SAMPLE):
                add(x, one, out=x)

        def run() -> int:
            x[0] = 0
            return max(1, timed(calls) // _CALLS_PER_LAUNCH_SAMPLE)

        return Workload(1, run, lambda: bool(x[0] == _CALLS_PER_LAUNCH_SAMPLE))

    def product_kernels(self, dtype: str) -> tuple[str, ...]:
        """NumPy has a BLAS for these only; its other products are plain loops."""
        return ("numpy.matmul",) if dtype in _BLAS_DTYPES else ()

    def product(self, dtype: str, kernel: str, n: int) -> Workload:
        """Multiply with NumPy's BLAS, on as many threads as it takes."""
        check = ProductCheck(n, dtype)
        a, b = check.operands()
        c = np.zeros((n, n), dtype=dtype)
        return Workload(
            2 * n**3, lambda: timed(lambda: np.matmul(a, b, out=c)), lambda: check.accepts(c)
        )

    def stream_kernels(self, dtype: str) -> tuple[str, ...]:
        """One thread a core."""
        return (f"{self._cores} threads",) if dtype in _BLAS_DTYPES else ()

    def stream(self, dtype: str, kernel: str, nbytes: int) -> Workload:
        """Let each thread copy its own part, which it was the first to touch.

        One thread does not reach the memory's bandwidth; NumPy copies without holding the
        interpreter's lock.
        """
        count = nbytes // np.dtype(dtype).itemsize
        src, dst = np.empty(count, dtype=dtype), np.empty(count, dtype=dtype)
        edges = np.linspace(0, count, self._cores + 1).astype(int).tolist()
        parts = [slice(lo, hi) for lo, hi in itertools.pairwise(edges)]

        def fill(part: slice) -> None:
            src[part] = np.arange(part.start, part.stop)
            dst[part] = 0

        def copy(part: slice) -> None:
            np.copyto(dst[part], src[part])

        self._all(fill, parts)
        return Workload(
            2 * src.nbytes,
            lambda: timed(lambda: self._all(copy, parts)),
            lambda: bool(np.array_equal(src, dst)),
        )

    def _all(self, work: Callable[[slice], None], parts: list[slice]) -> None:
        for future in [self._pool.submit(work, part) for part in parts]:
            future.result()


def usable_cores() -> int:
    """Give the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
