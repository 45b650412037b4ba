"""Measures an OpenCL device: copies by two ways, its own kernels in several vector widths."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.calibration.backends import Copies, Workload
from fuel_gpu.calibration.backends.answers import ProductCheck, number_words, padded, same_words
from fuel_gpu.calibration.backends.host_arrays import HostArrays
from fuel_gpu.calibration.backends.opencl_copies import EnqueuedCopies, MappedCopies
from fuel_gpu.calibration.clock import keeps_time, timed
from fuel_gpu.calibration.effort import MIB
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

_EVENTS_ARE_WRONG: Final = "wall clock as events are wrong"
_CLOCK_TRIALS: Final = 5
_CLOCK_TRIAL_BYTES: Final = 4 * MIB
_CLOCK_TRIAL_NS: Final = 5_000_000
"""Both clocks time work that takes this long: next to it, enqueuing and waiting are little."""

_CLOCK_TRIAL_LAUNCHES: Final = 2**12


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

    def on_the_wall(self, times: int = 1) -> int:
        """Run it so often; gives the nanoseconds that a caller waits."""
        return timed(lambda: self._run(times))

    def by_events(self) -> int:
        """Run it once; gives the nanoseconds that the driver's profile says it took."""
        return self.by_both()[0]

    def by_both(self, times: int = 1) -> tuple[int, int]:
        """Run it so often; gives nanoseconds from first start to last end, and on the wall.

        Raises
        ------
        RuntimeError
            If the end is not after the start.
        """
        events: list[Any] = []
        wall_ns = timed(lambda: events.extend(self._run(times)))
        start, end = profiled_ns(events)
        if end <= start:
            raise RuntimeError(f"an event ended at {end} ns, having begun at {start} ns")
        return end - start, wall_ns

    def _run(self, times: int) -> list[Any]:
        events = [
            self.cl.enqueue_nd_range_kernel(self.queue, self.kernel, self.items, self.group)
            for _ in range(times)
        ]
        self.queue.finish()
        return events


def profiled_ns(events: list[Any]) -> tuple[int, int]:
    """Give when the first of these events started and the last ended, by the driver's profile."""
    return int(events[0].profile.start), int(events[-1].profile.end)


def open_device(info: DeviceInfo) -> "OpenClDevice":
    """Open the device that the probe described."""
    return OpenClDevice(info)


