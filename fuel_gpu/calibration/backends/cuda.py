"""Measures a CUDA device through CuPy: copies by CUDA events, products by cuBLAS."""

import importlib
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.calibration.backends import Copies, Workload
from fuel_gpu.calibration.backends.answers import ProductCheck, number_words, same_words
from fuel_gpu.calibration.backends.cuda_copies import HostCopies, PeerCopies
from fuel_gpu.calibration.backends.cuda_duplex import both_ways, peer_both_ways
from fuel_gpu.calibration.backends.cuda_state import CardCounters, open_counters
from fuel_gpu.calibration.clock import timed
from fuel_gpu.calibration.table import Conditions
from fuel_gpu.probes.report import DeviceInfo

# cudaDataType of CUDA's library_types.h
_R_32F, _R_64F, _R_16F, _R_8I, _R_32I, _R_16BF = 0, 1, 2, 3, 10, 14

_PLAIN: Final = "cuBLAS"
_TRANSPOSED: Final = "cuBLAS, right factor transposed"
_EMPTY_PAIRS: Final = 101
_NOTHING: Final = 'extern "C" __global__ void nothing() {}'


@dataclass(frozen=True, slots=True)
class _Gemm:
    """What cublasGemmEx is told: types of the factors and the product, and how to compute.

    `compute` is the name of a cublasComputeType_t, `scale` the dtype of alpha and beta.
    """

    factors: int
    product: int
    compute: str
    scale: str
    numpy_product: str


_GEMMS: Final[dict[str, _Gemm]] = {
    "float32": _Gemm(_R_32F, _R_32F, "CUBLAS_COMPUTE_32F", "float32", "float32"),
    "tf32": _Gemm(_R_32F, _R_32F, "CUBLAS_COMPUTE_32F_FAST_TF32", "float32", "float32"),
    "float64": _Gemm(_R_64F, _R_64F, "CUBLAS_COMPUTE_64F", "float64", "float64"),
    "float16": _Gemm(_R_16F, _R_16F, "CUBLAS_COMPUTE_32F", "float32", "float16"),
    "bfloat16": _Gemm(_R_16BF, _R_16BF, "CUBLAS_COMPUTE_32F", "float32", "uint16"),
    "int8": _Gemm(_R_8I, _R_32I, "CUBLAS_COMPUTE_32I", "int32", "int32"),
}
"""float16 and bfloat16 keep their sums in float32, as deep-learning frameworks do."""


def open_device(info: DeviceInfo) -> "CudaDevice":
    """Open the device with the index that CUDA's runtime gives it."""
    counters = open_counters(info)
    return CudaDevice(importlib.import_module("cupy"), info.device.index, counters)


