"""Comparing two tables: each rule by itself, on figures whose noise is written out."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from export_tables import MACHINE, MIB, UP, copies, device
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu.calibration.compare import Change, Comparison, compare
from fuel_gpu.calibration.curves import line_curve
from fuel_gpu.calibration.sampling import relative_half_width, summarize
from fuel_gpu.calibration.table import (
    FORMAT_VERSION,
    Duplex,
    Machine,
    NodeStream,
    Point,
    Rate,
    Table,
    Transfer,
)


def table_of(*points: Point, rates: Sequence[Rate] = ()) -> Table:
    """One card with copies to it, and rates."""
    transfer = Transfer(
        src="cpu:0",
        dst="cuda:0",
        points=points,
        curve=line_curve(1_000, 8.0),
        provenance="measured",
    )
    return Table(
        version=FORMAT_VERSION,
        machine=Machine(fingerprint="abc", cpu="a processor"),
        created="",
        devices=(device("cpu:0", "a processor"), device("cuda:0", "a card")),
        transfers=(transfer,) if points else (),
        rates=tuple(rates),
    )


def point(ns: int, low: int, high: int, *, size: int = MIB, flags: tuple[str, ...] = ()) -> Point:
    samples = (low, low, *[ns] * 3, high, high)
    return Point(bytes=size, ns=ns, samples=samples, interval=(low, high), flags=flags)


def rate(
    flops_per_ns: float | None = 100.0,
    *,
    bytes_per_ns: float | None = None,
    launch_ns: int = 5_000,
    dtype: str = "float32",
) -> Rate:
    return Rate(
        device="cuda:0",
        dtype=dtype,
        flops_per_ns=flops_per_ns,
        bytes_per_ns=bytes_per_ns,
        launch_ns=launch_ns,
        provenance="datasheet",
    )


def kinds(comparison: Comparison) -> list[tuple[str, str]]:
    return [(change.kind, change.quantity) for change in comparison.changes]


def only(comparison: Comparison) -> Change:
    (change,) = comparison.changes
    return change


OLD = table_of(point(100_000, 98_000, 102_000))


def test_a_table_does_not_differ_from_itself() -> None:
    comparison = compare(MACHINE, MACHINE)
    assert comparison.changes == ()
    assert not comparison.got_slower
    # 3 + 3 + 2 sizes, two for the line without points, one rate, one launch
    assert comparison.compared == 12


def test_slower_is_beyond_both_intervals_and_the_threshold() -> None:
    change = only(compare(OLD, table_of(point(125_000, 120_000, 130_000))))
    assert (change.kind, change.quantity, change.factor) == ("slower", "copy", 1.25)
    assert (change.src, change.dst, change.memory, change.bytes) == (
        *("cpu:0", "cuda:0", "pageable", MIB),
    )
    assert change.old is not None
    assert change.new is not None
    assert (change.old.low, change.old.value, change.old.high) == (98_000, 100_000, 102_000)
    assert (change.new.low, change.new.value, change.new.high) == (120_000, 125_000, 130_000)


def test_faster_is_the_same_the_other_way_round() -> None:
    comparison = compare(table_of(point(125_000, 120_000, 130_000)), OLD)
    assert (only(comparison).kind, only(comparison).factor) == ("faster", 0.8)
    assert not comparison.got_slower


def test_intervals_that_overlap_are_noise_however_far_the_medians() -> None:
    assert compare(OLD, table_of(point(150_000, 102_000, 200_000))).changes == ()


def test_a_small_change_does_not_count_however_sure() -> None:
    new = table_of(point(109_000, 108_900, 109_100))
    assert compare(OLD, new).changes == ()
    assert kinds(compare(OLD, new, threshold=0.08)) == [("slower", "copy")]
    assert compare(OLD, new, threshold=0.09).changes == ()  # must exceed it


def test_drifting_samples_have_the_noise_of_their_middle_80_percent() -> None:
    """Ten samples from 100 to 190 us: the 90 % quantile is 181 us, whatever the interval says."""
    samples = tuple(range(100_000, 200_000, 10_000))

    def drifting(flags: tuple[str, ...]) -> Table:
        return table_of(
            Point(bytes=MIB, ns=145_000, samples=samples, interval=(140_000, 150_000), flags=flags)
        )

    new = table_of(point(170_000, 169_000, 171_000))
    assert kinds(compare(drifting(("unsettled",)), new)) == [("slower", "copy")]
    assert compare(drifting(("drift",)), new).changes == ()
    assert compare(drifting(("bimodal",)), new).changes == ()
    later = table_of(point(190_000, 182_000, 195_000))
    assert kinds(compare(drifting(("drift",)), later)) == [("slower", "copy")]


def test_few_samples_have_the_noise_of_three_times_their_range() -> None:
    """Of 98, 100 and 102 us: from 94 to 106 us."""

    def of(samples: tuple[int, ...]) -> Table:
        ends = min(samples), max(samples)
        return table_of(Point(bytes=MIB, ns=100_000, samples=samples, interval=ends))

    few, many = of((98_000, 100_000, 102_000)), of((98_000, 100_000, 102_000) * 2)
    inside, outside = (table_of(point(ns + 15_000, ns, ns + 30_000)) for ns in (105_900, 106_100))
    assert kinds(compare(many, inside)) == [("slower", "copy")]
    assert compare(few, inside).changes == ()
    assert kinds(compare(few, outside)) == [("slower", "copy")]


def test_rates_are_slower_when_they_fall() -> None:
    comparison = compare(table_of(rates=[rate(100.0)]), table_of(rates=[rate(80.0)]))
    assert (only(comparison).kind, only(comparison).factor) == ("slower", 1.25)
    assert (only(comparison).quantity, only(comparison).unit) == ("compute", "FLOP/ns")
    assert comparison.got_slower


def test_datasheet_figures_are_compared_by_value() -> None:
    old = table_of(rates=[rate(100.0, bytes_per_ns=10.0)])
    new = table_of(rates=[rate(111.0, bytes_per_ns=10.5)])
    assert kinds(compare(old, new)) == [("faster", "compute")]


def duplex(bytes_per_ns: float) -> Duplex:
    return Duplex(
        ends=("cpu:0", "cuda:0"),
        memory="pinned",
        bytes=MIB,
        bytes_per_ns=bytes_per_ns,
        provenance="measured",
        samples=(bytes_per_ns,) * 6,
        interval=(0.98 * bytes_per_ns, 1.02 * bytes_per_ns),
    )


def test_copies_both_ways_at_once_are_compared_by_their_bandwidth() -> None:
    before, now = (msgspec.structs.replace(OLD, duplex=(duplex(b),)) for b in (40.0, 20.0))
    change = only(compare(before, now))
    assert (change.kind, change.quantity, change.unit) == ("slower", "both ways", "byte/ns")
    assert (change.src, change.dst, change.memory) == ("cpu:0", "cuda:0", "pinned")
    assert change.factor == 2.0
    assert kinds(compare(now, before)) == [("faster", "both ways")]
    assert kinds(compare(OLD, now)) == [("appeared", "both ways")]


def test_each_memory_nodes_streaming_is_compared() -> None:
    def table(second: float) -> Table:
        nodes = [
            NodeStream(node=n, cpus="0-7", bytes_per_ns=b, samples=(b,) * 6, interval=(b, b))
            for n, b in enumerate((32.0, second))
        ]
        return table_of(rates=[msgspec.structs.replace(rate(), nodes=tuple(nodes))])

    change = only(compare(table(32.0), table(16.0)))
    assert (change.kind, change.quantity, change.dtype) == (
        "slower",
        "memory of node 1",
        "float32",
    )
    assert change.factor == 2.0


def test_a_launch_that_was_measured_once_for_all_dtypes_is_one_change() -> None:
    dtypes = ("float32", "float16")
    old = table_of(rates=[rate(dtype=d) for d in dtypes])
    new = table_of(rates=[rate(dtype=d, launch_ns=7_500) for d in dtypes])
    change = only(compare(old, new))
    assert (change.quantity, change.dtype, change.factor) == ("launch", "", 1.5)
    other = table_of(rates=[rate(launch_ns=7_500), rate(dtype="float16", launch_ns=10_000)])
    assert [(c.dtype, c.factor) for c in compare(old, other).changes] == [
        ("float16", 2.0),
        ("float32", 1.5),
    ]


def test_a_launch_of_nothing_has_a_factor_still() -> None:
    old, new = table_of(rates=[rate(launch_ns=0)]), table_of(rates=[rate(launch_ns=10)])
    assert only(compare(old, new)).kind == "slower"
    assert only(compare(new, old)).kind == "faster"


def test_the_largest_change_comes_first_either_way() -> None:
    old = table_of(*(point(100, 99, 101, size=size) for size in (8, 16, 32)))
    times = {8: 150, 16: 40, 32: 200}
    new = table_of(*(point(ns, ns - 1, ns + 1, size=size) for size, ns in times.items()))
    assert [(c.bytes, c.factor) for c in compare(old, new).changes] == [
        (16, 0.4),
        (32, 2.0),
        (8, 1.5),
    ]


def test_only_sizes_that_both_have_are_compared() -> None:
    """The bends of a curve are measured in addition, at sizes that vary from run to run."""
    old = table_of(point(100, 99, 101, size=8), point(100, 99, 101, size=24))
    new = table_of(point(100, 99, 101, size=8), point(900, 890, 910, size=40))
    comparison = compare(old, new)
    assert (comparison.changes, comparison.compared) == ((), 1)


def test_without_a_common_size_the_curves_are_compared() -> None:
    """At 8,000 and 80,000 bytes the line says 2,000 and 11,000 ns."""
    old = table_of(point(2_000, 1_990, 2_010, size=8_000))
    new = table_of(point(22_000, 21_000, 23_000, size=80_000))
    change = only(compare(old, new))
    assert (change.bytes, change.factor) == (80_000, 2.0)


def test_curves_without_points_are_compared_at_two_sizes() -> None:
    def line(latency_ns: int, bytes_per_ns: float) -> Table:
        curve = line_curve(latency_ns, bytes_per_ns)
        transfer = Transfer(
            src="cpu:0", dst="cuda:0", points=(), curve=curve, provenance="datasheet"
        )
        return msgspec.structs.replace(OLD, transfers=(transfer,))

    comparison = compare(line(10_000, 16.0), line(20_000, 16.0))
    assert comparison.compared == 2
    assert [(c.kind, c.bytes) for c in comparison.changes] == [("slower", 4096)]
    assert [c.bytes for c in compare(line(10_000, 16.0), line(10_000, 8.0)).changes] == [32 * MIB]


def test_devices_appear_and_disappear_with_all_they_have() -> None:
    gone = compare(OLD, msgspec.structs.replace(OLD, devices=OLD.devices[:1], transfers=()))
    assert kinds(gone) == [("disappeared", "device")]
    assert (only(gone).src, only(gone).old_text) == ("cuda:0", "a card")
    back = compare(msgspec.structs.replace(OLD, devices=OLD.devices[:1], transfers=()), OLD)
    assert (only(back).kind, only(back).src, only(back).new_text) == (
        "appeared",
        "cuda:0",
        "a card",
    )
    assert not gone.got_slower


def test_pairs_and_dtypes_of_devices_that_stay_appear_and_disappear() -> None:
    pinned = copies("cpu:0", "cuda:0", UP, memory="pinned")
    new = msgspec.structs.replace(OLD, transfers=(pinned,), rates=(rate(bytes_per_ns=2.0),))
    found = [(c.kind, c.quantity, c.memory, c.dtype) for c in compare(OLD, new).changes]
    assert found == [
        ("disappeared", "copies", "pageable", ""),
        ("appeared", "copies", "pinned", ""),
        ("appeared", "compute", "", "float32"),
        ("appeared", "memory", "", "float32"),
    ]


def test_another_driver_another_card_and_another_machine_are_named() -> None:
    new = msgspec.structs.replace(
        OLD,
        machine=Machine(fingerprint="other", cpu="another processor"),
        devices=(OLD.devices[0], device("cuda:0", "another card", "2.0")),
    )
    assert [(c.quantity, c.src, c.old_text, c.new_text) for c in compare(OLD, new).changes] == [
        ("machine", "", "a processor", "another processor"),
        ("name", "cuda:0", "a card", "another card"),
        ("driver", "cuda:0", "1.0", "2.0"),
    ]
    assert {c.kind for c in compare(OLD, new).changes} == {"changed"}


NS = st.integers(1, 10**9)


@given(NS, NS, st.floats(0, 3))
def test_reversing_the_order_reverses_the_verdict(a: int, b: int, threshold: float) -> None:
    old, new = table_of(point(a, a, a)), table_of(point(b, b, b))
    forth = compare(old, new, threshold=threshold).changes
    back = compare(new, old, threshold=threshold).changes
    turned = {"slower": "faster", "faster": "slower"}
    assert [turned[c.kind] for c in forth] == [c.kind for c in back]
    assert [c.factor for c in forth] == pytest.approx([1 / c.factor for c in back])


def test_two_calibrations_of_the_same_noise_do_not_differ() -> None:
    """300 sizes, each sampled as a calibration samples it, with 10 % of noise."""
    noise = np.random.default_rng(7)

    def calibrated() -> Table:
        return table_of(*(drawn(noise, size) for size in range(8, 8 * 301, 8)))

    comparison = compare(calibrated(), calibrated())
    assert (comparison.compared, comparison.changes) == (300, ())


def drawn(noise: np.random.Generator, size: int) -> Point:
    samples: list[int] = []
    while len(samples) < 3 or (len(samples) < 200 and relative_half_width(samples) > 0.03):
        samples.append(round(noise.lognormal(12, 0.1)))
    found = summarize(samples, width=0.03)
    return Point(
        bytes=size,
        ns=round(found.value),
        samples=tuple(samples),
        interval=(round(found.interval[0]), round(found.interval[1])),
        flags=found.flags,
    )
