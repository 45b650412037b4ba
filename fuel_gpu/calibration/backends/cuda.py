"""Measures a CUDA device through CuPy: copies by CUDA events, products by cuBLAS."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.calibration.backends import Copies, Workload
from fuel_gpu.calibration.backends.answers import ProductCheck, change_words, number_words
from fuel_gpu.calibration.clock import timed
from fuel_gpu.probes.report import DeviceInfo

# cudaDataType of CUDA's library_types.h
_R_32F, _R_64F, _R_16F, _R_8I, _R_32I, _R_16BF = 0, 1, 2, 3, 10, 14

_PLAIN: Final = "cuBLAS"
_TRANSPOSED: Final = "cuBLAS, right factor transposed"
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
    return CudaDevice(importlib.import_module("cupy"), info.device.index)


class CudaDevice:
    """One card with a stream of its own; times are the device's, between two events."""

    host_memory_kinds: tuple[str, ...] = ("pageable", "pinned")

    def __init__(self, cupy: Any, index: int) -> None:
        self._cupy, self._cuda = cupy, cupy.cuda
        self._index = index
        self._cuda.Device(index).use()
        self._stream = self._cuda.Stream(non_blocking=True)

    def copies(self, largest_bytes: int, memory: str) -> Copies:
        """Allocate host memory of the kind, and a buffer."""
        return _Copies(self, largest_bytes, memory)

    def peer_copies(self, other: DeviceInfo, largest_bytes: int) -> Copies:
        """Allocate for copies to another card (upload) and from it (download)."""
        return _PeerCopies(self, other.device.index, largest_bytes)

    def launch(self) -> Workload:
        """Start an empty kernel and wait for it, by the clock on the wall."""
        kernel = self._cupy.RawKernel(_NOTHING, "nothing")

        def once() -> None:
            kernel((1,), (1,), ())
            self._stream.synchronize()

        def run() -> int:
            with self._stream:
                return timed(once)

        return Workload(1, run, lambda: True)

    def product_kernels(self, dtype: str) -> tuple[str, ...]:
        """cuBLAS, with the right factor as it is and transposed, which int8 tensor cores want."""
        return (_PLAIN, _TRANSPOSED) if dtype in _GEMMS else ()

    def product(self, dtype: str, kernel: str, n: int) -> Workload:
        """Multiply with cublasGemmEx on tensor cores where the dtype has them."""
        gemm, cublas = _GEMMS[dtype], self._cuda.cublas
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
        handle = self._cuda.get_cublas_handle()

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
        kind = self._cuda.runtime.memcpyDeviceToDevice

        def correct() -> bool:
            self.fetch(back, dst)
            return bool(np.array_equal(host, back))

        return Workload(2 * nbytes, lambda: self.copy(dst.ptr, src.ptr, nbytes, kind), correct)

    def alloc(self, nbytes: int) -> Any:
        """Allocate on the card."""
        with self._cuda.Device(self._index):
            return self._cuda.alloc(nbytes)

    def copy(self, dst: int, src: int, nbytes: int, kind: int) -> int:
        """Copy between addresses; gives the nanoseconds between the events around it."""
        memcpy = self._cuda.runtime.memcpyAsync
        return self.between_events(lambda: memcpy(dst, src, nbytes, kind, self._stream.ptr))

    def between_events(self, enqueue: Callable[[], object]) -> int:
        """Nanoseconds that the device takes for what `enqueue` puts on the stream, at least 1."""
        start, end = self._cuda.Event(), self._cuda.Event()
        with self._stream:
            start.record(self._stream)
            enqueue()
            end.record(self._stream)
        end.synchronize()
        milliseconds = float(self._cuda.get_elapsed_time(start, end))
        return max(1, round(milliseconds * 1e6))

    def fetch(self, host: NDArray[Any], buffer: Any) -> None:
        """Copy a buffer into a host array."""
        kind = self._cuda.runtime.memcpyDeviceToHost
        self.copy(host.ctypes.data, buffer.ptr, host.nbytes, kind)

    def send(self, host: NDArray[Any], buffer: Any) -> None:
        """Copy a host array into a buffer."""
        kind = self._cuda.runtime.memcpyHostToDevice
        self.copy(buffer.ptr, host.ctypes.data, host.nbytes, kind)

    def _sent(self, host: NDArray[Any]) -> Any:
        buffer = self.alloc(host.nbytes)
        self.send(host, buffer)
        return buffer


