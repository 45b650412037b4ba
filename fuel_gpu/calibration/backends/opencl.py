"""Measures an OpenCL device: blocking copies, its own kernels in several vector widths."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.calibration.backends import Copies, Workload
from fuel_gpu.calibration.backends.answers import ProductCheck, change_words, number_words, padded
from fuel_gpu.calibration.clock import timed
from fuel_gpu.probes import opencl
from fuel_gpu.probes.report import DeviceInfo

_SOURCE: Final = Path(__file__).with_name("opencl_kernels.cl")
_STREAM_WIDTHS: Final = {"16 wide": 16, "4 wide": 4, "1 wide": 1}
_ROWS_AND_WIDTHS: Final = {
    "8 x 8 in registers": (8, 8),
    "4 x 16 in registers": (4, 16),
    "8 x 4 in registers": (8, 4),
    "1 x 1": (1, 1),
}
_PITCH_BYTES: Final = 64
"""Padding of a matrix's rows: at a power of two apart they would all fall into one cache set."""

_TILES: Final = "64 x 64 in local memory"
_TILE_GROUP: Final = (16, 16)
_TILE_SHARE: Final = 4
"""Elements along each axis that a work-item of product_tiles computes."""


@dataclass(frozen=True, slots=True)
class _Types:
    element: str
    sums: str
    product: str
    numpy_product: str
    flags: str = ""


_TYPES: Final[dict[str, _Types]] = {
    "float32": _Types("float", "float", "float", "float32"),
    "float64": _Types("double", "double", "double", "float64", "-DUSE_DOUBLE"),
    "float16": _Types("half", "float", "half", "float16", "-DUSE_HALF"),
    "int8": _Types("char", "int", "int", "int32"),
}


@dataclass(frozen=True, slots=True)
class _Launch:
    """A kernel ready to run: it holds its arguments, since OpenCL keeps no buffer alive for it."""

    cl: Any
    queue: Any
    kernel: Any
    items: tuple[int, ...]
    group: tuple[int, ...] | None
    arguments: tuple[Any, ...]

    def __call__(self) -> int:
        return timed(self._once)

    def _once(self) -> None:
        self.cl.enqueue_nd_range_kernel(self.queue, self.kernel, self.items, self.group)
        self.queue.finish()


def open_device(info: DeviceInfo) -> "OpenClDevice":
    """Open the device that the probe described."""
    return OpenClDevice(info)


