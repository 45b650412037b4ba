"""A card's link, from the system and NVML, beside what the table's copies carried."""

from typing import Any

import msgspec
import pytest

from fuel_gpu.calibration.curves import line_curve
from fuel_gpu.calibration.link_health import Carried, link_health
from fuel_gpu.calibration.staleness import describe_machine
from fuel_gpu.calibration.table import FORMAT_VERSION, Conditions, Point, Table, Transfer
from fuel_gpu.probes.pcie import Hop, Link
from fuel_gpu.probes.report import DeviceInfo, ProbeReport
from fuel_gpu.probes.surroundings import PciGpu, Surroundings

MIB = 2**20
ADDRESS = "0000:01:00.0"
NVML = {
    "pcie_generation": 1,
    "pcie_width": 16,
    "pcie_max_generation": 4,
    "pcie_max_width": 16,
}


def device(name: str, **fields: Any) -> DeviceInfo:
    return DeviceInfo(
        id=name, backend=name.partition(":")[0], name="Some Card", memory_bytes=1 << 33, **fields
    )


CPU = device("cpu:0", host_processor=True, unified_memory=True)
CUDA = device("cuda:0", pci_address=ADDRESS, details=NVML)
BY_OPENCL = device("opencl:0", pci_address=ADDRESS)
REPORT = ProbeReport(devices=(CPU, CUDA, BY_OPENCL))


def transfer(src: str, dst: str, memory: str, *points: tuple[int, int], **fields: Any) -> Transfer:
    values = {"provenance": "measured", **fields}
    return Transfer(
        src=src,
        dst=dst,
        memory=memory,
        points=tuple(Point(bytes=size, ns=ns) for size, ns in points),
        curve=line_curve(0, 1.0),
        **values,
    )


def table(*transfers: Transfer, devices: tuple[DeviceInfo, ...] = REPORT.devices) -> Table:
    return Table(
        version=FORMAT_VERSION,
        machine=describe_machine(REPORT),
        created="",
        devices=devices,
        transfers=transfers,
        rates=(),
    )


def test_nvml_alone_tells_the_cards_link() -> None:
    (link,) = link_health(REPORT, Surroundings(), None)
    assert (link.device, link.vendor) == ("cuda:0", "NVIDIA")
    assert link.hops == (Hop(ADDRESS, Link(1, 16), Link(4, 16)),)
    assert link.gives_bytes_per_ns == pytest.approx(31.507692)
    assert link.carried == ()


def test_the_systems_links_include_the_slot_and_the_narrowest_counts() -> None:
    slot = Hop("0000:00:03.0", Link(3, 4), Link(4, 16), Link(3, 4))
    own = Hop(ADDRESS, Link(1, 16), Link(1, 16), Link(4, 16))  # understated while it idles
    around = Surroundings(gpus=(PciGpu(ADDRESS, "NVIDIA", "nvidia", (slot, own)),))
    (link,) = link_health(REPORT, around, None)
    assert link.hops == (slot, Hop(ADDRESS, Link(1, 16), Link(4, 16), Link(4, 16)))
    assert link.gives_bytes_per_ns == pytest.approx(3.938462)  # 8 GT/s x 4 x 128/130 / 8


def test_cards_without_a_known_link_or_with_the_hosts_memory_have_none() -> None:
    integrated = device("vulkan:0", pci_address="0000:00:02.0", unified_memory=True)
    gpus = (PciGpu("0000:00:02.0", "Intel", "i915", (Hop("", Link(4, 16), Link(4, 16)),)),)
    report = ProbeReport(devices=(CPU, integrated, device("cuda:0")))
    assert link_health(report, Surroundings(gpus=gpus), None) == []


def test_the_best_large_copy_of_any_door_counts() -> None:
    measured = table(
        transfer("cpu:0", "cuda:0", "pinned", (MIB, 10_000), (4 * MIB, 200_000), (64 * MIB, 2**22)),
        transfer("cuda:0", "cpu:0", "pinned", (64 * MIB, 2**23)),
        transfer("cpu:0", "cuda:0", "pageable", (64 * MIB, 2**24)),
        transfer("cpu:0", "opencl:0", "mapped", (64 * MIB, 2**23)),
        transfer("cuda:0", "cpu:0", "mapped", (64 * MIB, 1), provenance="datasheet"),
        transfer("cuda:0", "opencl:0", "peer", (64 * MIB, 1)),
    )
    (link,) = link_health(REPORT, Surroundings(), measured)
    # 4 MiB in 0.2 ms are 20.97 byte/ns; 2**26 bytes in 2**22 ns are 16.
    assert set(link.carried) == {
        Carried(to_device=True, memory="pinned", bytes_per_ns=4 * MIB / 200_000),
        Carried(to_device=False, memory="pinned", bytes_per_ns=8.0),
        Carried(to_device=True, memory="pageable", bytes_per_ns=4.0),
        Carried(to_device=True, memory="mapped", bytes_per_ns=8.0),
    }
    assert {one.memory for one in link.pinned} == {"pinned"}
    assert len(link.pinned) == 2
    best = link.best(to_device=True)
    assert best is not None
    assert (best.memory, best.bytes_per_ns) == ("pinned", 4 * MIB / 200_000)


def test_the_link_under_load_is_the_best_that_copies_with_the_host_saw() -> None:
    saw = [Conditions(link_generation=generation, link_width=16) for generation in (1, 4, 3, 5)]
    measured = table(
        transfer("cpu:0", "cuda:0", "pageable", (64 * MIB, 2**24), conditions=saw[0]),
        transfer("cpu:0", "cuda:0", "pinned", (64 * MIB, 2**22), conditions=saw[1]),
        transfer("cuda:0", "cpu:0", "pinned", (64 * MIB, 2**22), conditions=saw[2]),
        transfer("cuda:0", "opencl:0", "peer", (64 * MIB, 2**22), conditions=saw[3]),
    )
    (link,) = link_health(REPORT, Surroundings(), measured)
    assert link.loaded == Link(4, 16)
    nothing = transfer("cpu:0", "cuda:0", "pinned", (64 * MIB, 2**22), conditions=Conditions())
    (link,) = link_health(REPORT, Surroundings(), table(nothing))
    assert link.loaded is None


def test_pinned_copies_are_the_best_even_if_others_look_faster() -> None:
    fastest = transfer("cpu:0", "cuda:0", "pageable", (64 * MIB, 1))
    pinned = transfer("cpu:0", "cuda:0", "pinned", (64 * MIB, 2**22))
    (link,) = link_health(REPORT, Surroundings(), table(fastest, pinned))
    best = link.best(to_device=True)
    assert best is not None
    assert best.memory == "pinned"
    assert link.best(to_device=False) is None


def test_measurements_of_another_machine_or_card_are_left_out() -> None:
    copies = transfer("cpu:0", "cuda:0", "pinned", (64 * MIB, 2**22))
    other_card = msgspec.structs.replace(CUDA, driver="another")
    (link,) = link_health(REPORT, Surroundings(), table(copies, devices=(CPU, other_card)))
    assert link.carried == ()
    elsewhere = msgspec.structs.replace(CPU, name="Another Processor")
    report = ProbeReport(devices=(elsewhere, CUDA))
    (link,) = link_health(report, Surroundings(), table(copies))
    assert link.carried == ()


def test_small_copies_tell_nothing_of_a_link() -> None:
    copies = transfer("cpu:0", "cuda:0", "pinned", (MIB, 10_000))
    (link,) = link_health(REPORT, Surroundings(), table(copies))
    assert link.carried == ()
