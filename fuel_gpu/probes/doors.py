"""Which cards of the PCI bus the devices of a report drive, and which nothing drives."""

from collections.abc import Iterable
from typing import Final

from fuel_gpu.probes.report import DeviceInfo
from fuel_gpu.probes.selection import is_gpu
from fuel_gpu.probes.surroundings import PciGpu

_VENDOR_IDS: Final = {0x10DE: "NVIDIA", 0x1002: "AMD", 0x8086: "Intel"}
_VENDOR_WORDS: Final = {"nvidia": "NVIDIA", "advanced micro devices": "AMD", "intel": "Intel"}


def vendor(device: DeviceInfo) -> str | None:
    """Whose card a device drives, as far as its backend tells."""
    if device.backend == "cuda":
        return "NVIDIA"
    if "vendor_id" in device.details:
        return _VENDOR_IDS.get(device.details["vendor_id"])
    words = str(device.details.get("vendor", "")).lower()
    return next((name for word, name in _VENDOR_WORDS.items() if word in words), None)


def undriven(gpus: Iterable[PciGpu], devices: Iterable[DeviceInfo]) -> list[PciGpu]:
    """Give the cards that no device drives.

    A device that does not tell its PCI address is taken to drive every card of its vendor: better
    to miss a card than to complain of one that works.
    """
    doors = [device for device in devices if is_gpu(device)]
    addresses = {door.pci_address for door in doors}
    vendors = {vendor(door) for door in doors if door.pci_address is None}
    return [gpu for gpu in gpus if gpu.address not in addresses and gpu.vendor not in vendors]