class OpenClDevice:
    """One OpenCL device with a queue; times are wall clock, as a caller waits for them."""

    host_memory_kinds: tuple[str, ...] = ("pageable",)

    def __init__(self, info: DeviceInfo) -> None:
        import pyopencl as cl

        self._cl = cl
        self._device = opencl.find(info)
        self._context = cl.Context([self._device])
        self._queue = cl.CommandQueue(self._context)

    def copies(self, largest_bytes: int, memory: str) -> Copies:
        """Allocate a host array and a buffer."""
        return _Copies(self._cl, self._context, self._queue, largest_bytes)

    def launch(self) -> Workload:
        """Enqueue an empty kernel and wait for it."""
        kernel = self._kernel("nothing", "float32", width=1, rows=1)
        return Workload(1, self._launch(kernel, (1,), None, ()), lambda: True)

    def product_kernels(self, dtype: str) -> tuple[str, ...]:
        """Register-blocked kernels of several shapes, and one tiled in local memory."""
        if dtype not in _TYPES:
            return ()
        fits = self._device.max_work_group_size >= _TILE_GROUP[0] * _TILE_GROUP[1]
        return (*_ROWS_AND_WIDTHS, _TILES) if fits else tuple(_ROWS_AND_WIDTHS)

    def product(self, dtype: str, kernel: str, n: int) -> Workload:
        """Multiply with one of the kernels."""
        check = ProductCheck(n, dtype)
        pitch = n + _PITCH_BYTES // np.dtype(dtype).itemsize
        left, right = (self._sent(padded(matrix, pitch)) for matrix in check.operands())
        product = np.zeros((n, pitch), dtype=_TYPES[dtype].numpy_product)
        result = self._sent(product)  # zeros: a freed buffer may hold an earlier right product
        group: tuple[int, ...] | None = None
        if kernel == _TILES:
            items, group = (n // _TILE_SHARE, n // _TILE_SHARE), _TILE_GROUP
            built = self._kernel("product_tiles", dtype, width=1, rows=1)
        else:
            rows, width = _ROWS_AND_WIDTHS[kernel]
            items = (n // width, n // rows)
            built = self._kernel("product_rows", dtype, width=width, rows=rows)

        def correct() -> bool:
            self._cl.enqueue_copy(self._queue, product, result)
            return check.accepts(product[:, :n])

        arguments = (np.int32(n), np.int32(pitch), left, right, result)
        return Workload(2 * n**3, self._launch(built, items, group, arguments), correct)

    def stream_kernels(self, dtype: str) -> tuple[str, ...]:
        """Loads of 1, 4 and 16 elements."""
        return tuple(_STREAM_WIDTHS) if dtype in _TYPES else ()

    def stream(self, dtype: str, kernel: str, nbytes: int) -> Workload:
        """Copy one buffer to another."""
        width = _STREAM_WIDTHS[kernel]
        host, back = np.zeros(nbytes, dtype=np.uint8), np.zeros(nbytes, dtype=np.uint8)
        number_words(host)
        src, dst = self._sent(host), self._sent(back)
        built = self._kernel("stream", dtype, width=width, rows=1)
        items = (nbytes // np.dtype(dtype).itemsize // width,)

        def correct() -> bool:
            self._cl.enqueue_copy(self._queue, back, dst)
            return bool(np.array_equal(host, back))

        return Workload(2 * nbytes, self._launch(built, items, None, (src, dst)), correct)

    def _buffer(self, nbytes: int) -> Any:
        return self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE, nbytes)

    def _sent(self, host: NDArray[Any]) -> Any:
        buffer = self._buffer(host.nbytes)
        self._cl.enqueue_copy(self._queue, buffer, host)
        return buffer

    def _kernel(self, name: str, dtype: str, *, width: int, rows: int) -> Any:
        types = _TYPES[dtype]
        options = (
            f"-DREAL={types.element} -DACC={types.sums} -DOUT={types.product} "
            f"-DVEC={width} -DROWS={rows} -cl-mad-enable {types.flags}"
        )
        program = self._cl.Program(self._context, _SOURCE.read_text()).build(options.split())
        return self._cl.Kernel(program, name)

    def _launch(
        self,
        kernel: Any,
        items: tuple[int, ...],
        group: tuple[int, ...] | None,
        arguments: tuple[Any, ...],
    ) -> _Launch:
        kernel.set_args(*arguments)
        return _Launch(self._cl, self._queue, kernel, items, group, arguments)


class _Copies:
    """Blocking copies between a NumPy array and a buffer."""

    memory: str = "pageable"

    def __init__(self, cl: Any, context: Any, queue: Any, largest_bytes: int) -> None:
        self._cl, self._queue = cl, queue
        self._host = np.zeros(largest_bytes, dtype=np.uint8)
        self._back = np.zeros(largest_bytes, dtype=np.uint8)
        number_words(self._host)
        self._buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, largest_bytes)

    def upload(self, nbytes: int) -> int:
        part = self._host[:nbytes]
        return timed(lambda: self._cl.enqueue_copy(self._queue, self._buffer, part))

    def download(self, nbytes: int) -> int:
        part = self._back[:nbytes]
        return timed(lambda: self._cl.enqueue_copy(self._queue, part, self._buffer))

    def arrived(self, nbytes: int) -> bool:
        change_words(self._host[:nbytes])
        self.upload(nbytes)
        self.download(nbytes)
        return bool(np.array_equal(self._host[:nbytes], self._back[:nbytes]))

    def release(self) -> None:
        self._buffer.release()
