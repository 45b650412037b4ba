"""A link with too few lanes, too low a generation or too little bandwidth is named."""

from typing import Any

import msgspec
import pytest

from fuel_gpu.calibration.curves import line_curve
from fuel_gpu.calibration.link_findings import link_findings, peer_findings
from fuel_gpu.calibration.link_health import Carried, LinkHealth
from fuel_gpu.calibration.table import FORMAT_VERSION, Machine, Table, Transfer
from fuel_gpu.probes.finding import Finding
from fuel_gpu.probes.pcie import Hop, Link

CARD = "0000:01:00.0"
FULL = Hop(CARD, Link(4, 16), Link(4, 16), Link(4, 16))
IDLE = Hop(CARD, Link(1, 16), Link(4, 16), Link(4, 16))


def link(
    *hops: Hop,
    carried: tuple[Carried, ...] = (),
    vendor: str = "NVIDIA",
    loaded: Link | None = None,
) -> LinkHealth:
    return LinkHealth(
        device="cuda:0",
        name="Some Card",
        vendor=vendor,
        hops=hops,
        gives_bytes_per_ns=min(hop.usable.bytes_per_ns for hop in hops),
        carried=carried,
        loaded=loaded,
    )


def pinned(to_card: float, from_card: float) -> tuple[Carried, ...]:
    return (
        Carried(to_device=True, memory="pinned", bytes_per_ns=to_card),
        Carried(to_device=False, memory="pinned", bytes_per_ns=from_card),
    )


def found(one: LinkHealth) -> list[tuple[str, str]]:
    assert all(finding.subject == "cuda:0" for finding in link_findings([one]))
    return [(finding.severity, finding.what) for finding in link_findings([one])]


def test_a_link_at_its_best_has_nothing_to_say() -> None:
    assert found(link(FULL)) == []
    assert found(link(FULL, carried=pinned(25.0, 26.0))) == []


def test_lanes_that_are_lost_are_a_problem() -> None:
    narrow = Hop(CARD, Link(4, 4), Link(4, 16), Link(4, 16))
    assert found(link(narrow)) == [
        ("problem", "its link runs with 4 of 16 lanes (PCIe 4 x4 at present)")
    ]
    assert link_findings([link(narrow)])[0].remedy.startswith("reseat the card")
    # The copies fit the lanes that are left: 7.88 GB/s. They are not complained of again.
    assert len(found(link(narrow, carried=pinned(6.5, 6.5)))) == 1


def test_lanes_of_an_idle_card_of_another_maker_may_come_back() -> None:
    narrow = Hop(CARD, Link(1, 8), Link(4, 16), Link(4, 16))
    severity, what = found(link(narrow, vendor="AMD"))[0]
    assert severity == "warning"
    assert what.endswith("perhaps to save power at idle")
    assert found(link(narrow))[0][0] == "problem"


def test_a_slot_narrower_and_older_than_the_card_is_named() -> None:
    slot = Hop(CARD, Link(3, 8), Link(4, 16), Link(3, 8))
    assert found(link(slot)) == [
        ("warning", "its link has 8 lanes, the card 16"),
        ("note", "its link is of generation 3, the card of 4"),
    ]


def test_a_link_above_the_card_is_told_by_its_address() -> None:
    above = Hop("0000:00:03.0", Link(4, 8), Link(4, 16), Link(4, 16))
    assert found(link(above, FULL)) == [
        (
            "problem",
            "the link above it, at 0000:00:03.0, runs with 8 of 16 lanes (PCIe 4 x8 at present)",
        )
    ]


def test_a_low_generation_at_idle_is_normal() -> None:
    (finding,) = link_findings([link(IDLE)])
    assert finding == Finding(
        severity="note",
        subject="cuda:0",
        what="its link is at PCIe 1 x16 now and can be PCIe 4 x16: idle links do so; only pinned"
        " copies under load tell whether it rises",
        remedy="fuel-gpu calibrate",
    )
    assert found(link(IDLE, carried=pinned(24.9, 23.0))) == [
        (
            "note",
            "its link is at PCIe 1 x16 now and can be PCIe 4 x16: idle links do so; under load"
            " copies reached 24.9 GB/s",
        )
    ]


def test_a_low_generation_under_load_is_a_problem() -> None:
    # PCIe 1 x16 carries 4 GB/s: copies at 3.3 GB/s show that the link never rose.
    assert found(link(IDLE, carried=pinned(3.3, 3.1))) == [
        (
            "problem",
            "its link stays at PCIe 1 x16 under load: copies reached 3.3 GB/s, where PCIe 4 x16"
            " carries 31.5 GB/s",
        )
    ]


