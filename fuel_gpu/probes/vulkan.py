"""Adapters through wgpu: Vulkan, and with it Metal and Direct3D 12 where there is no Vulkan."""

import ctypes
import importlib
import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from fuel_gpu.probes.cpu import host_memory_bytes
from fuel_gpu.probes.identity import equivalence_key
from fuel_gpu.probes.report import DeviceInfo, ProbeReport, Unavailable
from fuel_gpu.probes.vulkan_loader import PhysicalDevice, physical_devices

backend: Final = "vulkan"

_BACKENDS: Final = {"Vulkan": "vulkan", "Metal": "metal", "D3D12": "d3d12"}
"""wgpu's names of what it drives, in order of preference. OpenGL adapters are never taken: they
double the Vulkan ones with fewer features, or cannot compute."""

_FEATURES_TOLD: Final = (
    "mappable-primary-buffers",
    "shader-f16",
    "shader-f64",
    "shader-int64",
    "subgroup",
    "timestamp-query",
)


@dataclass(frozen=True, slots=True)
class Adapter:
    """What wgpu tells about an adapter.

    Parameters
    ----------
    info, features, limits
        As wgpu's adapter has them.
    handle
        wgpu's object.
    """

    info: dict[str, Any]
    features: frozenset[str]
    limits: dict[str, int]
    handle: Any = None

    @property
    def backend(self) -> str | None:
        """The backend in fuel-gpu's words; None for one that is never taken."""
        return _BACKENDS.get(self.info["backend_type"])

    @property
    def model(self) -> tuple[int, int, str]:
        """What tells one model from another: vendor, device, name."""
        return self.info["vendor_id"], self.info["device_id"], self.info["device"]

    @property
    def computes_on_host(self) -> bool:
        """Whether it is software, such as Mesa's llvmpipe."""
        return bool(self.info["adapter_type"] == "CPU")


def enumerate_devices() -> ProbeReport:
    """List wgpu's adapters, hardware before software."""
    if importlib.util.find_spec("wgpu") is None:
        return _nothing("wgpu is not installed", "pip install 'fuel-gpu[vulkan]'")
    try:
        adapters = _adapters()
    except (ImportError, OSError, RuntimeError) as error:
        return _nothing(
            f"wgpu cannot be used: {error}",
            "reinstall it: pip install --force-reinstall 'fuel-gpu[vulkan]'",
        )
    return describe(adapters, physical_devices(), host_memory_bytes())


def find(device: DeviceInfo) -> Any:
    """Give wgpu's adapter for a device of a report.

    Raises
    ------
    LookupError
        If that device is no longer there.
    """
    same_backend = [a for a in choose(_adapters()) if a.backend == device.backend]
    index = device.device.index
    if index >= len(same_backend) or same_backend[index].info["device"] != device.name:
        raise LookupError(f"{device.id} ({device.name}) is no longer there; probe again")
    return same_backend[index].handle


def choose(adapters: Iterable[Adapter]) -> list[Adapter]:
    """Drop what is never driven, and what Vulkan drives already; software goes last."""
    adapters = list(adapters)
    by_vulkan = {adapter.model[:2] for adapter in adapters if adapter.backend == "vulkan"}
    return sorted(
        (
            adapter
            for adapter in adapters
            if adapter.backend is not None
            and (adapter.backend == "vulkan" or adapter.model[:2] not in by_vulkan)
        ),
        key=lambda adapter: adapter.computes_on_host,
    )


