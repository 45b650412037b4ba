"""Cards and their doors: devices of several backends that are one piece of hardware."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from fuel_gpu.probes.report import DeviceInfo


@dataclass(frozen=True, slots=True)
class Card:
    """One piece of hardware, and the devices through which it can be driven.

    Parameters
    ----------
    doors
        Its devices, in the report's order; at least one.
    """

    doors: tuple[DeviceInfo, ...]

    @property
    def name(self) -> str:
        """The model, as its first door calls it."""
        return self.doors[0].name

    @property
    def memory_bytes(self) -> int:
        """The card's memory, bytes, counted once however many doors it has.

        The first door that knows it is believed: the CPU for the host's, CUDA for its card's.
        """
        knowing = (door for door in self.doors if not door.memory_is_lower_bound)
        return next(knowing, self.doors[0]).memory_bytes

    @property
    def shares_host_memory(self) -> bool:
        """Whether its memory is the host's own, and must not be added to it."""
        return any(door.unified_memory for door in self.doors)


def cards(devices: Iterable[DeviceInfo]) -> tuple[Card, ...]:
    """Group devices by the card that they drive.

    Devices with the same UUID or PCI address are one card. All that compute on the host's cores
    are one, the processor. A simulator is a card of its own.

    Returns
    -------
    tuple of Card
        In the order of their first doors.
    """
    devices = tuple(devices)
    groups: list[tuple[set[str], list[int]]] = []
    for position, device in enumerate(devices):
        ties = _ties(device)
        positions = [position]
        for known in [group for group in groups if group[0] & ties]:
            groups.remove(known)
            ties |= known[0]
            positions += known[1]
        groups.append((ties, sorted(positions)))
    return tuple(
        Card(tuple(devices[position] for position in positions))
        for positions in sorted(positions for _, positions in groups)
    )


def with_card_memory(devices: Iterable[DeviceInfo]) -> tuple[DeviceInfo, ...]:
    """Give doors that do not know their memory the figure that another door of the card knows."""
    devices = tuple(devices)
    card_of = {door.id: card for card in cards(devices) for door in card.doors}
    completed = []
    for device in devices:
        card = card_of[device.id]
        if device.memory_is_lower_bound and any(not d.memory_is_lower_bound for d in card.doors):
            device = msgspec.structs.replace(
                device, memory_bytes=card.memory_bytes, memory_is_lower_bound=False
            )
        completed.append(device)
    return tuple(completed)


def _ties(device: DeviceInfo) -> set[str]:
    if device.simulated:
        return set()
    if device.host_processor:
        return {"host"}
    return {tie for tie in (device.uuid, device.pci_address) if tie}
