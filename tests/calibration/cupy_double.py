"""A strict double of the part of CuPy that measuring uses: it computes, keeps time, and objects.

Memory is real, so that copies and products can be checked; time is simulated per stream. What CUDA
would refuse or leave undefined raises: a copy outside an allocation, of the wrong kind, on a
stream of another device, an event read before it happened, a product in types that cuBLAS lacks.
"""

import ctypes
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

LATENCY_NS = 2_000
EVENT_NS = 1_500
"""What recording an event costs the stream."""

BYTES_PER_NS = {"pageable": 4.0, "pinned": 20.0, "device": 500.0, "peer": 100.0, "staged": 8.0}
FLOPS_PER_NS = 1_000.0

H2D, D2H, D2D = 1, 2, 3

# cublasGemmEx's table of supported types: compute type -> (factors, product, alpha and beta).
_SUPPORTED = {
    68: {(0, 0, "f"), (2, 2, "f"), (14, 14, "f"), (2, 0, "f"), (14, 0, "f"), (3, 0, "f")},
    77: {(0, 0, "f")},
    70: {(1, 1, "d")},
    72: {(3, 10, "i")},
}
_NUMPY = {0: np.float32, 1: np.float64, 2: np.float16, 3: np.int8, 10: np.int32, 14: np.uint16}


class CUDARuntimeError(RuntimeError):
    """What CUDA's runtime raises."""


def _ints(**named: object) -> None:
    for name, value in named.items():
        if type(value) is not int:
            raise TypeError(f"{name} must be an int, not {type(value).__name__}")


