"""Measures what wgpu drives (Vulkan, Metal, Direct3D 12): copies by two ways, kernels in WGSL."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.calibration.backends import Copies, Workload
from fuel_gpu.calibration.backends.answers import ProductCheck, padded, repeat, same_words
from fuel_gpu.calibration.backends.host_arrays import HostArrays
from fuel_gpu.calibration.backends.vulkan_clock import Timestamps
from fuel_gpu.calibration.backends.vulkan_copies import VulkanCopies
from fuel_gpu.calibration.backends.vulkan_queue import VulkanQueue
from fuel_gpu.calibration.clock import keeps_time, timed
from fuel_gpu.calibration.effort import MIB
from fuel_gpu.probes import vulkan
from fuel_gpu.probes.report import DeviceInfo

_SOURCE: Final = Path(__file__).with_name("vulkan_kernels.wgsl")

_OPTIONAL_FEATURES: Final = ("shader-f16", "shader-f64", "timestamp-query")
_MAX_BINDING: Final = "max-storage-buffer-binding-size"
_MAX_INVOCATIONS: Final = "max-compute-invocations-per-workgroup"
_MAX_SHARED: Final = "max-compute-workgroup-storage-size"
_MAX_GROUPS: Final = "max-compute-workgroups-per-dimension"

_PITCH_BYTES: Final = 64
"""Padding of a matrix's rows: at a power of two apart they would all fall into one cache set."""

_ORDINARY: Final = np.arange(1, 2040, dtype=np.float16)
"""Numbers that no driver flushes to zero, nor what the bytes of several of them mean as float32 or
float64; 2039 is prime, so that what lands at a wrong place shows."""

_TIMESTAMPS_ARE_WRONG: Final = "wall clock as timestamps are wrong"
_CLOCK_TRIALS: Final = 5
_CLOCK_TRIAL_BYTES: Final = 4 * MIB
_CLOCK_TRIAL_NS: Final = 5_000_000
"""Both clocks time work that takes this long: next to it, submitting and waiting are little."""


@dataclass(frozen=True, slots=True)
class _Types:
    element: str
    sums: str
    enable: str = ""
    feature: str = ""


_TYPES: Final[dict[str, _Types]] = {
    "float32": _Types("f32", "f32"),
    "float16": _Types("f16", "f32", "enable f16;", "shader-f16"),
    "float64": _Types("f64", "f64", "", "shader-f64"),
}
"""float16 keeps its sums in float32, as on other backends."""


@dataclass(frozen=True, slots=True)
class _Product:
    """A kernel of the source, the elements that one of its groups computes, and its size.

    `tiles` is how many vectors of four sums it keeps in workgroup memory.
    """

    entry: str
    rows: int
    columns: int
    invocations: int
    tiles: int = 0


_PRODUCTS: Final = {
    "8 x 4 in registers": _Product("product_rows", 8, 128, 32),
    "64 x 64 in workgroup memory": _Product("product_tile_64", 64, 64, 256, 512),
    "128 x 128 in workgroup memory": _Product("product_tile_128", 128, 128, 256, 512),
}


@dataclass(frozen=True, slots=True)
class _Stream:
    """A kernel of the source, and the elements that one of its groups copies."""

    entry: str
    elements: int


_STREAMS: Final = {
    "4 wide": _Stream("stream_4", 1024),
    "4 times 4 wide": _Stream("stream_4_by_4", 4096),
    "1 wide": _Stream("stream_1", 256),
}


@dataclass(frozen=True, slots=True)
class _Dispatches:
    """Runs of a kernel in one pass: for each, what it is bound to and its groups along x and y."""

    pipeline: Any
    each: tuple[tuple[Any, tuple[int, int]], ...]

    def encode(self, device: Any, timestamps: Timestamps | None = None) -> Any:
        """Give the commands, which can be submitted once."""
        encoder = device.create_command_encoder()
        writes = timestamps.writes if timestamps else None
        work = encoder.begin_compute_pass(timestamp_writes=writes)
        work.set_pipeline(self.pipeline)
        for bound, groups in self.each:
            if bound is not None:
                work.set_bind_group(0, bound)
            work.dispatch_workgroups(*groups)
        work.end()
        if timestamps:
            timestamps.resolve(encoder)
        return encoder.finish()


