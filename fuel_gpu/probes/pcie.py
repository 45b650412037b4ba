"""PCI Express links: what each generation and width can carry, and how a card is connected."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_GT_PER_S: Final = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
_ENCODING: Final = {1: 8 / 10, 2: 8 / 10, 3: 128 / 130, 4: 128 / 130, 5: 128 / 130, 6: 236 / 256}
"""The share of a generation's transfers that carries packets.

8 of 10 bits; 128 of 130 bits; 236 of the 256 bytes of a flit. Source: PCI Express Base
Specification, revisions 2.0, 3.0 and 6.0.
"""

_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_WIDTHS: Final = (1, 2, 4, 8, 12, 16, 32)


@dataclass(frozen=True, slots=True)
class Link:
    """A generation and a number of lanes, written ``PCIe 4 x16``."""

    generation: int
    width: int

    def __str__(self) -> str:
        return f"PCIe {self.generation} x{self.width}"

    @property
    def bytes_per_ns(self) -> float:
        """What it carries at most in one direction: GT/s x lanes x encoding / 8.

        Each packet of 128 or 256 bytes spends 20 to 24 bytes more on framing and its header,
        which leaves copies 84 to 93 % of this.
        """
        return _GT_PER_S[self.generation] * self.width * _ENCODING[self.generation] / 8

    def common(self, other: "Link") -> "Link":
        """Give the best link that both can have."""
        return Link(min(self.generation, other.generation), min(self.width, other.width))


@dataclass(frozen=True, slots=True)
class Hop:
    """One link on the way from the processor to a card.

    Parameters
    ----------
    address
        The PCI address of its lower end: the card, or a switch above it.
    now
        How it runs at present; an idle link falls to generation 1 by itself.
    device
        What its lower end can do.
    port
        What its upper end can do, which is the slot or a switch; None if unknown.
    """

    address: str
    now: Link
    device: Link
    port: Link | None = None

    @property
    def best(self) -> Link:
        """What both ends can do.

        A port that claims less than the link has now is a virtual machine's, and is not believed.
        """
        if self.port is None or self.port.common(self.now) != self.now:
            return self.device
        return self.device.common(self.port)

    @property
    def usable(self) -> Link:
        """What it should be under load: its generation rises by itself, its width does not."""
        return Link(self.best.generation, min(self.now.width, self.best.width))


def known_generation(generation: int) -> bool:
    """Whether what a generation carries is known here."""
    return generation in _GT_PER_S


def hops(address: str, root: Path = Path("/")) -> tuple[Hop, ...]:
    """Read the links from the processor down to a device; empty where the system tells of none.

    Parameters
    ----------
    address
        Its PCI address.
    root
        Where Linux' ``sys`` is mounted.
    """
    place = root / "sys/bus/pci/devices" / address
    chain = [part for part in place.resolve().parts if _ADDRESS.fullmatch(part)]
    if not chain:
        return ()
    folder = place.parent
    # A path is root port, device; or root port, (switch's upper port, its lower port) ..., device.
    # The two ports of a switch have no link between them.
    pairs: list[tuple[str | None, str]] = list(zip(chain[0::2], chain[1::2], strict=False))
    pairs = pairs or [(None, chain[0])]
    found = []
    for port, device in pairs:
        now, best = _link(folder / device, "current"), _link(folder / device, "max")
        if now is not None and best is not None:
            found.append(Hop(device, now, best, _link(folder / port, "max") if port else None))
    return tuple(found)


def _link(device: Path, which: str) -> Link | None:
    try:
        speed = (device / f"{which}_link_speed").read_text()
        width = (device / f"{which}_link_width").read_text().strip()
    except OSError:
        return None
    rate = re.match(r"\s*([0-9.]+)\s*GT/s", speed)
    generation = next((g for g, gt in _GT_PER_S.items() if rate and gt == float(rate[1])), None)
    if generation is None or not width.isdecimal() or int(width) not in _WIDTHS:
        return None  # "Unknown" and widths of 0, 63 or 255 stand for "no link"
    return Link(generation, int(width))
