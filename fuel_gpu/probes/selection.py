"""Picks the device of a report that somebody asks for, or says why there is none."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fuel_gpu.device import Device
from fuel_gpu.errors import DeviceUnavailableError, UsageError
from fuel_gpu.sizes import size_text

if TYPE_CHECKING:
    from fuel_gpu.probes.report import DeviceInfo, ProbeReport

ANY_GPU: Final = "gpu"
"""The name that asks for a GPU of any backend."""

GPU_BACKENDS: Final = ("cuda", "opencl", "vulkan", "metal", "d3d12")
"""Backends that drive GPUs; OpenCL's and Vulkan's also drive processors."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody asks for.

    Parameters
    ----------
    name
        ``gpu``, a backend, or a device such as ``cuda:1``.
    on_gpu
        Whether the device must be a GPU; ``gpu`` always means that.
    memory_bytes
        How much memory it must have, bytes.
    """

    name: str
    on_gpu: bool = False
    memory_bytes: int = 0

    @property
    def backend(self) -> str | None:
        """The backend that it names; None for any."""
        return None if self.name == ANY_GPU else self.name.partition(":")[0]

    def is_named(self, device: "DeviceInfo") -> bool:
        """Whether `device` goes by the name, be it fit or not."""
        return self.name in (ANY_GPU, device.backend, device.id)

    def asks_for(self, name: str) -> bool:
        """Whether ``gpu``, a backend or a device is what it asks for, perhaps among others."""
        return name in (self.name, self.backend) or (name == ANY_GPU and self.on_gpu)

    def __str__(self) -> str:
        """Write ``GPU with 8 GiB``, ``cuda device``, ``vulkan:0 that is a GPU``."""
        words = {ANY_GPU: "GPU"}.get(self.name, self.name)
        if ":" not in self.name and self.name != ANY_GPU:
            words += " device"
        if self.on_gpu and self.name != ANY_GPU:
            words += " that is a GPU"
        return words + (f" with {size_text(self.memory_bytes)}" if self.memory_bytes else "")


def parse_name(text: str, known_backends: Collection[str]) -> str:
    """Read the name of a wish: ``gpu``, a backend, or a device.

    Raises
    ------
    UsageError
        If it is none of these.
    """
    device = Device.parse(text)
    if device.backend in known_backends:
        return str(device) if ":" in text else device.backend
    if text.strip() == ANY_GPU:
        return ANY_GPU
    raise UsageError(
        f"{text!r} is no device or backend; known are {ANY_GPU}, {', '.join(known_backends)}"
    )


def parse_device(text: str, known_backends: Collection[str]) -> str:
    """Read the name of one device; a backend alone means its device 0.

    Raises
    ------
    UsageError
        If it is none, or of a backend that no probe knows.
    """
    device = Device.parse(text)
    if device.backend not in known_backends:
        raise UsageError(
            f"{text!r} is no device that a probe could find; known backends are "
            f"{', '.join(known_backends)}"
        )
    return str(device)


def is_gpu(device: "DeviceInfo") -> bool:
    """Whether a device is a GPU that one of the built-in probes drives.

    Processors under OpenCL or Vulkan (PoCL, llvmpipe), simulators, OpenCL's accelerators and
    plugins' devices are none.
    """
    if device.backend not in GPU_BACKENDS or device.host_processor or device.simulated:
        return False
    return device.backend != "opencl" or device.details.get("type", "gpu") == "gpu"


def select(report: "ProbeReport", wish: Wish) -> "DeviceInfo":
    """Give the first device of a report that is as wished.

    Parameters
    ----------
    report
        What a probe found; its order puts hardware before processors before simulators.
    wish
        What is asked for.

    Raises
    ------
    DeviceUnavailableError
        If there is none; with the probe's reasons and remedies.
    """
    named = [device for device in report.devices if wish.is_named(device)]
    fit = [d for d in named if is_gpu(d) or not (wish.on_gpu or wish.name == ANY_GPU)]
    for device in fit:
        if device.memory_bytes >= wish.memory_bytes:
            return device
    backends = GPU_BACKENDS if wish.backend is None else (wish.backend,)
    lines = [line for line in report.unavailable if line.backend in backends]
    if fit:
        why = [_too_small(device) for device in fit]
    elif wish.name == ANY_GPU:
        why = [f"{line.backend}: {line.reason}" for line in lines] + _no_gpus(named)
    elif named:
        why = _no_gpus(named)
    else:
        why = [line.reason for line in lines]
        there = [device.id for device in report.devices if device.backend == wish.backend]
        why += [f"there is {', '.join(there)}"] if there else []
    raise DeviceUnavailableError(
        f"no {wish}: " + ("; ".join(why) or "the probe knows of none"),
        "" if fit else "; or ".join(dict.fromkeys(line.remedy for line in lines if line.remedy)),
    )


def _too_small(device: "DeviceInfo") -> str:
    size = size_text(device.memory_bytes)
    if device.memory_is_lower_bound:
        return f"{device.id} ({device.name}) does not tell its memory, and one buffer holds {size}"
    return f"{device.id} ({device.name}) has {size}"


def _no_gpus(devices: "Iterable[DeviceInfo]") -> list[str]:
    """Say of devices, the CPU itself aside, that they are no GPUs."""
    return [f"{d.id} ({d.name}) is no GPU" for d in devices if d.backend != "cpu"]
