"""The budget: shares by weight, and what a step leaves goes to those after it."""

import pytest

import fuel_gpu.calibration.effort as effort
from fuel_gpu.calibration.effort import FULL, QUICK, Budget


class Clock:
    """A clock that a test sets."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(effort, "time", fake)
    return fake


def test_steps_share_the_time_by_weight(clock: Clock) -> None:
    budget = Budget(8.0, weight=4.0)
    assert budget.deadline(1.0) == 1002.0  # a quarter of eight
    clock.now = 1002.0
    assert budget.deadline(3.0) == 1008.0


def test_what_a_step_leaves_goes_to_the_next(clock: Clock) -> None:
    budget = Budget(8.0, weight=4.0)
    budget.deadline(1.0)
    clock.now = 1001.0
    assert budget.deadline(1.0) == pytest.approx(1001 + 7 / 3)


def test_a_spent_budget_gives_no_more_time(clock: Clock) -> None:
    budget = Budget(8.0, weight=2.0)
    budget.deadline(1.0)
    clock.now = 1010.0
    assert budget.deadline(1.0) == 1010.0
    assert budget.spent() == 1.0


def test_the_share_that_is_spent(clock: Clock) -> None:
    budget = Budget(8.0, weight=1.0)
    clock.now = 1002.0
    assert budget.spent() == 0.25


@pytest.mark.parametrize("choice", [QUICK, FULL])
def test_sizes_run_from_4_kib_to_256_mib(choice: effort.Effort) -> None:
    sizes = choice.copy_sizes_bytes
    assert len(sizes) >= 12
    assert (sizes[0], sizes[-1]) == (4 * 2**10, 256 * 2**20)
    assert list(sizes) == sorted(set(sizes))
    assert all(size % 8 == 0 for size in sizes)


def test_the_quick_calibration_stays_under_20_seconds_a_device() -> None:
    assert QUICK.budget_s <= 10
    assert FULL.budget_s > QUICK.budget_s
