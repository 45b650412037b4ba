"""How each backend's devices are driven while they are measured: one module a backend."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, cast, runtime_checkable

from fuel_gpu.calibration.table import Conditions
from fuel_gpu.probes import registry
from fuel_gpu.probes.report import DeviceInfo


@dataclass(frozen=True, slots=True)
class Workload:
    """Work of a known amount that can be run again and again.

    Parameters
    ----------
    amount
        FLOPs of one run, or bytes that one run reads plus writes.
    run
        Does it once; gives that run's nanoseconds.
    correct
        Whether the result of the latest run is right.
    """

    amount: int
    run: Callable[[], int]
    correct: Callable[[], bool]


class Copies(Protocol):
    """Copies from one place to another (upload) and back, of any size up to a largest."""

    @property
    def memory(self) -> str:
        """The kind of host memory at one end; between devices, how they are connected."""

    def upload(self, nbytes: int) -> int:
        """Copy the first `nbytes` there; gives nanoseconds."""

    def download(self, nbytes: int) -> int:
        """Copy the first `nbytes` back; gives nanoseconds."""

    def arrived(self, nbytes: int) -> bool:
        """Send fresh bytes there and back: whether they are the same. Sizes are multiples of 8."""

    def release(self) -> None:
        """Free the buffers."""


class OpenDevice(Protocol):
    """A device opened for measuring. Any of its calls may raise; that costs the one figure."""

    @property
    def host_memory_kinds(self) -> tuple[str, ...]:
        """Kinds of host memory to copy from: ``pageable``, ``pinned``, …; none on the host."""

    def copies(self, largest_bytes: int, memory: str) -> Copies:
        """Allocate for copies of up to `largest_bytes`."""

    def launch(self) -> Workload:
        """Start a kernel that does nothing (amount 1)."""

    def product_kernels(self, dtype: str) -> tuple[str, ...]:
        """Name the kernels that multiply matrices of `dtype`; none if the device cannot."""

    def product(self, dtype: str, kernel: str, n: int) -> Workload:
        """Multiply two n by n matrices, `n` a multiple of 256. Amount 2 n**3."""

    def stream_kernels(self, dtype: str) -> tuple[str, ...]:
        """Name the kernels that copy an array of `dtype` within the device's memory."""

    def stream(self, dtype: str, kernel: str, nbytes: int) -> Workload:
        """Copy an array of `nbytes`, a multiple of a MiB. Amount 2 `nbytes`: read and written."""


@runtime_checkable
class WatchedDevice(Protocol):
    """A device whose own counters are read while it is measured."""

    def watch(self) -> None:
        """Begin a figure: forget what was seen so far."""

    def conditions(self) -> Conditions | None:
        """Give what was seen since then; None if nothing was."""


def begin_watching(device: object) -> None:
    """Let a device that can be watched forget what was seen before."""
    if isinstance(device, WatchedDevice):
        device.watch()


def conditions_of(device: object) -> Conditions | None:
    """Give what was seen of a device since; None if it cannot be watched."""
    return device.conditions() if isinstance(device, WatchedDevice) else None


@runtime_checkable
class DuplexDevice(Protocol):
    """A device that copies to the host and from it at the same time."""

    duplex_memory_kinds: tuple[str, ...]

    def copy_engines(self) -> int | None:
        """How many copies the device says that it does beside its kernels."""

    def both_ways(self, nbytes: int, memory: str) -> Workload:
        """Copy `nbytes` each way at once. Amount 2 `nbytes`."""


@dataclass(frozen=True, slots=True)
class MemoryNode:
    """A NUMA node: its number, the processors beside it, and its memory if that is known."""

    node: int
    cpus: str
    memory_bytes: int | None


@runtime_checkable
class NodedDevice(Protocol):
    """A processor whose memory may lie in several nodes; it names none where there is one only."""

    memory_nodes: tuple[MemoryNode, ...]

    def node_stream(self, node: MemoryNode, dtype: str, nbytes: int) -> Workload:
        """Copy an array within one node, by its processors. Amount 2 `nbytes`."""


class ConnectedDevice(OpenDevice, DuplexDevice, Protocol):
    """A device that copies to others of its backend without the caller's help."""

    def peer_copies(self, other: DeviceInfo, largest_bytes: int) -> Copies:
        """Allocate for copies to `other` (upload) and from it."""

    def peer_both_ways(self, other: DeviceInfo, nbytes: int) -> Workload:
        """Copy `nbytes` to `other` and as many from it at once. Amount 2 `nbytes`."""


CONNECTED_BACKENDS: Final = ("cuda",)
"""Backends whose devices are a `ConnectedDevice`."""

_BUILT_IN: Final[dict[str, str]] = {
    "cpu": "fuel_gpu.calibration.backends.cpu",
    "opencl": "fuel_gpu.calibration.backends.opencl",
    "cuda": "fuel_gpu.calibration.backends.cuda",
    "vulkan": "fuel_gpu.calibration.backends.vulkan",
    "metal": "fuel_gpu.calibration.backends.vulkan",
    "d3d12": "fuel_gpu.calibration.backends.vulkan",
}


def can_measure(backend: str) -> bool:
    """Whether there is something to try: a module here, or a plugin's probe."""
    return backend in _BUILT_IN or backend in registry.plugins().entry_points


def open_device(info: DeviceInfo) -> OpenDevice:
    """Open a device for measuring: call it only in a child process.

    Raises
    ------
    LookupError
        If nothing measures this backend.
    """
    if info.backend in _BUILT_IN:
        module = importlib.import_module(_BUILT_IN[info.backend])
        return cast(OpenDevice, module.open_device(info))
    probe = registry.load(info.backend)
    opener = getattr(probe, "open_device", None)
    if opener is None:
        raise LookupError(
            f"the plugin of backend {info.backend!r} has no open_device to measure by"
        )
    return cast(OpenDevice, opener(info))