class CupyDouble:
    """Stands in for the module `cupy` on a machine with `devices` cards.

    Parameters
    ----------
    devices
        How many cards there are.
    peers
        Whether the cards reach each other's memory.
    copy_engines
        How many copies with the host a card does at once, all streams together.
    lose_copies, spoil_products
        Faults: copies to the card do nothing; products are off by one.
    """

    def __init__(
        self,
        devices: int = 1,
        *,
        peers: bool = True,
        copy_engines: int = 2,
        lose_copies: bool = False,
        spoil_products: bool = False,
    ) -> None:
        self.devices, self.peers, self.copy_engines = devices, peers, copy_engines
        self.engines_free_ns = [0.0] * copy_engines
        self.lose_copies, self.spoil_products = lose_copies, spoil_products
        self.current_device = 0
        self.streams: list[Stream] = []
        self.live: dict[int, tuple[int, int]] = {}  # address: (bytes, device)
        self.pinned: dict[int, int] = {}
        self.enabled: set[tuple[int, int]] = set()
        self.current: list[Stream] = []
        self.cuda = types.SimpleNamespace(
            Device=lambda index: Device(self, index),
            Stream=lambda **options: Stream(self, **options),
            Event=lambda: Event(self),
            alloc=self._alloc,
            alloc_pinned_memory=self._alloc_pinned,
            get_elapsed_time=_elapsed_ms,
            get_cublas_handle=lambda: 4711,
            runtime=types.SimpleNamespace(
                memcpyHostToDevice=H2D,
                memcpyDeviceToHost=D2H,
                memcpyDeviceToDevice=D2D,
                memcpyAsync=self._memcpy_async,
                memcpyPeerAsync=self._memcpy_peer_async,
                cudaDevAttrAsyncEngineCount=40,
                deviceGetAttribute=lambda attribute, index: {40: self.copy_engines}[attribute],
                deviceCanAccessPeer=self._can_access_peer,
                deviceEnablePeerAccess=self._enable_peer_access,
            ),
            cublas=types.SimpleNamespace(
                CUBLAS_OP_N=0,
                CUBLAS_OP_T=1,
                CUBLAS_COMPUTE_32F=68,
                CUBLAS_COMPUTE_32F_FAST_TF32=77,
                CUBLAS_COMPUTE_64F=70,
                CUBLAS_COMPUTE_32I=72,
                CUBLAS_GEMM_DEFAULT=-1,
                gemmEx=self._gemm_ex,
            ),
        )

    def RawKernel(self, code: str, name: str) -> Callable[..., None]:  # noqa: N802  CuPy's name
        """Compile a kernel: its source must define it."""
        if f"{name}(" not in code or 'extern "C"' not in code:
            raise CUDARuntimeError(f"{name} is not in the source")

        def launch(grid: tuple[int, ...], block: tuple[int, ...], args: tuple[object, ...]) -> None:
            assert all(isinstance(part, tuple) for part in (grid, block, args))
            self.stream().spend(LATENCY_NS)

        return launch

    def stream(self) -> "Stream":
        """Give the current stream; nothing is enqueued on the null stream by mistake."""
        if not self.current:
            raise CUDARuntimeError("work was enqueued outside the stream's context")
        return self.current[-1]

    def _alloc(self, nbytes: int) -> "MemoryPointer":
        _ints(nbytes=nbytes)
        return MemoryPointer(self, nbytes)

    def _alloc_pinned(self, nbytes: int) -> Any:
        memory = (ctypes.c_uint8 * (nbytes + 512))()  # a pool rounds up
        self.pinned[ctypes.addressof(memory)] = nbytes
        return memory

    def _device_of(self, address: int, nbytes: int) -> int | None:
        for start, (size, device) in self.live.items():
            if start <= address < start + size:
                if address + nbytes > start + size:
                    raise CUDARuntimeError("cudaErrorInvalidValue: the copy leaves its allocation")
                return device
        return None

    def _memcpy_async(self, dst: int, src: int, size: int, kind: int, stream: int) -> None:
        _ints(dst=dst, src=src, size=size, kind=kind, stream=stream)
        to, back = self._device_of(dst, size), self._device_of(src, size)
        if {H2D: (True, False), D2H: (False, True), D2D: (True, True)}[kind] != (
            to is not None,
            back is not None,
        ):
            raise CUDARuntimeError("cudaErrorInvalidMemcpyDirection")
        on = self._stream_at(stream)
        if kind == D2D:
            memory, moved = "device", 2 * size
        else:
            host = src if kind == H2D else dst
            memory = "pinned" if self._is_pinned(host, size) else "pageable"
            moved = size
        if not (self.lose_copies and kind == H2D):
            ctypes.memmove(dst, src, size)
        ns = LATENCY_NS + moved / BYTES_PER_NS[memory]
        if kind == D2D:
            on.spend(ns)
        else:
            self._copy_by_engine(on, ns)

    def _copy_by_engine(self, stream: "Stream", ns: float) -> None:
        """Let the engine that is free first do it, once the stream has come so far."""
        engine = min(range(self.copy_engines), key=self.engines_free_ns.__getitem__)
        stream.now_ns = max(stream.now_ns, self.engines_free_ns[engine])
        stream.spend(ns)
        self.engines_free_ns[engine] = stream.now_ns

    def _memcpy_peer_async(
        self, dst: int, dst_device: int, src: int, src_device: int, size: int, stream: int
    ) -> None:
        _ints(dst=dst, src=src, size=size, stream=stream)
        ends = (self._device_of(dst, size), self._device_of(src, size))
        if ends != (dst_device, src_device):
            raise CUDARuntimeError("cudaErrorInvalidDevice")
        both = {(dst_device, src_device), (src_device, dst_device)} <= self.enabled
        ctypes.memmove(dst, src, size)
        self._stream_at(stream).spend(
            LATENCY_NS + size / BYTES_PER_NS["peer" if both else "staged"]
        )

    def _can_access_peer(self, device: int, peer: int) -> int:
        _ints(device=device, peer=peer)
        if device == peer:
            raise CUDARuntimeError("cudaErrorInvalidDevice")
        return int(self.peers)

    def _enable_peer_access(self, peer: int) -> None:
        pair = (self.current_device, peer)
        if pair in self.enabled:
            raise CUDARuntimeError("cudaErrorPeerAccessAlreadyEnabled")
        self.enabled.add(pair)

    def _stream_at(self, pointer: int) -> "Stream":
        found = next((s for s in self.streams if s.ptr == pointer), None)
        if found is None:
            raise CUDARuntimeError("cudaErrorInvalidResourceHandle")
        return found

    def _is_pinned(self, address: int, nbytes: int) -> bool:
        return any(s <= address and address + nbytes <= s + n for s, n in self.pinned.items())

    def _gemm_ex(self, *arguments: int) -> None:
        for position, value in enumerate(arguments):
            _ints(**{f"argument_{position}": value})
        handle, trans_a, trans_b, m, n, k, alpha, *rest = arguments
        a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, compute, _algorithm = rest
        assert handle == 4711
        assert a_type == b_type
        scale = next((s for f, p, s in _SUPPORTED[compute] if (f, p) == (a_type, c_type)), None)
        if scale is None:
            raise CUDARuntimeError("CUBLAS_STATUS_NOT_SUPPORTED")
        if a_type == 3 and (lda % 4 or ldb % 4):
            raise CUDARuntimeError("CUBLAS_STATUS_NOT_SUPPORTED: int8 wants multiples of 4")
        assert (_scalar(alpha, scale), _scalar(beta, scale)) == (1, 0)
        left = self._column_major(a, a_type, lda, (k, m) if trans_a else (m, k))
        right = self._column_major(b, b_type, ldb, (n, k) if trans_b else (k, n))
        product = (left.T if trans_a else left) @ (right.T if trans_b else right)
        if self.spoil_products:
            product = product + 1
        target = self._view(c, c_type, ldc * n).reshape(n, ldc).T[:m]
        target[:] = _from_double(product, c_type)
        self.stream().spend(LATENCY_NS + 2 * m * n * k / FLOPS_PER_NS)

    def _column_major(
        self, address: int, kind: int, leading: int, shape: tuple[int, int]
    ) -> NDArray[np.float64]:
        stored = self._view(address, kind, leading * shape[1]).reshape(shape[1], leading).T
        return _to_double(stored[: shape[0]], kind)

    def _view(self, address: int, kind: int, count: int) -> NDArray[Any]:
        dtype = np.dtype(_NUMPY[kind])
        if self._device_of(address, count * dtype.itemsize) is None:
            raise CUDARuntimeError("cudaErrorIllegalAddress")
        raw = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
        viewed: NDArray[Any] = np.frombuffer(memoryview(raw), dtype=dtype)
        return viewed


