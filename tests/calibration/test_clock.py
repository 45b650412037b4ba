"""A device's clock against the wall's: short of it by waiting, off by a unit, or beyond it."""

import pytest

from fuel_gpu.calibration.clock import keeps_time, timed, timer_overhead_ns


@pytest.mark.parametrize(
    ("device_ns", "kept"),
    [
        (10_000_000, True),
        (5_000_000, True),  # half of the time went into waiting
        (10_500_000, True),  # two clocks differ a little
        (4_900_000, False),
        (10_600_000, False),  # nothing takes longer on the device than on the wall
        (10_000, False),  # microseconds taken for nanoseconds
        (520_000_000, False),  # ticks of 52 ns
        (0, False),
    ],
)
def test_a_device_clock_tells_at_least_half_of_the_wall_and_never_more(
    device_ns: int, kept: bool
) -> None:
    assert keeps_time([device_ns] * 3, [10_000_000] * 3) is kept


def test_a_run_that_was_interrupted_counts_no_more_than_another() -> None:
    assert keeps_time([9_000_000, 60_000_000, 9_500_000], [9_100_000, 61_000_000, 80_000_000])


def test_reading_the_clock_is_subtracted(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([1_000, 1_500, 2_000, 2_010])
    monkeypatch.setattr("time.perf_counter_ns", lambda: next(readings))
    monkeypatch.setattr("fuel_gpu.calibration.clock.timer_overhead_ns", lambda: 40)
    assert timed(lambda: None) == 460
    assert timed(lambda: None) == 1  # never nothing


def test_the_overhead_is_the_median_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    timer_overhead_ns.cache_clear()
    now = 0

    def tick() -> int:
        nonlocal now
        now += 30
        return now

    monkeypatch.setattr("time.perf_counter_ns", tick)
    assert timer_overhead_ns() == 30
    timer_overhead_ns.cache_clear()