class CudaDevice:
    """One card with a stream of its own; times are the device's, between two events.

    Parameters
    ----------
    cupy
        The module.
    index
        The card's ordinal.
    counters
        What NVML tells of the card; None without it.
    """

    host_memory_kinds: tuple[str, ...] = ("pageable", "pinned")
    duplex_memory_kinds: tuple[str, ...] = ("pinned",)
    """Copies from pageable memory are staged by the caller's thread, one at a time."""

    def __init__(self, cupy: Any, index: int, counters: CardCounters | None = None) -> None:
        self.cuda, self.index = cupy.cuda, index
        self._cupy, self._counters = cupy, counters
        self.cuda.Device(index).use()
        self.queue = self.cuda.Stream(non_blocking=True)

    def watch(self) -> None:
        """Forget what the card's counters said."""
        if self._counters is not None:
            self._counters.watch()

    def conditions(self) -> Conditions | None:
        """What the card's counters said since."""
        return None if self._counters is None else self._counters.conditions()

    def copy_engines(self) -> int | None:
        """How many copies the card does beside its kernels."""
        runtime = self.cuda.runtime
        return int(runtime.deviceGetAttribute(runtime.cudaDevAttrAsyncEngineCount, self.index))

    def copies(self, largest_bytes: int, memory: str) -> Copies:
        """Allocate host memory of the kind, and a buffer."""
        return HostCopies(self, largest_bytes, memory)

    def peer_copies(self, other: DeviceInfo, largest_bytes: int) -> Copies:
        """Allocate for copies to another card (upload) and from it (download)."""
        return PeerCopies(self, other.device.index, largest_bytes)

    def both_ways(self, nbytes: int, memory: str) -> Workload:
        """Copy to the card and from it at once, on two streams."""
        return both_ways(self, nbytes, memory)

    def peer_both_ways(self, other: DeviceInfo, nbytes: int) -> Workload:
        """Copy to another card and from it at once, on a stream of each."""
        return peer_both_ways(self, other.device.index, nbytes)

    def launch(self) -> Workload:
        """Start an empty kernel and wait for it, by the clock on the wall."""
        kernel = self._cupy.RawKernel(_NOTHING, "nothing")

        def once() -> None:
            kernel((1,), (1,), ())
            self.queue.synchronize()

        def run() -> int:
            with self.queue:
                elapsed = timed(once)
            if self._counters is not None:
                self._counters.look()
            return elapsed

        return Workload(1, run, lambda: True)

    def product_kernels(self, dtype: str) -> tuple[str, ...]:
        """cuBLAS, with the right factor as it is and transposed, which int8 tensor cores want."""
        return (_PLAIN, _TRANSPOSED) if dtype in _GEMMS else ()

    def product(self, dtype: str, kernel: str, n: int) -> Workload:
        """Multiply with cublasGemmEx on tensor cores where the dtype has them."""
        gemm, cublas = _GEMMS[dtype], self.cuda.cublas
        check = ProductCheck(n, dtype)
        a, b = (_as_stored(matrix, dtype) for matrix in check.operands())
        if kernel == _TRANSPOSED:
            b = np.ascontiguousarray(b.T)
        left, right = self._sent(a), self._sent(b)
        product = np.zeros((n, n), dtype=gemm.numpy_product)
        result = self._sent(product)  # zeros: a freed buffer may hold an earlier right product
        one, zero = np.ones(1, gemm.scale), np.zeros(1, gemm.scale)
        # cuBLAS is column-major: row-major c = a b is column-major c' = b' a'.
        first = cublas.CUBLAS_OP_T if kernel == _TRANSPOSED else cublas.CUBLAS_OP_N
        handle = self.cuda.get_cublas_handle()

        def multiply() -> None:
            cublas.gemmEx(
                *(handle, first, cublas.CUBLAS_OP_N, n, n, n),
                *(one.ctypes.data, right.ptr, gemm.factors, n, left.ptr, gemm.factors, n),
                *(zero.ctypes.data, result.ptr, gemm.product, n),
                *(getattr(cublas, gemm.compute), cublas.CUBLAS_GEMM_DEFAULT),
            )

        def correct() -> bool:
            self.fetch(product, result)
            return check.accepts(_as_computed(product, dtype))

        return Workload(2 * n**3, lambda: self.between_events(multiply), correct)

    def stream_kernels(self, dtype: str) -> tuple[str, ...]:
        """The driver's own copy; it moves bytes, whatever they mean."""
        return ("device memcpy",) if dtype in _GEMMS else ()

    def stream(self, dtype: str, kernel: str, nbytes: int) -> Workload:
        """Copy one buffer of the card to another."""
        host, back = np.zeros(nbytes, dtype=np.uint8), np.zeros(nbytes, dtype=np.uint8)
        number_words(host)
        src, dst = self._sent(host), self._sent(back)
        kind = self.cuda.runtime.memcpyDeviceToDevice

        def correct() -> bool:
            self.fetch(back, dst)
            return same_words(host, back)

        return Workload(2 * nbytes, lambda: self.copy(dst.ptr, src.ptr, nbytes, kind), correct)

    def alloc(self, nbytes: int) -> Any:
        """Allocate on the card."""
        with self.cuda.Device(self.index):
            return self.cuda.alloc(nbytes)

    def copy(self, dst: int, src: int, nbytes: int, kind: int) -> int:
        """Copy between addresses; gives the nanoseconds between the events around it."""
        memcpy = self.cuda.runtime.memcpyAsync
        return self.between_events(lambda: memcpy(dst, src, nbytes, kind, self.queue.ptr))

    def between_events(self, enqueue: Callable[[], object]) -> int:
        """Nanoseconds that the device takes for what `enqueue` puts on the stream, at least 1.

        Less what two events take with nothing in between.
        """
        return max(1, self._between_events(enqueue) - self._events_overhead_ns)

    @cached_property
    def _events_overhead_ns(self) -> int:
        gaps = [self._between_events(lambda: None) for _ in range(_EMPTY_PAIRS)]
        return round(statistics.median(gaps))

    def _between_events(self, enqueue: Callable[[], object]) -> int:
        start, end = self.cuda.Event(), self.cuda.Event()
        with self.queue:
            start.record(self.queue)
            enqueue()
            end.record(self.queue)
        if self._counters is not None:
            self._counters.look()  # while it runs
        end.synchronize()
        return round(float(self.cuda.get_elapsed_time(start, end)) * 1e6)

    def fetch(self, host: NDArray[Any], buffer: Any) -> None:
        """Copy a buffer into a host array."""
        kind = self.cuda.runtime.memcpyDeviceToHost
        self.copy(host.ctypes.data, buffer.ptr, host.nbytes, kind)

    def send(self, host: NDArray[Any], buffer: Any) -> None:
        """Copy a host array into a buffer."""
        kind = self.cuda.runtime.memcpyHostToDevice
        self.copy(buffer.ptr, host.ctypes.data, host.nbytes, kind)

    def _sent(self, host: NDArray[Any]) -> Any:
        buffer = self.alloc(host.nbytes)
        self.send(host, buffer)
        return buffer


def _as_stored(matrix: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Give the bits that the device wants: bfloat16 is the upper half of a float32."""
    if dtype != "bfloat16":
        return matrix
    return (matrix.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def _as_computed(product: NDArray[Any], dtype: str) -> NDArray[Any]:
    if dtype != "bfloat16":
        return product
    return (product.astype(np.uint32) << 16).view(np.float32)