def test_what_was_recorded_under_load_counts_more_than_what_copies_suggest() -> None:
    # Slow copies alone would say that the link never rose; the card's counters saw it risen.
    risen = link(IDLE, carried=pinned(3.3, 3.1), loaded=Link(4, 16))
    assert [severity for severity, _ in found(risen)] == ["note", "warning", "warning"]
    assert found(risen)[0][1] == (
        "its link is at PCIe 1 x16 now and can be PCIe 4 x16: idle links do so; under load it was"
        " at PCIe 4 x16 and copies reached 3.3 GB/s"
    )
    # Copies at 7 GB/s are more than generation 1 carries, but generation 2 is no generation 4.
    assert found(link(IDLE, carried=pinned(7.0, 7.0), loaded=Link(2, 16))) == [
        (
            "problem",
            "its link stays at PCIe 2 x16 under load: copies reached 7 GB/s, where PCIe 4 x16"
            " carries 31.5 GB/s",
        )
    ]


def test_a_link_that_was_slow_under_load_is_named_even_if_it_is_fast_now() -> None:
    (said,) = found(link(FULL, carried=pinned(7.0, 7.0), loaded=Link(2, 16)))
    assert said[1].startswith("its link stays at PCIe 2 x16 under load")


def test_lanes_that_come_back_under_load_are_no_problem() -> None:
    narrow = Hop(CARD, Link(1, 8), Link(4, 16), Link(4, 16))
    said = found(link(narrow, carried=pinned(13.0, 13.0), loaded=Link(4, 16)))
    assert said[0] == (
        "note",
        "its link runs with 8 of 16 lanes to save power at idle: under load it was at PCIe 4 x16",
    )
    assert found(link(narrow, loaded=Link(4, 8)))[0][0] == "problem"


@pytest.mark.parametrize(
    ("to_card", "from_card", "expected"),
    [
        (19.0, 18.95, []),  # 60 % of 31.508 is 18.905
        (
            19.0,
            15.0,
            ["copies from the card (pinned memory) reached 15 GB/s, 48% of the 31.5 GB/s that"],
        ),
        (
            12.6,
            25.0,
            ["copies to the card (pinned memory) reached 12.6 GB/s, 40% of the 31.5 GB/s that"],
        ),
    ],
)
def test_bandwidth_below_its_fair_share_is_a_warning(
    to_card: float, from_card: float, expected: list[str]
) -> None:
    said = found(link(FULL, carried=pinned(to_card, from_card)))
    assert [severity for severity, _ in said] == ["warning"] * len(expected)
    assert [what.removesuffix(" its link carries") for _, what in said] == expected


def test_an_idle_link_that_rose_but_not_far_is_a_warning() -> None:
    said = found(link(IDLE, carried=pinned(10.0, 25.0)))
    assert [severity for severity, _ in said] == ["note", "warning"]


def test_copies_that_are_not_pinned_do_not_judge_the_link_and_are_named() -> None:
    pageable = tuple(
        Carried(to_device=True, memory=memory, bytes_per_ns=3.0)
        for memory in ("pageable", "mapped")
    )
    words = (
        "copies were measured from mapped and pageable memory only, which tells little of the link"
    )
    assert found(link(FULL, carried=pageable)) == [("warning", words)]
    by_vulkan = msgspec.structs.replace(link(FULL, carried=pageable), device="vulkan:0")
    (finding,) = link_findings([by_vulkan])
    assert (finding.severity, finding.what, finding.remedy) == ("note", words, "")


def test_any_copy_can_show_that_a_link_rose_but_only_pinned_ones_that_it_did_not() -> None:
    fast = (Carried(to_device=True, memory="pageable", bytes_per_ns=9.0),)
    slow = (Carried(to_device=True, memory="pageable", bytes_per_ns=3.0),)
    assert found(link(IDLE, carried=fast))[0][1].endswith("under load copies reached 9 GB/s")
    severity, what = found(link(IDLE, carried=slow))[0]
    assert severity == "note"
    assert what.endswith("only pinned copies under load tell whether it rises")


def transfer(memory: str, **fields: Any) -> Transfer:
    values = {"src": "cuda:0", "dst": "cuda:1", "provenance": "measured", **fields}
    return Transfer(memory=memory, points=(), curve=line_curve(0, 1.0), **values)


def table(*transfers: Transfer) -> Table:
    return Table(
        version=FORMAT_VERSION,
        machine=Machine(fingerprint=""),
        created="",
        devices=(),
        transfers=transfers,
        rates=(),
    )


def test_cards_that_do_not_reach_each_other_are_a_note_once() -> None:
    there, back = transfer("staged"), transfer("staged", src="cuda:1", dst="cuda:0")
    (finding,) = peer_findings(table(there, back))
    assert (finding.severity, finding.subject) == ("note", "cuda:0 and cuda:1")
    assert finding.remedy.startswith("nvidia-smi topo -p2p r")
    assert peer_findings(table(transfer("peer"))) == []
    assert peer_findings(table(transfer("staged", provenance="datasheet"))) == []
    assert peer_findings(None) == []
