"""Which links run with fewer lanes, a lower generation or less bandwidth than they should."""

import math
from collections.abc import Iterable, Iterator
from typing import Final

from fuel_gpu.calibration.link_health import LinkHealth
from fuel_gpu.calibration.table import Table
from fuel_gpu.probes.finding import Finding
from fuel_gpu.probes.pcie import Hop, Link

FAIR_SHARE: Final = 0.6
"""A copy that reaches less than this share of what its link carries is flagged."""

_CALIBRATE: Final = "fuel-gpu calibrate"


def link_findings(links: Iterable[LinkHealth]) -> list[Finding]:
    """Say what is wrong with the links.

    Bandwidth is judged by copies from pinned memory: what pageable memory loses is not the link's.
    """
    return [finding for link in links for finding in _findings(link)]


def peer_findings(table: Table | None) -> list[Finding]:
    """Name the pairs of cards between which copies go through the host."""
    staged = {
        frozenset((t.src, t.dst))
        for t in (table.transfers if table else ())
        if t.memory == "staged" and t.provenance == "measured"
    }
    return [
        Finding(
            severity="note",
            subject=" and ".join(sorted(pair)),
            what="copies between them go through the host: neither reads the other's memory",
            remedy="nvidia-smi topo -p2p r tells why; access control of the PCI bridges (ACS), an"
            " IOMMU or a virtual machine often forbids it",
        )
        for pair in sorted(staged, key=sorted)
    ]


def _findings(link: LinkHealth) -> Iterator[Finding]:
    for hop in link.hops:
        yield from _lanes(link, hop)
    slowed = [hop for hop in link.hops if _slowest(link, hop) < hop.best.generation]
    stuck = [hop for hop in slowed if _stays_slow(link, hop)]
    for hop in slowed:
        yield _generation(link, hop, stays=hop in stuck)
    if not stuck:
        yield from _bandwidths(link)
    if link.carried and not link.pinned:
        yield _not_pinned(link)


def _lanes(link: LinkHealth, hop: Hop) -> Iterator[Finding]:
    where, loaded = _where(link, hop), _loaded(link, hop)
    if loaded is not None and hop.now.width < hop.best.width <= loaded.width:
        yield Finding(
            severity="note",
            subject=link.device,
            what=f"{where} runs with {hop.now.width} of {hop.best.width} lanes to save power at"
            f" idle: under load it was at {loaded}",
        )
    elif hop.now.width < hop.best.width:
        # Some of AMD's cards drop lanes at idle; NVIDIA's do not.
        idle = link.vendor != "NVIDIA" and hop.now.generation < hop.best.generation
        yield Finding(
            severity="warning" if idle else "problem",
            subject=link.device,
            what=f"{where} runs with {hop.now.width} of {hop.best.width} lanes"
            f" ({hop.now} at present)" + (", perhaps to save power at idle" if idle else ""),
            remedy="reseat the card, clean its contacts, try it without a riser or in another"
            " slot, and see whether the firmware's setup splits the slot's lanes",
        )
    elif hop.best.width < hop.device.width:
        yield Finding(
            severity="warning",
            subject=link.device,
            what=f"{where} has {hop.best.width} lanes, the card {hop.device.width}",
            remedy="move the card to a wider slot, or free the slot that shares its lanes",
        )
    if hop.best.generation < hop.device.generation:
        yield Finding(
            severity="note",
            subject=link.device,
            what=f"{where} is of generation {hop.best.generation}, the card of"
            f" {hop.device.generation}",
            remedy="see whether the firmware's setup limits the slot's speed",
        )


def _where(link: LinkHealth, hop: Hop) -> str:
    return "its link" if hop is link.hops[-1] else f"the link above it, at {hop.address},"


def _loaded(link: LinkHealth, hop: Hop) -> Link | None:
    """Give what was recorded of this link under load: of the card's own, or nothing."""
    return link.loaded if hop is link.hops[-1] else None


def _slowest(link: LinkHealth, hop: Hop) -> int:
    """Give the lower of the generations at which a link was seen, now and under load."""
    loaded = _loaded(link, hop)
    return min(hop.now.generation, hop.now.generation if loaded is None else loaded.generation)


def _stays_slow(link: LinkHealth, hop: Hop) -> bool:
    """Whether the link was slow under load, too, by what was recorded of it.

    Where nothing was, copies tell: whether they were no faster than what it carries at idle.
    """
    if (loaded := _loaded(link, hop)) is not None:
        return loaded.generation < hop.best.generation
    best = max((one.bytes_per_ns for one in link.pinned), default=math.inf)
    return best <= min(hop.now.bytes_per_ns, FAIR_SHARE * hop.usable.bytes_per_ns)


def _generation(link: LinkHealth, hop: Hop, *, stays: bool) -> Finding:
    where, best = _where(link, hop), max((one.bytes_per_ns for one in link.carried), default=0.0)
    loaded = _loaded(link, hop)
    if stays:
        slow = hop.now if loaded is None else loaded
        return Finding(
            severity="problem",
            subject=link.device,
            what=f"{where} stays at {slow} under load: copies reached {best:.3g} GB/s, where"
            f" {hop.usable} carries {hop.usable.bytes_per_ns:.3g} GB/s",
            remedy="see whether the firmware's setup or a power-saving setting (ASPM) limits the"
            " slot's speed; reseat the card; try it without a riser",
        )
    idles = f"{where} is at {hop.now} now and can be {hop.usable}: idle links do so"
    if loaded is not None:
        return Finding(
            severity="note",
            subject=link.device,
            what=f"{idles}; under load it was at {loaded} and copies reached {best:.3g} GB/s",
        )
    if best > hop.now.bytes_per_ns:
        return Finding(
            severity="note",
            subject=link.device,
            what=f"{idles}; under load copies reached {best:.3g} GB/s",
        )
    return Finding(
        severity="note",
        subject=link.device,
        what=f"{idles}; only pinned copies under load tell whether it rises",
        remedy="" if link.carried else _CALIBRATE,
    )


def _not_pinned(link: LinkHealth) -> Finding:
    kinds = " and ".join(sorted({one.memory for one in link.carried}))
    words = f"copies were measured from {kinds} memory only, which tells little of the link"
    if not link.device.startswith("cuda:"):  # no other backend has pinned memory
        return Finding(severity="note", subject=link.device, what=words)
    return Finding(
        severity="warning",
        subject=link.device,
        what=words,
        remedy=f"{_CALIBRATE} --device {link.device}; its notes say why pinned memory fails",
    )


def _bandwidths(link: LinkHealth) -> Iterator[Finding]:
    for one in link.pinned:
        share = one.bytes_per_ns / link.gives_bytes_per_ns
        if share < FAIR_SHARE:
            way = "to the card" if one.to_device else "from the card"
            yield Finding(
                severity="warning",
                subject=link.device,
                what=f"copies {way} (pinned memory) reached {one.bytes_per_ns:.3g} GB/s,"
                f" {share:.0%} of the {link.gives_bytes_per_ns:.3g} GB/s that its link carries",
                remedy="measure again when the machine is quiet; else bind the process to the"
                " card's memory node (numactl), and see whether others share its switch or the"
                " chipset's lanes",
            )
