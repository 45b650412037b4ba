"""What identifies a card across backends, and what makes two devices' measurements alike."""

import re
import uuid

_PCI = re.compile(r"([0-9a-f]{1,8}):([0-9a-f]{1,2}):([0-9a-f]{1,2})\.([0-7])", re.IGNORECASE)


def pci_address(domain: int, bus: int, device: int, function: int = 0) -> str:
    """Write a PCI address as Linux does, ``0000:3b:00.0``."""
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"


def normal_pci_address(text: str) -> str | None:
    """Write a driver's PCI address as Linux does; NVML pads the domain to eight digits.

    None if `text` is not a PCI address.
    """
    match = _PCI.fullmatch(text.strip())
    if match is None:
        return None
    domain, bus, device, function = (int(digits, 16) for digits in match.groups())
    return pci_address(domain, bus, device, function)


def normal_uuid(value: str | bytes) -> str | None:
    """Write a device's UUID in lower case with hyphens and without NVML's ``GPU-``.

    None if `value` is not a UUID, or is the all-zero one that drivers give for "none".
    """
    try:
        parsed = (
            uuid.UUID(bytes=value)
            if isinstance(value, bytes)
            else uuid.UUID(value.strip().removeprefix("GPU-"))
        )
    except ValueError:
        return None
    return str(parsed) if parsed.int else None


def equivalence_key(backend: str, model: str, driver: str, link: str) -> str:
    """Make the key that two devices share when a measurement of one may stand for the other."""
    return " | ".join((backend, model, driver, link))