class _Copies:
    """Copies between host memory of one kind and a buffer on the card."""

    def __init__(self, device: CudaDevice, largest_bytes: int, memory: str) -> None:
        self._device = device
        self._runtime = device._cuda.runtime
        self.memory = memory
        self._host = _host_array(device._cuda, largest_bytes, memory)
        self._back = _host_array(device._cuda, largest_bytes, memory)
        number_words(self._host)
        self._buffer = device.alloc(largest_bytes)

    def upload(self, nbytes: int) -> int:
        kind = self._runtime.memcpyHostToDevice
        return self._device.copy(self._buffer.ptr, self._host.ctypes.data, nbytes, kind)

    def download(self, nbytes: int) -> int:
        kind = self._runtime.memcpyDeviceToHost
        return self._device.copy(self._back.ctypes.data, self._buffer.ptr, nbytes, kind)

    def arrived(self, nbytes: int) -> bool:
        change_words(self._host[:nbytes])
        self.upload(nbytes)
        self.download(nbytes)
        return bool(np.array_equal(self._host[:nbytes], self._back[:nbytes]))

    def release(self) -> None:
        del self._buffer, self._host, self._back


class _PeerCopies:
    """Copies between two cards: directly where the driver can, else staged by it."""

    def __init__(self, device: CudaDevice, other: int, largest_bytes: int) -> None:
        self._device, self._cuda = device, device._cuda
        self._here, self._there = device._index, other
        self.memory = "peer" if self._enable() else "staged"
        self._near = device.alloc(largest_bytes)
        with self._cuda.Device(other):
            self._far = self._cuda.alloc(largest_bytes)
        self._host = np.zeros(largest_bytes, dtype=np.uint8)
        self._back = np.zeros(largest_bytes, dtype=np.uint8)
        number_words(self._host)

    def upload(self, nbytes: int) -> int:
        return self._copy(self._far.ptr, self._there, self._near.ptr, self._here, nbytes)

    def download(self, nbytes: int) -> int:
        return self._copy(self._near.ptr, self._here, self._far.ptr, self._there, nbytes)

    def arrived(self, nbytes: int) -> bool:
        """Send bytes here, there, and, after overwriting them here, back."""
        host, back = self._host[:nbytes], self._back[:nbytes]
        change_words(host)
        self._device.send(host, self._near)
        self.upload(nbytes)
        back[:] = 0
        self._device.send(back, self._near)
        self.download(nbytes)
        self._device.fetch(back, self._near)
        return bool(np.array_equal(host, back))

    def release(self) -> None:
        del self._near, self._far

    def _copy(self, dst: int, dst_device: int, src: int, src_device: int, nbytes: int) -> int:
        memcpy = self._cuda.runtime.memcpyPeerAsync
        stream = self._device._stream.ptr
        return self._device.between_events(
            lambda: memcpy(dst, dst_device, src, src_device, nbytes, stream)
        )

    def _enable(self) -> bool:
        runtime = self._cuda.runtime
        for here, there in ((self._here, self._there), (self._there, self._here)):
            if not runtime.deviceCanAccessPeer(here, there):
                return False
            with self._cuda.Device(here):
                runtime.deviceEnablePeerAccess(there)
        return True


def _host_array(cuda: Any, nbytes: int, memory: str) -> NDArray[np.uint8]:
    if memory == "pageable":
        return np.zeros(nbytes, dtype=np.uint8)
    pinned = cuda.alloc_pinned_memory(nbytes)
    return np.frombuffer(pinned, dtype=np.uint8, count=nbytes)


def _as_stored(matrix: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Give the bits that the device wants: bfloat16 is the upper half of a float32."""
    if dtype != "bfloat16":
        return matrix
    return (matrix.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def _as_computed(product: NDArray[Any], dtype: str) -> NDArray[Any]:
    if dtype != "bfloat16":
        return product
    return (product.astype(np.uint32) << 16).view(np.float32)
