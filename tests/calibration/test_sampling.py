"""The median's interval, when samples are settled, and what drift and two modes look like."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from fuel_gpu.calibration.sampling import (
    drifts,
    is_bimodal,
    median_interval,
    relative_half_width,
    settled,
    summarize,
    summarize_sittings,
)

SAMPLES = st.lists(st.integers(1, 10**9), min_size=1, max_size=300)


@pytest.mark.parametrize(
    ("n", "low", "high"),
    [
        (1, 1, 1),
        (5, 1, 5),  # too few: the whole range
        (6, 1, 6),  # 1 - 2/64 = 96.9 %
        (8, 1, 8),  # the second and seventh would enclose it with 1 - 18/256 = 93.0 % only
        (9, 2, 8),  # 1 - 20/512 = 96.1 %
        (10, 2, 9),  # 1 - 22/1024 = 97.9 %
        (100, 40, 61),  # tabulated in textbooks
    ],
)
def test_interval_takes_the_ranks_that_the_binomial_gives(n: int, low: int, high: int) -> None:
    assert median_interval(list(range(n, 0, -1))) == (low, high)


@pytest.mark.parametrize("n", [*range(6, 200), 2_000, 10_000])
def test_interval_has_95_percent_and_the_next_narrower_one_has_not(n: int) -> None:
    rank = int(median_interval(list(range(1, n + 1)))[0])
    assert 1 - 2 * binom.cdf(rank - 1, n, 0.5) >= 0.95
    assert 1 - 2 * binom.cdf(rank, n, 0.5) < 0.95


@given(SAMPLES)
def test_interval_encloses_the_median(samples: list[int]) -> None:
    low, high = median_interval(samples)
    assert low <= np.median(samples) <= high


@given(SAMPLES, st.integers(2, 50))
def test_interval_scales_with_the_unit(samples: list[int], factor: int) -> None:
    low, high = median_interval(samples)
    assert median_interval([factor * ns for ns in samples]) == (factor * low, factor * high)


def test_width_is_half_the_interval_over_the_median() -> None:
    # median 100, interval of six is their range: (110 - 90) / 2 / 100
    assert relative_half_width([90, 100, 100, 100, 100, 110]) == pytest.approx(0.10)
    assert settled([90, 100, 100, 100, 100, 110], width=0.10)
    assert not settled([90, 100, 100, 100, 100, 110], width=0.09)


def test_five_equal_samples_are_not_settled_yet() -> None:
    assert relative_half_width([7] * 5) == math.inf
    assert settled([7] * 6, width=0.01)


def test_rising_samples_drift_and_shuffled_ones_do_not() -> None:
    rising = np.linspace(100.0, 120.0, 30)
    assert drifts(rising)
    assert drifts(rising[::-1])
    assert not drifts(np.random.default_rng(1).permutation(rising))


def test_a_trend_of_five_percent_does_not_matter() -> None:
    assert not drifts(np.linspace(100.0, 105.0, 30))


def test_equal_samples_do_not_drift() -> None:
    assert not drifts(np.full(50, 3.0))


def test_too_few_samples_to_tell_a_trend() -> None:
    assert not drifts(np.linspace(1.0, 9.0, 9))


def test_two_clocks_are_bimodal() -> None:
    random = np.random.default_rng(2)
    both = np.concatenate([random.normal(100, 2, 40), random.normal(150, 2, 25)])
    assert is_bimodal(random.permutation(both))


def test_a_few_outliers_are_no_second_mode() -> None:
    random = np.random.default_rng(3)
    assert not is_bimodal(np.concatenate([random.normal(100, 2, 60), random.normal(150, 2, 5)]))


def test_two_modes_that_nearly_agree_do_not_matter() -> None:
    assert not is_bimodal(np.array([100.0] * 20 + [110.0] * 20))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["normal", "uniform", "lognormal", "exponential"])
def test_distributions_with_one_mode_are_not_flagged(name: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    draws = {
        "normal": random.normal(100, 10, 80),
        "uniform": random.uniform(50, 150, 80),
        "lognormal": random.lognormal(4, 0.3, 80),
        "exponential": 100 + random.exponential(30, 80),
    }
    assert not is_bimodal(draws[name])


def test_summary_names_what_is_wrong() -> None:
    found = summarize([100.0] * 10 + [200.0] * 10, width=0.01)
    assert found.value == 150.0
    assert found.interval == (100.0, 200.0)
    assert found.flags == ("drift", "bimodal", "unsettled")
    assert summarize([5.0] * 6, width=0.01).flags == ()


def test_the_figure_of_sittings_is_the_mean_of_all_samples_but_a_tenth_at_either_end() -> None:
    # eleven samples: two are cut at either end, (20 + 30 + 30 + 40 + 40 + 50 + 60) / 7 stay
    sittings = [[1, 50, 99], [20], [30], [40], [30, 60, 2], [40, 900]]
    found = summarize_sittings(sittings, width=0.03)
    assert found.value == pytest.approx(270 / 7)
    assert "unsettled" in found.flags


def test_of_two_kinds_of_samples_the_figure_lies_between_as_often_as_each_came() -> None:
    # a median would be 20 or 70; a fifth of the samples, half of them 70, is cut at either end
    sittings = [[20] * 6 + [70] * 4] * 6
    assert summarize_sittings(sittings, width=0.03).value == pytest.approx(20 + 50 * 18 / 48)


def test_the_interval_of_sittings_is_that_of_their_figures() -> None:
    # figures 10, 20 (the middle one), 30, 40 (two: their mean), 50, 60; of six: their range
    sittings = [[10] * 20, [20, 20, 99], [30], [35, 45], [50], [60]]
    found = summarize_sittings(sittings, width=0.03)
    assert found.interval == (10, 60)
    assert "unsettled" in found.flags


def test_the_interval_of_sittings_is_widened_to_a_figure_outside_it() -> None:
    # nine of ten sittings' figures are 10, so the median's interval is too, but most samples are 50:
    # of 29 three are cut at either end, which leaves 6 of 10 and 17 of 50
    sittings = [[10]] * 8 + [[50] * 20] + [[10]]
    found = summarize_sittings(sittings, width=0.03)
    assert found.value == pytest.approx((6 * 10 + 17 * 50) / 23)
    assert found.interval == (10, found.value)


def test_fewer_than_six_sittings_have_the_range_of_all_samples() -> None:
    found = summarize_sittings([[90, 100, 100], [100, 130, 100]], width=0.03)
    assert (found.value, found.interval, found.flags) == (100, (90, 130), ("unsettled",))


def test_fewer_samples_than_three_are_all_kept() -> None:
    assert summarize_sittings([[10], [30]], width=0.03).value == 20


def test_one_sitting_is_summarised_by_its_samples() -> None:
    samples = [9, 10, 10, 11, 10, 12, 10]
    assert summarize_sittings([samples], width=0.03) == summarize(samples, width=0.03)


def test_sittings_that_agree_are_settled_however_their_samples_vary() -> None:
    assert "unsettled" not in summarize_sittings([[90, 100, 110]] * 6, width=0.03).flags
    assert "unsettled" in summarize_sittings([[100, 100, 100]] * 5, width=0.03).flags  # too few


@given(st.lists(SAMPLES, min_size=1, max_size=15))
def test_the_interval_of_sittings_encloses_their_figure(sittings: list[list[int]]) -> None:
    found = summarize_sittings(sittings, width=0.03)
    assert found.interval[0] <= found.value <= found.interval[1]
