"""What PCI Express links carry, and how the system's tree of them is read."""

from pathlib import Path

import pytest

from fuel_gpu.probes.pcie import Hop, Link, hops


@pytest.mark.parametrize(
    ("link", "gb_per_s"),
    [
        (Link(1, 16), 4.0),  # 2.5 GT/s x 16 x 8/10 / 8
        (Link(2, 1), 0.5),  # 5 x 1 x 8/10 / 8
        (Link(3, 16), 15.753846),  # 8 x 16 x 128/130 / 8
        (Link(4, 16), 31.507692),
        (Link(4, 4), 7.876923),
        (Link(5, 16), 63.015385),
        (Link(6, 16), 118.0),  # 64 x 16 x 236/256 / 8
    ],
    ids=str,
)
def test_a_link_carries_its_transfers_less_the_encoding(link: Link, gb_per_s: float) -> None:
    assert link.bytes_per_ns == pytest.approx(gb_per_s, rel=1e-6)


@pytest.mark.parametrize(
    ("hop", "best", "usable"),
    [
        (Hop("a", Link(1, 16), Link(4, 16)), Link(4, 16), Link(4, 16)),
        (Hop("a", Link(1, 8), Link(4, 16), Link(3, 8)), Link(3, 8), Link(3, 8)),
        (Hop("a", Link(3, 4), Link(4, 16), Link(3, 16)), Link(3, 16), Link(3, 4)),
        # A virtual machine's port claims less than the link has: it is not believed.
        (Hop("a", Link(4, 16), Link(4, 16), Link(1, 1)), Link(4, 16), Link(4, 16)),
    ],
)
def test_a_link_is_as_good_as_both_its_ends(hop: Hop, best: Link, usable: Link) -> None:
    assert (hop.best, hop.usable) == (best, usable)


def put(root: Path, path: str, now: str, best: str) -> None:
    """Write a device's folder as Linux does, with links given as ``16.0 GT/s PCIe x8``."""
    folder = root / "sys/devices/pci0000:00" / path
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("current", now), ("max", best)):
        speed, _, width = text.rpartition(" x")
        (folder / f"{name}_link_speed").write_text(f"{speed}\n")
        (folder / f"{name}_link_width").write_text(f"{width}\n")
    entry = root / "sys/bus/pci/devices" / folder.name
    entry.parent.mkdir(parents=True, exist_ok=True)
    entry.symlink_to(folder)


def test_a_card_in_a_slot_has_one_link(tmp_path: Path) -> None:
    put(tmp_path, "0000:00:01.0", "2.5 GT/s PCIe x8", "16.0 GT/s PCIe x8")
    put(tmp_path, "0000:00:01.0/0000:01:00.0", "2.5 GT/s PCIe x8", "32.0 GT/s PCIe x16")
    assert hops("0000:01:00.0", tmp_path) == (
        Hop("0000:01:00.0", Link(1, 8), Link(5, 16), Link(4, 8)),
    )


def test_a_card_behind_a_switch_has_the_slots_link_and_its_own(tmp_path: Path) -> None:
    root_port, upper, lower = "0000:00:01.0", "0000:01:00.0", "0000:02:00.0"
    put(tmp_path, root_port, "8.0 GT/s PCIe x4", "8.0 GT/s PCIe x4")
    put(tmp_path, f"{root_port}/{upper}", "8.0 GT/s PCIe x4", "16.0 GT/s PCIe x16")
    put(tmp_path, f"{root_port}/{upper}/{lower}", "16.0 GT/s PCIe x16", "16.0 GT/s PCIe x16")
    put(
        tmp_path,
        f"{root_port}/{upper}/{lower}/0000:03:00.0",
        "16.0 GT/s PCIe x16",
        "16.0 GT/s PCIe x16",
    )
    assert hops("0000:03:00.0", tmp_path) == (
        Hop(upper, Link(3, 4), Link(4, 16), Link(3, 4)),
        Hop("0000:03:00.0", Link(4, 16), Link(4, 16), Link(4, 16)),
    )


@pytest.mark.parametrize(
    "link", ["Unknown x255", "Unknown speed x0", "16.0 GT/s PCIe x63", "17.0 GT/s PCIe x16"]
)
def test_a_link_that_the_system_does_not_know_is_none(tmp_path: Path, link: str) -> None:
    put(tmp_path, "0000:00:02.0", link, link)
    assert hops("0000:00:02.0", tmp_path) == ()


def test_a_device_without_a_port_above_it_is_taken_alone(tmp_path: Path) -> None:
    put(tmp_path, "0000:00:05.0", "32.0 GT/s PCIe x16", "32.0 GT/s PCIe x16")
    assert hops("0000:00:05.0", tmp_path) == (Hop("0000:00:05.0", Link(5, 16), Link(5, 16)),)
    assert hops("0000:00:06.0", tmp_path) == ()
    assert hops("", tmp_path) == ()
