"""Measures the CPU with all its cores: NumPy's BLAS, threaded copies, a ufunc's call.

Where its memory lies in several nodes, each node's copies as well.
"""

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import numpy as np

from fuel_gpu.calibration.backends import Copies, MemoryNode, Workload
from fuel_gpu.calibration.backends.answers import ProductCheck, number_words, same_words
from fuel_gpu.calibration.backends.cpu_state import CoreCounters
from fuel_gpu.calibration.clock import timed
from fuel_gpu.calibration.effort import MIB
from fuel_gpu.calibration.table import Conditions
from fuel_gpu.probes.report import DeviceInfo
from fuel_gpu.probes.topology import parse_cpu_list

_BLAS_DTYPES: Final = ("float32", "float64")
_CALLS_PER_LAUNCH_SAMPLE: Final = 2_000

R = TypeVar("R")


def open_device(info: DeviceInfo) -> "CpuDevice":
    """Open the CPU."""
    nodes = tuple(
        MemoryNode(**node) for node in info.details.get("numa_nodes") or () if node["cpus"]
    )
    return CpuDevice(nodes if len(nodes) > 1 else ())


class CpuDevice:
    """The host's processor and memory; nothing is copied to it.

    Parameters
    ----------
    memory_nodes
        The nodes that have processors which this process may use, if there are several.
    """

    host_memory_kinds: tuple[str, ...] = ()

    def __init__(self, memory_nodes: tuple[MemoryNode, ...] = ()) -> None:
        self.memory_nodes = memory_nodes
        self._counters = CoreCounters()
        self._cores = usable_cores()
        self._pool = ThreadPoolExecutor(self._cores)
        self._streamed: _Streamed | None = None

    def watch(self) -> None:
        """Forget what held the processor back."""
        self._counters.watch()

    def conditions(self) -> Conditions | None:
        """What held it back since."""
        return self._counters.conditions()

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
        """Let all cores copy."""
        if self._streamed is None or self._streamed.nbytes != nbytes:
            self._streamed = _Streamed(self._pool, self._cores, nbytes)
        return self._streamed.by(dtype)

    def node_stream(self, node: MemoryNode, dtype: str, nbytes: int) -> Workload:
        """Let the cores of one node copy; what they are the first to touch is its memory."""
        cpus = parse_cpu_list(node.cpus)
        pool = ThreadPoolExecutor(len(cpus), initializer=_pin, initargs=(cpus,))
        return _Streamed(pool, len(cpus), nbytes).by(dtype)


def usable_cores() -> int:
    """Give the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _pin(cpus: set[int]) -> None:
    """Keep the calling thread on some processors."""
    os.sched_setaffinity(0, cpus)  # of a thread, Linux means by 0


class _Streamed:
    """Two arrays, of which each thread copies its own part, which it was the first to touch.

    One thread does not reach the memory's bandwidth; NumPy copies without holding the interpreter's
    lock.
    """

    def __init__(self, pool: ThreadPoolExecutor, threads: int, nbytes: int) -> None:
        self.nbytes = nbytes
        self._pool = pool
        self._src, self._dst = np.empty(nbytes, np.uint8), np.empty(nbytes, np.uint8)
        edges = [MIB * (nbytes // MIB * index // threads) for index in range(threads)] + [nbytes]
        self._parts = [slice(low, high) for low, high in itertools.pairwise(edges)]
        self._by_all(lambda part: number_words(self._src[part]))

    def by(self, dtype: str) -> Workload:
        """Copy elements of one dtype, from an array of numbers to one of zeros."""

        def copy(part: slice) -> None:
            np.copyto(self._dst[part].view(dtype), self._src[part].view(dtype))

        self._by_all(lambda part: self._dst[part].fill(0))
        return Workload(
            2 * self.nbytes,
            lambda: timed(lambda: self._by_all(copy)),
            lambda: all(self._by_all(lambda part: same_words(self._src[part], self._dst[part]))),
        )

    def _by_all(self, work: Callable[[slice], R]) -> list[R]:
        return [future.result() for future in [self._pool.submit(work, p) for p in self._parts]]
