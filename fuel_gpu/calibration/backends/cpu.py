"""Measures the CPU with all its cores: NumPy's BLAS, threaded copies, a ufunc's call.

Where its memory lies in several nodes, each node's copies as well.
"""

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

from fuel_gpu.calibration.backends import Copies, MemoryNode, Workload
from fuel_gpu.calibration.backends.answers import ProductCheck
from fuel_gpu.calibration.backends.cpu_state import CoreCounters
from fuel_gpu.calibration.clock import timed
from fuel_gpu.calibration.table import Conditions
from fuel_gpu.probes.report import DeviceInfo
from fuel_gpu.probes.topology import parse_cpu_list

_BLAS_DTYPES: Final = ("float32", "float64")
_CALLS_PER_LAUNCH_SAMPLE: Final = 2_000


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
        return _stream(self._pool, self._cores, dtype, nbytes)

    def node_stream(self, node: MemoryNode, dtype: str, nbytes: int) -> Workload:
        """Let the cores of one node copy; what they are the first to touch is its memory."""
        cpus = parse_cpu_list(node.cpus)
        pool = ThreadPoolExecutor(len(cpus), initializer=_pin, initargs=(cpus,))
        return _stream(pool, len(cpus), dtype, nbytes)


def usable_cores() -> int:
    """Give the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _pin(cpus: set[int]) -> None:
    """Keep the calling thread on some processors."""
    os.sched_setaffinity(0, cpus)  # of a thread, Linux means by 0


def _stream(pool: ThreadPoolExecutor, threads: int, dtype: str, nbytes: int) -> Workload:
    """Let each thread copy its own part, which it was the first to touch.

    One thread does not reach the memory's bandwidth; NumPy copies without holding the interpreter's
    lock.
    """
    count = nbytes // np.dtype(dtype).itemsize
    src, dst = np.empty(count, dtype=dtype), np.empty(count, dtype=dtype)
    edges = np.linspace(0, count, threads + 1).astype(int).tolist()
    parts = [slice(lo, hi) for lo, hi in itertools.pairwise(edges)]

    def fill(part: slice) -> None:
        src[part] = np.arange(part.start, part.stop)
        dst[part] = 0

    def copy(part: slice) -> None:
        np.copyto(dst[part], src[part])

    def all_of(work: Callable[[slice], None]) -> None:
        for future in [pool.submit(work, part) for part in parts]:
            future.result()

    all_of(fill)
    return Workload(
        2 * src.nbytes,
        lambda: timed(lambda: all_of(copy)),
        lambda: bool(np.array_equal(src, dst)),
    )
