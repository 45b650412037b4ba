"""How each card's link stands: what it should carry, and what measured copies carried."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import msgspec

from fuel_gpu.calibration.staleness import describe_machine, same_device
from fuel_gpu.calibration.table import Table, Transfer
from fuel_gpu.device import HOST
from fuel_gpu.probes.cards import Card, cards
from fuel_gpu.probes.doors import vendor
from fuel_gpu.probes.pcie import Hop, Link, known_generation
from fuel_gpu.probes.report import DeviceInfo, ProbeReport
from fuel_gpu.probes.surroundings import Surroundings

PINNED: Final = "pinned"

_SMALLEST_BYTES: Final = 4 << 20
"""Copies below this size are mostly latency."""


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """The best that large copies reached between the host and a card, in one direction.

    Parameters
    ----------
    to_device
        Whether they went to the card.
    """

    to_device: bool
    memory: str
    bytes_per_ns: float


class LinkHealth(msgspec.Struct, frozen=True, kw_only=True):
    """A card's link, as it is and as it was measured.

    Parameters
    ----------
    device
        The card's first door.
    hops
        Its links from the slot down; the last belongs to the card itself.
    gives_bytes_per_ns
        What the narrowest of them carries at most, at its best generation and present width.
    carried
        What measured copies reached; empty without a table of this machine and card.
    loaded
        What the card's counters said of its own link during these copies, at best; None where
        they said nothing.
    """

    device: str
    name: str
    vendor: str | None
    hops: tuple[Hop, ...]
    gives_bytes_per_ns: float
    carried: tuple[Carried, ...] = ()
    loaded: Link | None = None

    def best(self, *, to_device: bool) -> Carried | None:
        """Give the fastest copies of a direction, from pinned memory if that was measured."""
        ways = [one for one in self.carried if one.to_device == to_device]
        return max(ways, key=lambda one: (one.memory == PINNED, one.bytes_per_ns), default=None)

    @property
    def pinned(self) -> tuple[Carried, ...]:
        """The copies that the card did by itself, which alone tell what its link is worth."""
        return tuple(one for one in self.carried if one.memory == PINNED)


def link_health(report: ProbeReport, around: Surroundings, table: Table | None) -> list[LinkHealth]:
    """Tell of each card that has memory of its own how it is connected.

    Parameters
    ----------
    report
        What the probe found.
    around
        What the system shows; its links are preferred, since they include the slot and switches.
    table
        Measurements; those of another machine or of a card that has changed are left out.
    """
    if table is not None and table.machine.fingerprint != describe_machine(report).fingerprint:
        table = None
    found = []
    for card in cards(report.devices):
        hops = _hops(card, around)
        if not hops or card.shares_host_memory:
            continue
        found.append(
            LinkHealth(
                device=card.doors[0].id,
                name=card.name,
                vendor=vendor(card.doors[0]),
                hops=hops,
                gives_bytes_per_ns=min(hop.usable.bytes_per_ns for hop in hops),
                carried=tuple(_carried(card, table)) if table is not None else (),
                loaded=_loaded(card, table) if table is not None else None,
            )
        )
    return found


def _hops(card: Card, around: Surroundings) -> tuple[Hop, ...]:
    """Take the system's links, or NVML's of the card alone.

    Some cards understate their best link to the system while they idle; NVML knows better.
    """
    address = next((door.pci_address for door in card.doors if door.pci_address), "")
    hops = next((gpu.hops for gpu in around.gpus if gpu.address == address), ())
    told = [hop for door in card.doors if (hop := _nvml_hop(door)) is not None]
    if not told:
        return hops
    if not hops:
        return (told[0],)
    last, best = hops[-1], told[0].device
    best = Link(max(last.device.generation, best.generation), max(last.device.width, best.width))
    return (*hops[:-1], replace(last, device=best))


def _nvml_hop(door: DeviceInfo) -> Hop | None:
    keys = ("generation", "width", "max_generation", "max_width")
    generation, width, *best = (int(door.details.get(f"pcie_{key}") or 0) for key in keys)
    if not (known_generation(generation) and known_generation(best[0]) and width and best[1]):
        return None
    return Hop(door.pci_address or "", Link(generation, width), Link(*best))


def _carried(card: Card, table: Table) -> Iterator[Carried]:
    best: dict[tuple[bool, str], float] = {}
    for transfer in _copies(card, table):
        key = transfer.src == str(HOST), transfer.memory
        best[key] = max(best.get(key, 0.0), _bandwidth(transfer))
    for (to_device, memory), rate in sorted(best.items(), reverse=True):
        if rate:
            yield Carried(to_device=to_device, memory=memory, bytes_per_ns=rate)


def _loaded(card: Card, table: Table) -> Link | None:
    seen = [
        Link(transfer.conditions.link_generation, transfer.conditions.link_width)
        for transfer in _copies(card, table)
        if transfer.conditions is not None
        and transfer.conditions.link_generation
        and transfer.conditions.link_width
        and known_generation(transfer.conditions.link_generation)
    ]
    return max(seen, key=lambda link: link.bytes_per_ns, default=None)


def _copies(card: Card, table: Table) -> Iterator[Transfer]:
    """Give the copies that were measured between the host and one of a card's doors."""
    known = {device.id: device for device in table.devices}
    doors = {d.id for d in card.doors if d.id in known and same_device(known[d.id], d)}
    for transfer in table.transfers:
        ends = {transfer.src, transfer.dst}
        if transfer.provenance == "measured" and str(HOST) in ends and ends & doors:
            yield transfer


def _bandwidth(transfer: Transfer) -> float:
    large = (p.bytes / p.ns for p in transfer.points if p.bytes >= _SMALLEST_BYTES)
    return max(large, default=0.0)