class OpenClDevice:
    """One OpenCL device with a queue.

    Copies and launches are timed on the wall, as a caller waits for them; kernels by their events'
    profiles where these agree with the wall. A kernel's name says which.
    """

    host_memory_kinds: tuple[str, ...] = ("pageable", "mapped")

    def __init__(self, info: DeviceInfo) -> None:
        import pyopencl as cl

        self._cl = cl
        self._device = opencl.find(info)
        self._context = cl.Context([self._device])
        self._queue = cl.CommandQueue(self._context)
        self._arrays = HostArrays()
        self._streamed: tuple[Any, Any] | None = None

    def copies(self, largest_bytes: int, memory: str) -> Copies:
        """Allocate host arrays, and a buffer of the device or one that is mapped."""
        kind = MappedCopies if memory == "mapped" else EnqueuedCopies
        arrays = self._arrays.pair(largest_bytes)
        return kind(self._cl, self._context, self._queue, arrays)

    def launch(self) -> Workload:
        """Enqueue an empty kernel and wait for it."""
        kernel = self._kernel("nothing", "float32", width=1, rows=1)
        launch = self._launch(self._queue, kernel, (1,), None, ())
        return Workload(1, launch.on_the_wall, lambda: True)

    def product_kernels(self, dtype: str) -> tuple[str, ...]:
        """Register-blocked kernels of several shapes, and one tiled in local memory."""
        if dtype not in _TYPES:
            return ()
        fits = self._device.max_work_group_size >= _TILE_GROUP[0] * _TILE_GROUP[1]
        names = (*_ROWS_AND_WIDTHS, _TILES) if fits else tuple(_ROWS_AND_WIDTHS)
        return self._with_clock(names)

    def product(self, dtype: str, kernel: str, n: int) -> Workload:
        """Multiply with one of the kernels."""
        check = ProductCheck(n, dtype)
        pitch = n + _PITCH_BYTES // np.dtype(dtype).itemsize
        left, right = (self._sent(padded(matrix, pitch)) for matrix in check.operands())
        product = np.zeros((n, pitch), dtype=_TYPES[dtype].numpy_product)
        result = self._sent(product)  # zeros: a freed buffer may hold an earlier right product
        group: tuple[int, ...] | None = None
        if self._short(kernel) == _TILES:
            items, group = (n // _TILE_SHARE, n // _TILE_SHARE), _TILE_GROUP
            built = self._kernel("product_tiles", dtype, width=1, rows=1)
        else:
            rows, width = _ROWS_AND_WIDTHS[self._short(kernel)]
            items = (n // width, n // rows)
            built = self._kernel("product_rows", dtype, width=width, rows=rows)

        def correct() -> bool:
            self._cl.enqueue_copy(self._queue, product, result)
            return check.accepts(product[:, :n])

        arguments = (np.int32(n), np.int32(pitch), left, right, result)
        return self._workload(2 * n**3, built, items, group, arguments, correct)

    def stream_kernels(self, dtype: str) -> tuple[str, ...]:
        """Loads of 1, 4 and 16 elements."""
        return self._with_clock(tuple(_STREAM_WIDTHS)) if dtype in _TYPES else ()

    def stream(self, dtype: str, kernel: str, nbytes: int) -> Workload:
        """Copy one buffer to another."""
        width = _STREAM_WIDTHS[self._short(kernel)]
        host, back = self._arrays.pair(nbytes)
        number_words(host)
        back.fill(0)
        if self._streamed is None or self._streamed[0].size != nbytes:
            self._streamed = self._buffer(nbytes), self._buffer(nbytes)
        src, dst = self._streamed
        self._cl.enqueue_copy(self._queue, src, host)
        self._cl.enqueue_copy(self._queue, dst, back)  # forget what an earlier kernel copied
        built = self._kernel("stream", dtype, width=width, rows=1)
        items = (nbytes // np.dtype(dtype).itemsize // width,)

        def correct() -> bool:
            self._cl.enqueue_copy(self._queue, back, dst)
            return same_words(host, back)

        return self._workload(2 * nbytes, built, items, None, (src, dst), correct)

    @cached_property
    def _clock(self) -> tuple[str, Any]:
        """What kernels are timed by: its name, and a queue that profiles if events keep time."""
        profiling = self._cl.command_queue_properties.PROFILING_ENABLE
        try:
            queue = self._cl.CommandQueue(self._context, properties=profiling)
            launch = self._trial(queue)
            launch.on_the_wall()  # compiles
        except self._cl.Error:
            return "wall clock", None
        times = 1
        while times < _CLOCK_TRIAL_LAUNCHES and launch.on_the_wall(times) < _CLOCK_TRIAL_NS:
            times *= 2
        try:
            trials = [launch.by_both(times) for _ in range(_CLOCK_TRIALS)]
        except RuntimeError:  # they stand still, or run backwards
            return _EVENTS_ARE_WRONG, None
        if keeps_time([event for event, _ in trials], [wall for _, wall in trials]):
            return "events", queue
        return _EVENTS_ARE_WRONG, None

    def _trial(self, queue: Any) -> _Launch:
        buffers = (self._buffer(_CLOCK_TRIAL_BYTES), self._buffer(_CLOCK_TRIAL_BYTES))
        built = self._kernel("stream", "float32", width=1, rows=1)
        return self._launch(queue, built, (_CLOCK_TRIAL_BYTES // 4,), None, buffers)

    def _with_clock(self, kernels: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{kernel}, {self._clock[0]}" for kernel in kernels)

    def _short(self, kernel: str) -> str:
        return kernel.removesuffix(f", {self._clock[0]}")

    def _workload(
        self,
        amount: int,
        kernel: Any,
        items: tuple[int, ...],
        group: tuple[int, ...] | None,
        arguments: tuple[Any, ...],
        correct: Callable[[], bool],
    ) -> Workload:
        _, profiled = self._clock
        launch = self._launch(profiled or self._queue, kernel, items, group, arguments)
        return Workload(amount, launch.by_events if profiled else launch.on_the_wall, correct)

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
        queue: Any,
        kernel: Any,
        items: tuple[int, ...],
        group: tuple[int, ...] | None,
        arguments: tuple[Any, ...],
    ) -> _Launch:
        kernel.set_args(*arguments)
        return _Launch(self._cl, queue, kernel, items, group, arguments)