def describe(
    adapters: Iterable[Adapter], loader_devices: Iterable[PhysicalDevice], host_bytes: int
) -> ProbeReport:
    """Turn wgpu's adapters into a report.

    Parameters
    ----------
    adapters
        All that wgpu lists.
    loader_devices
        The same cards as the Vulkan loader knows them; wgpu keeps the loader's order, so the
        first of a model here is the first of it there.
    host_bytes
        The host's memory, which is also the memory of software and integrated adapters.
    """
    adapters = list(adapters)
    chosen = choose(adapters)
    if not chosen:
        return _nothing(*_why_none(adapters))
    unmatched = list(loader_devices)
    counts = dict.fromkeys(_BACKENDS.values(), 0)
    devices = []
    for adapter in chosen:
        assert adapter.backend is not None  # choose() drops the others
        known = None
        if adapter.backend == "vulkan":
            same_model = (
                d for d in unmatched if (d.vendor_id, d.device_id, d.name) == adapter.model
            )
            known = next(same_model, None)
            if known is not None:
                unmatched.remove(known)
        devices.append(_describe(adapter, counts[adapter.backend], known, host_bytes))
        counts[adapter.backend] += 1
    ordered = sorted(devices, key=lambda device: list(counts).index(device.backend))
    return ProbeReport(devices=tuple(ordered))


def _describe(
    adapter: Adapter, index: int, known: PhysicalDevice | None, host_bytes: int
) -> DeviceInfo:
    name, limits = adapter.info["device"], adapter.limits
    driver = " ".join(filter(None, (adapter.info["vendor"], adapter.info["description"])))
    unified = adapter.info["adapter_type"] in ("CPU", "IntegratedGPU")
    if unified:
        memory_bytes, is_lower_bound = host_bytes, False
    elif known is not None and known.local_memory_bytes:
        memory_bytes, is_lower_bound = known.local_memory_bytes, False
    else:
        memory_bytes, is_lower_bound = limits["max-buffer-size"], True
    optional = (("float16", "shader-f16"), ("float64", "shader-f64"))
    return DeviceInfo(
        id=f"{adapter.backend}:{index}",
        backend=str(adapter.backend),
        name=name,
        memory_bytes=memory_bytes,
        memory_is_lower_bound=is_lower_bound,
        largest_allocation_bytes=limits["max-buffer-size"],
        dtypes=("float32", *(dtype for dtype, feature in optional if feature in adapter.features)),
        driver=driver,
        pci_address=known.pci_address if known else None,
        uuid=known.uuid if known else None,
        equivalence_key=equivalence_key(
            str(adapter.backend), name, driver, f"{memory_bytes} bytes"
        ),
        unified_memory=unified,
        host_processor=adapter.computes_on_host,
        details={
            "type": adapter.info["adapter_type"],
            "vendor_id": adapter.info["vendor_id"],
            "device_id": adapter.info["device_id"],
            "local_memory_bytes": known.local_memory_bytes if known else None,
            "largest_binding_bytes": limits["max-storage-buffer-binding-size"],
            "max_workgroup_invocations": limits["max-compute-invocations-per-workgroup"],
            "workgroup_memory_bytes": limits["max-compute-workgroup-storage-size"],
            "features": [f for f in _FEATURES_TOLD if f in adapter.features],
        },
    )


def _adapters() -> list[Adapter]:
    wgpu = importlib.import_module("wgpu")
    return [
        Adapter(dict(a.info), frozenset(a.features), dict(a.limits), a)
        for a in wgpu.gpu.enumerate_adapters_sync()
    ]


def _why_none(adapters: list[Adapter]) -> tuple[str, str]:
    opengl = ", ".join(sorted({adapter.info["device"] for adapter in adapters}))
    also = f"; {opengl} is there through OpenGL only, which is not used" if opengl else ""
    software = "apt install mesa-vulkan-drivers brings one for the CPU"
    if sys.platform == "linux":
        try:
            ctypes.CDLL("libvulkan.so.1")
        except OSError:
            return (
                f"the Vulkan loader libvulkan.so.1 is not installed{also}",
                f"install the graphics driver's Vulkan package; {software}",
            )
    return (
        f"no Vulkan driver is installed{also}",
        f"install the graphics driver's Vulkan package; {software}",
    )


def _nothing(reason: str, remedy: str) -> ProbeReport:
    line = Unavailable(backend=backend, reason=reason, remedy=remedy)
    return ProbeReport(devices=(), unavailable=(line,))