class Device:
    """A card; as a context it is current inside and the earlier one again after."""

    def __init__(self, double: CupyDouble, index: int) -> None:
        if not 0 <= index < double.devices:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        self._double, self._index = double, index
        self._before: list[int] = []

    def use(self) -> None:
        self._double.current_device = self._index

    def __enter__(self) -> "Device":
        self._before.append(self._double.current_device)
        self.use()
        return self

    def __exit__(self, *error: object) -> None:
        self._double.current_device = self._before.pop()


class Stream:
    """A queue of work with a clock of its own."""

    def __init__(self, double: CupyDouble, *, non_blocking: bool) -> None:
        assert non_blocking
        self._double = double
        self.device = double.current_device
        self.now_ns = 0.0
        self.ptr = 1000 + len(double.streams)
        self.synchronized_ns = 0.0
        double.streams.append(self)

    def spend(self, ns: float) -> None:
        if self._double.current_device != self.device:
            raise CUDARuntimeError("cudaErrorInvalidResourceHandle: a stream of another device")
        self.now_ns += ns

    def synchronize(self) -> None:
        self.synchronized_ns = self.now_ns

    def wait_event(self, event: "Event") -> None:
        event.recorded()
        self.now_ns = max(self.now_ns, event.at_ns)

    def __enter__(self) -> "Stream":
        self._double.current.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._double.current.pop()


class Event:
    """A point in a stream's time, to be waited for before it is read."""

    def __init__(self, double: CupyDouble) -> None:
        self._stream: Stream | None = None
        self.device = double.current_device
        self.at_ns = 0.0

    def record(self, stream: Stream) -> None:
        if stream.device != self.device:
            raise CUDARuntimeError("cudaErrorInvalidResourceHandle: a stream of another device")
        stream.spend(EVENT_NS)
        self._stream, self.at_ns = stream, stream.now_ns

    def recorded(self) -> Stream:
        if self._stream is None:
            raise CUDARuntimeError("cudaErrorInvalidResourceHandle: it was never recorded")
        return self._stream

    def synchronize(self) -> None:
        stream = self.recorded()
        stream.synchronized_ns = max(stream.synchronized_ns, self.at_ns)

    @property
    def happened(self) -> bool:
        return self._stream is not None and self.at_ns <= self._stream.synchronized_ns


class MemoryPointer:
    """Device memory, freed when nobody holds it."""

    def __init__(self, double: CupyDouble, nbytes: int) -> None:
        self._memory = np.full(nbytes, 0xAB, dtype=np.uint8)
        self.ptr = int(self._memory.ctypes.data)
        double.live[self.ptr] = (nbytes, double.current_device)
        weakref.finalize(self, double.live.pop, self.ptr, None)


def _elapsed_ms(start: Event, end: Event) -> float:
    if start.device != end.device:
        raise CUDARuntimeError("cudaErrorInvalidResourceHandle: events of two devices")
    if not (start.happened and end.happened):
        raise CUDARuntimeError("cudaErrorNotReady")
    return (end.at_ns - start.at_ns) / 1e6


def _scalar(address: int, kind: str) -> float:
    if kind == "f":
        return ctypes.c_float.from_address(address).value
    if kind == "d":
        return ctypes.c_double.from_address(address).value
    return ctypes.c_int32.from_address(address).value


def _to_double(stored: NDArray[Any], kind: int) -> NDArray[np.float64]:
    if kind == 14:  # bfloat16
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return stored.astype(np.float64)


def _from_double(product: NDArray[np.float64], kind: int) -> NDArray[Any]:
    if kind == 14:  # to nearest, by adding half a unit of the upper half
        bits = product.astype(np.float32).view(np.uint32)
        return ((bits + 0x8000) >> 16).astype(np.uint16)
    return product.astype(_NUMPY[kind])
