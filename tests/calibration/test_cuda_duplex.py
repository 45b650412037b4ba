"""Copies both ways at once against the double of CuPy: by two engines, by one, between cards."""

from typing import Any

import pytest
from cupy_double import BYTES_PER_NS, EVENT_NS, LATENCY_NS, CupyDouble
from fake_device import HASTY

from fuel_gpu.calibration.backends.cuda import CudaDevice
from fuel_gpu.calibration.measure import measure_device, measure_peer
from fuel_gpu.calibration.records import CopyMeasured, DuplexMeasured, Note, RateMeasured, Record
from fuel_gpu.calibration.table import Conditions, Duplex
from fuel_gpu.probes.report import DeviceInfo

MIB = 2**20
COPY_NS = LATENCY_NS + round(MIB / BYTES_PER_NS["pinned"])
AROUND_NS = 2 * EVENT_NS
"""The event that begins the second stream's copy, and the one that ends it."""


def info(index: int = 0, memory_bytes: int = 2**28) -> DeviceInfo:
    return DeviceInfo(id=f"cuda:{index}", backend="cuda", name="card", memory_bytes=memory_bytes)


def measured(records: list[Record]) -> list[Duplex]:
    return [record.duplex for record in records if isinstance(record, DuplexMeasured)]


@pytest.mark.parametrize(("engines", "copies_in_a_row"), [(2, 1), (1, 2)])
def test_two_engines_copy_at_once_and_one_in_turn(engines: int, copies_in_a_row: int) -> None:
    device = CudaDevice(CupyDouble(copy_engines=engines), 0)
    work = device.both_ways(MIB, "pinned")
    assert work.amount == 2 * MIB
    assert not work.correct()
    assert work.run() == pytest.approx(copies_in_a_row * COPY_NS + AROUND_NS, abs=EVENT_NS)
    assert work.correct()
    assert device.copy_engines() == engines


def test_a_copy_that_is_lost_is_found_out() -> None:
    work = CudaDevice(CupyDouble(lose_copies=True), 0).both_ways(4096, "pinned")
    work.run()
    assert not work.correct()


@pytest.mark.parametrize(("peers", "memory"), [(True, "peer"), (False, "staged")])
def test_two_cards_exchange_bytes_at_once(peers: bool, memory: str) -> None:
    double = CupyDouble(devices=2, peers=peers)
    device = CudaDevice(double, 0)
    device.peer_copies(info(1), 8).release()  # what lets the cards reach each other
    work = device.peer_both_ways(info(1), MIB)
    assert not work.correct()
    expected = LATENCY_NS + round(MIB / BYTES_PER_NS[memory]) + AROUND_NS
    assert work.run() == pytest.approx(expected, abs=EVENT_NS)
    assert work.correct()
    assert double.current_device == 0


def test_the_hosts_link_is_measured_with_all_that_belongs_to_a_figure() -> None:
    records = list(measure_device(info(), CudaDevice(CupyDouble(), 0), HASTY))
    (duplex,) = measured(records)
    assert (duplex.ends, duplex.memory) == (("cpu:0", "cuda:0"), "pinned")
    assert duplex.bytes == 16 * MIB  # half of the largest copy, an eighth of the card's memory
    one_way = 16 * MIB / (LATENCY_NS + 16 * MIB / BYTES_PER_NS["pinned"])
    assert duplex.bytes_per_ns == pytest.approx(2 * one_way, rel=0.01)
    assert len(duplex.samples) >= HASTY.fewest
    assert duplex.interval == pytest.approx((duplex.bytes_per_ns, duplex.bytes_per_ns))
    assert (duplex.copy_engines, duplex.provenance, duplex.flags) == (2, "measured", ())


def test_two_cards_link_is_measured_too() -> None:
    device = CudaDevice(CupyDouble(devices=2), 0)
    (duplex,) = measured(list(measure_peer(info(0), device, info(1), HASTY)))
    assert (duplex.ends, duplex.memory) == (("cuda:0", "cuda:1"), "peer")


def test_a_lost_copy_costs_the_figure_and_a_note() -> None:
    records = list(measure_device(info(), CudaDevice(CupyDouble(lose_copies=True), 0), HASTY))
    assert measured(records) == []
    notes = [record.text for record in records if isinstance(record, Note)]
    assert "copies both ways at once, pinned: came back different, left out" in notes


def test_too_little_memory_is_told() -> None:
    small = info(memory_bytes=8 * MIB)
    records = list(measure_device(small, CudaDevice(CupyDouble(), 0), HASTY))
    notes = [record.text for record in records if isinstance(record, Note)]
    assert "copies both ways at once, pinned: only 1 MiB of memory may be used for one" in notes


def test_what_the_cards_counters_say_stands_by_each_figure() -> None:
    capped = Conditions(link_generation=4, link_width=16, throttled=("software power cap",))
    cool = Conditions(link_generation=4, link_width=16)

    class Counters:
        """Says that the card is throttled in products, and nowhere else."""

        looks = 0

        def watch(self) -> None:
            self.looks = 0

        def look(self) -> None:
            self.looks += 1

        def conditions(self) -> Conditions | None:
            return (capped if multiplying else cool) if self.looks else None

    multiplying = False
    device: Any = CudaDevice(CupyDouble(), 0, Counters())  # type: ignore[arg-type]  # a double
    product = device.product

    def hot_product(*arguments: Any) -> Any:
        nonlocal multiplying
        multiplying = True
        return product(*arguments)

    def cool_stream(*arguments: Any) -> Any:
        nonlocal multiplying
        multiplying = False
        return CudaDevice.stream(device, *arguments)

    device.product, device.stream = hot_product, cool_stream
    card = DeviceInfo(
        id="cuda:0", backend="cuda", name="card", memory_bytes=2**28, dtypes=("float32",)
    )
    records = list(measure_device(card, device, HASTY))
    (duplex,) = measured(records)
    assert duplex.conditions == cool
    rate = [record.rate for record in records if isinstance(record, RateMeasured)][-1]
    assert rate.launch_conditions == cool
    assert rate.flops_conditions == capped
    assert rate.bytes_conditions == cool
    assert [flag for flag in rate.flags if "throttled" in flag] == ["flops: throttled"]
    assert {r.conditions for r in records if isinstance(r, CopyMeasured)} == {cool}
