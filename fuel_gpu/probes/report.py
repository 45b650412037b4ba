"""What a probe reports: the devices found, and why the missing ones are missing."""

from typing import Any

import msgspec

from fuel_gpu.device import Device


class DeviceInfo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One device as its probe describes it; also how the table records it.

    Parameters
    ----------
    id
        ``backend:index``.
    memory_bytes
        The device's whole memory, bytes.
    memory_is_lower_bound
        The backend does not tell: `memory_bytes` is the largest buffer that it allows.
    largest_allocation_bytes
        The largest single buffer, bytes; None if the backend states no such limit.
    dtypes
        Compute dtypes that it says it supports.
    driver
        Driver and its version; a table is stale when this changes.
    pci_address, uuid
        Tie the doors of one card together, where the backend knows them; written as
        `fuel_gpu.probes.identity` writes them.
    equivalence_key
        Equal for devices whose measurements may stand for one another (same model, driver, link).
    unified_memory
        Whether its memory is the host's own.
    host_processor
        Whether it computes on the host's own cores (the CPU itself, PoCL, llvmpipe).
    simulated
        A simulator (Oclgrind): listed, never planned on.
    details
        What only this backend knows, by name, as JSON values.
    """

    id: str
    backend: str
    name: str
    memory_bytes: int
    memory_is_lower_bound: bool = False
    largest_allocation_bytes: int | None = None
    dtypes: tuple[str, ...] = ("float32",)
    driver: str = ""
    pci_address: str | None = None
    uuid: str | None = None
    equivalence_key: str = ""
    unified_memory: bool = False
    host_processor: bool = False
    simulated: bool = False
    details: dict[str, Any] = {}

    @property
    def device(self) -> Device:
        """The device's name as a value."""
        return Device.parse(self.id)


class Unavailable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A backend, or one of its devices, that cannot be used, and what would mend it."""

    backend: str
    reason: str
    remedy: str = ""


class ProbeReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that was found, in the order cpu, cuda, opencl, vulkan, metal, d3d12, plugins."""

    devices: tuple[DeviceInfo, ...]
    unavailable: tuple[Unavailable, ...] = ()