def open_device(info: DeviceInfo) -> "VulkanDevice":
    """Open the adapter that the probe described."""
    return VulkanDevice(importlib.import_module("wgpu"), vulkan.find(info))


class VulkanDevice:
    """One adapter with its queue.

    Copies and launches are timed on the wall, as a caller waits for them; kernels by the adapter's
    timestamps where it has them and they agree with the wall. A kernel's name says which.
    """

    host_memory_kinds: tuple[str, ...] = ("pageable", "mapped")

    def __init__(self, wgpu: Any, adapter: Any) -> None:
        self.features = [name for name in _OPTIONAL_FEATURES if name in adapter.features]
        self._device = adapter.request_device_sync(required_features=self.features)
        self._queue = VulkanQueue(wgpu, self._device)
        self._limits = self._device.limits
        self._arrays = HostArrays()
        self._modules: dict[str, Any] = {}
        self._streamed: tuple[Any, Any] | None = None

    def copies(self, largest_bytes: int, memory: str) -> Copies:
        """Allocate arrays, a buffer of the adapter, and buffers to be mapped."""
        return VulkanCopies(self._queue, self._arrays.pair(largest_bytes), memory)

    def launch(self) -> Workload:
        """Submit an empty kernel and wait for it."""
        kernel = _Dispatches(self._pipeline("nothing", "float32"), ((None, (1, 1)),))
        return Workload(1, lambda: self._on_the_wall(kernel), lambda: True)

    def product_kernels(self, dtype: str) -> tuple[str, ...]:
        """Blocks in registers, and tiles of two sizes in workgroup memory."""
        if not self._computes(dtype):
            return ()
        sums_bytes = 8 if _TYPES[dtype].sums == "f64" else 4
        return tuple(
            self._named(name)
            for name, kernel in _PRODUCTS.items()
            if kernel.invocations <= self._limits[_MAX_INVOCATIONS]
            and kernel.tiles * 4 * sums_bytes <= self._limits[_MAX_SHARED]
        )

    def product(self, dtype: str, kernel: str, n: int) -> Workload:
        """Multiply with one of the kernels."""
        shape = _PRODUCTS[self._short(kernel)]
        check = ProductCheck(n, dtype)
        pitch = n + _PITCH_BYTES // np.dtype(dtype).itemsize
        left, right = (self._queue.sent(padded(matrix, pitch)) for matrix in check.operands())
        result = self._queue.buffer(left.size, "STORAGE", "COPY_SRC")  # WebGPU clears new buffers
        pipeline = self._pipeline(shape.entry, dtype, n=n, pitch=pitch // 4)
        bound = self._bound(pipeline, [(left, 0), (right, 0), (result, 0)], left.size)
        groups = (n // shape.columns, n // shape.rows)

        def correct() -> bool:
            with self._queue.fetched(result, result.size) as found:
                return check.accepts(found.view(dtype).reshape(n, pitch)[:, :n])

        return self._workload(2 * n**3, _Dispatches(pipeline, ((bound, groups),)), correct)

    def stream_kernels(self, dtype: str) -> tuple[str, ...]:
        """Loads of one element, of four, and of four times four."""
        return tuple(self._named(name) for name in _STREAMS) if self._computes(dtype) else ()

    def stream(self, dtype: str, kernel: str, nbytes: int) -> Workload:
        """Copy one buffer to another."""
        work, host, target = self._streaming(dtype, self._short(kernel), nbytes)

        def correct() -> bool:
            with self._queue.fetched(target, nbytes) as found:
                return same_words(found, host)

        return self._workload(2 * nbytes, work, correct)

    @cached_property
    def _clock(self) -> tuple[str, Timestamps | None]:
        """What kernels are timed by: its name, and the timestamps if they keep time."""
        if "timestamp-query" not in self.features:
            return "wall clock", None
        timestamps = Timestamps(self._queue)
        work, _, _ = self._streaming("float32", "4 wide", _CLOCK_TRIAL_BYTES)
        while self._on_the_wall(work) < _CLOCK_TRIAL_NS and len(work.each) < 2**14:
            work = _Dispatches(work.pipeline, work.each * 2)
        try:
            runs = [self._by_both(work, timestamps) for _ in range(_CLOCK_TRIALS)]
        except RuntimeError:  # they stand still, or run backwards
            return _TIMESTAMPS_ARE_WRONG, None
        if keeps_time(*zip(*runs, strict=True)):
            return "timestamps", timestamps
        return _TIMESTAMPS_ARE_WRONG, None

    def _workload(self, amount: int, work: _Dispatches, correct: Callable[[], bool]) -> Workload:
        _, timestamps = self._clock
        if timestamps is None:
            return Workload(amount, lambda: self._on_the_wall(work), correct)
        return Workload(amount, lambda: self._by_both(work, timestamps)[0], correct)

    def _on_the_wall(self, work: _Dispatches) -> int:
        return timed(lambda: self._queue.finish(work.encode(self._device)))

    def _by_both(self, work: _Dispatches, timestamps: Timestamps) -> tuple[int, int]:
        """Run it; gives nanoseconds by the adapter's clock, and on the wall."""
        wall_ns = timed(lambda: self._queue.finish(work.encode(self._device, timestamps)))
        return timestamps.elapsed_ns(), wall_ns

    def _computes(self, dtype: str) -> bool:
        types = _TYPES.get(dtype)
        return types is not None and (not types.feature or types.feature in self.features)

    def _named(self, kernel: str) -> str:
        return f"{kernel}, {self._clock[0]}"

    def _short(self, kernel: str) -> str:
        return kernel.removesuffix(f", {self._clock[0]}")

    def _streaming(
        self, dtype: str, kernel: str, nbytes: int
    ) -> tuple[_Dispatches, NDArray[Any], Any]:
        """Copying an array, in pieces as large as can be bound; with its source and its target."""
        shape, size = _STREAMS[kernel], np.dtype(dtype).itemsize
        host, _ = self._arrays.pair(nbytes)
        repeat(_ORDINARY, host.view(_ORDINARY.dtype))
        if self._streamed is None or self._streamed[0].size != nbytes:
            target = self._queue.buffer(nbytes, "STORAGE", "COPY_SRC", "COPY_DST")
            self._streamed = self._queue.sent(host), target
        source, target = self._streamed
        self._queue.clear(target)  # of what an earlier kernel copied
        pipeline = self._pipeline(shape.entry, dtype)
        each = []
        for start, length in pieces(nbytes, self._limits[_MAX_BINDING]):
            bound = self._bound(pipeline, [(source, start), (target, start)], length)
            groups = grid(length // size // shape.elements, self._limits[_MAX_GROUPS])
            each.append((bound, groups))
        return _Dispatches(pipeline, tuple(each)), host, target

    def _pipeline(self, entry: str, dtype: str, **constants: int) -> Any:
        types = _TYPES[dtype]
        if dtype not in self._modules:
            head = f"{types.enable} alias REAL = {types.element}; alias SUM = {types.sums};\n"
            self._modules[dtype] = self._device.create_shader_module(
                code=head + _SOURCE.read_text()
            )
        stage = {"module": self._modules[dtype], "entry_point": entry, "constants": constants}
        return self._device.create_compute_pipeline(layout="auto", compute=stage)

    def _bound(self, pipeline: Any, buffers: list[tuple[Any, int]], nbytes: int) -> Any:
        entries = [
            {"binding": index, "resource": {"buffer": buffer, "offset": start, "size": nbytes}}
            for index, (buffer, start) in enumerate(buffers)
        ]
        layout = pipeline.get_bind_group_layout(0)
        return self._device.create_bind_group(layout=layout, entries=entries)


def pieces(nbytes: int, limit_bytes: int) -> list[tuple[int, int]]:
    """Cut whole MiB into pieces that fit a limit, of whole MiB each: starts and lengths."""
    largest = max(limit_bytes // MIB, 1) * MIB
    return [(start, min(largest, nbytes - start)) for start in range(0, nbytes, largest)]


def grid(groups: int, limit: int) -> tuple[int, int]:
    """Lay at least so many groups along x and y, neither beyond the limit."""
    y = -(-groups // limit)
    return -(-groups // y), y
