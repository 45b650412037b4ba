"""Curves: knots worked by hand, monotone for any samples, saturating, the same as an array."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu.calibration.curves import (
    CurveTimes,
    fit_curve,
    left_out_errors,
    line_curve,
    size_amid,
    sizes_at_bends,
)
from fuel_gpu.calibration.table import Curve
from fuel_gpu.numbers import U64_MAX

KIB, MIB = 2**10, 2**20

# Host to an OpenCL CPU device: latency, caches, memory (sizes in bytes, medians in ns).
MEASURED = {
    64 * KIB: 58_000,
    MIB: 87_000,
    4 * MIB: 156_000,
    8 * MIB: 289_000,
    16 * MIB: 808_000,
    64 * MIB: 4_700_000,
    256 * MIB: 17_000_000,
}


@st.composite
def samples(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    sizes = draw(st.lists(st.integers(1, 2**40), min_size=2, max_size=20, unique=True))
    times = draw(st.lists(st.integers(1, 10**12), min_size=len(sizes), max_size=len(sizes)))
    return sorted(sizes), times


def test_a_line_is_found_exactly() -> None:
    # 1000 ns and 2 bytes a ns
    sizes = [2000, 4000, 8000, 16000]
    curve = fit_curve(sizes, [1000 + size // 2 for size in sizes])
    assert curve.knot_bytes == (0, 2000, 4000, 8000, 16000)
    assert curve.knot_ns == (1000, 2000, 3000, 5000, 9000)
    assert curve.tail_bytes_per_ns == 2.0  # (16000 - 4000) / (9000 - 3000)
    assert curve.median_error == pytest.approx(0.0, abs=1e-9)
    assert CurveTimes(curve).at(3000) == 2500
    assert CurveTimes(curve).at(26_000) == 14_000


def test_a_dip_is_levelled_at_the_geometric_mean() -> None:
    curve = fit_curve([100, 200, 400], [400, 100, 900])
    assert curve.knot_ns[1:] == (200, 200, 900)  # sqrt(400 * 100)


def test_latency_is_the_first_segment_extended_but_never_under_half() -> None:
    assert fit_curve([100, 200], [1000, 1100]).knot_ns[0] == 900
    assert fit_curve([100, 200], [100, 1000]).knot_ns[0] == 50


def test_left_out_error_is_of_the_chord_past_each_inner_point() -> None:
    # the chord from (100, 100) to (300, 300) gives 200 where 250 was measured
    assert left_out_errors([100, 200, 300], [100, 250, 300]) == [pytest.approx(0.2)]


def test_bends_ask_for_sizes_amid_their_neighbours() -> None:
    sizes, times, sure = [100, 400, 1600, 6400], [100, 100, 1000, 1000], [0.0] * 4
    # leaving out 400 gives 100 + 900 * 300 / 1500 = 280, off by 1.8; leaving out 1600 gives
    # 100 + 900 * 1200 / 6000 = 280, off by 0.72: the bend at 400 is sharper and comes first
    assert sizes_at_bends(sizes, times, sure, tolerance=0.15, most=2) == [200, 800]
    assert sizes_at_bends(sizes, times, sure, tolerance=0.15, most=4) == [200, 800, 3200]
    assert sizes_at_bends(sizes, times, sure, tolerance=2.0, most=4) == []


def test_a_point_that_noise_explains_is_no_bend() -> None:
    sizes, times = [100, 400, 1600, 6400], [100, 100, 1000, 1000]
    # 0.72 is within 0.15 and the doubts of 0.3 at 1600 and 0.3 at a neighbour; 1.8 is not
    assert sizes_at_bends(sizes, times, [0.0, 0.3, 0.3, 0.0], tolerance=0.15, most=4) == [200, 800]
    assert sizes_at_bends(sizes, times, [math.inf] * 4, tolerance=0.15, most=4) == []


def test_the_middle_of_two_sizes_is_a_whole_number_of_words() -> None:
    assert size_amid(4 * KIB, 8 * KIB) == 5792  # sqrt(2) * 4096 = 5792.6
    assert size_amid(8, 16) == 8


def test_the_curve_holds_where_the_two_point_line_is_off_by_over_100_percent() -> None:
    curve = CurveTimes(fit_curve(list(MEASURED), list(MEASURED.values())))
    low, high = MEASURED[64 * KIB], MEASURED[64 * MIB]
    line = low + (high - low) * (4 * MIB - 64 * KIB) / (64 * MIB - 64 * KIB)
    assert line / MEASURED[4 * MIB] - 1 == pytest.approx(1.22, abs=0.03)
    for size, ns in MEASURED.items():
        assert curve.at(size) == pytest.approx(ns, abs=1)


def test_left_out_sizes_of_a_smooth_machine_are_met() -> None:
    def machine_ns(size: float) -> float:  # latency, then caches, then memory
        return 20_000 + size / 30 + max(0.0, size - 8 * MIB) / 20

    sizes = [2**k for k in range(12, 29)]
    curve = CurveTimes(fit_curve(sizes, [round(machine_ns(size)) for size in sizes]))
    held_out = [size_amid(a, b) for a, b in pairwise(sizes)]
    errors = [abs(curve.at(size) / machine_ns(size) - 1) for size in held_out]
    assert np.median(errors) < 0.05
    assert max(errors) < 0.20


@given(samples(), st.integers(0, 2**62), st.integers(0, 2**62))
def test_time_never_falls_as_bytes_grow(
    points: tuple[list[int], list[int]], a: int, b: int
) -> None:
    times = CurveTimes(fit_curve(*points))
    assert times.at(min(a, b)) <= times.at(max(a, b))
    for size in points[0]:
        assert times.at(size - 1) <= times.at(size) <= times.at(size + 1)


@given(samples())
def test_a_curve_passes_through_samples_that_already_rise(
    points: tuple[list[int], list[int]],
) -> None:
    sizes, times = points[0], sorted(points[1])
    curve = CurveTimes(fit_curve(sizes, times))
    for size, ns in zip(sizes, times, strict=True):
        assert curve.at(size) == pytest.approx(ns, rel=1e-6, abs=1)


@given(samples(), st.lists(st.integers(0, U64_MAX), max_size=30))
def test_the_array_form_gives_the_same_integers(
    points: tuple[list[int], list[int]], sizes: list[int]
) -> None:
    times = CurveTimes(fit_curve(*points))
    asked = [*sizes, *points[0]]
    assert times.at_array(np.array(asked, np.uint64)).tolist() == [times.at(n) for n in asked]


def test_both_forms_saturate() -> None:
    times = CurveTimes(line_curve(5, 1e-6))
    assert times.at(U64_MAX) == U64_MAX
    assert times.at_array(np.array([0, U64_MAX], np.uint64)).tolist() == [5, U64_MAX]


def test_below_a_first_knot_its_time_holds() -> None:
    times = CurveTimes(Curve(knot_bytes=(100, 200), knot_ns=(7, 9), tail_bytes_per_ns=1.0))
    assert [times.at(n) for n in (0, 99, 100, 150, 200, 201)] == [7, 7, 7, 8, 9, 10]
    assert times.at_array(np.array([0, 99, 150], np.uint64)).tolist() == [7, 7, 8]
