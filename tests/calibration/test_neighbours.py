"""Other processes' share of the processor, and when to speak of it."""

from types import SimpleNamespace

import pytest

import fuel_gpu.calibration.neighbours as neighbours
from fuel_gpu.calibration.neighbours import Neighbours, complaint


class Machine:
    """A processor whose counters a test sets."""

    now = 0.0
    user = system = own = 0.0

    def monotonic(self) -> float:
        return self.now

    def cpu_times(self) -> SimpleNamespace:  # of the whole machine; not all systems have all
        return SimpleNamespace(user=self.user, system=self.system, idle=1e9)

    def cpu_count(self) -> int:
        return 4

    def Process(self) -> SimpleNamespace:  # noqa: N802  psutil's name
        return SimpleNamespace(cpu_times=lambda: SimpleNamespace(user=self.own, system=0.0))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    fake = Machine()
    monkeypatch.setattr(neighbours, "psutil", fake)
    monkeypatch.setattr(neighbours, "time", fake)
    return fake


def test_our_own_work_is_no_neighbour(machine: Machine) -> None:
    watched = Neighbours()
    machine.now, machine.user, machine.own = 10.0, 38.0, 38.0
    assert watched.cores() == 0.0
    assert complaint(watched.cores()) == ""


def test_others_are_told_in_cores(machine: Machine) -> None:
    machine.user = 100.0  # before it began
    watched = Neighbours()
    machine.now, machine.user, machine.system, machine.own = 10.0, 112.0, 3.0, 5.0
    assert watched.cores() == 1.0
    assert complaint(watched.cores()).startswith("other processes kept 1.0 of 4 cores busy meanwhile")


def test_a_little_is_not_spoken_of(machine: Machine) -> None:
    watched = Neighbours()
    machine.now, machine.user = 10.0, 2.0
    assert complaint(watched.cores()) == ""


def test_counters_that_went_back_are_no_negative_cores(machine: Machine) -> None:
    watched = Neighbours()
    machine.now, machine.own = 10.0, 5.0
    assert watched.cores() == 0.0
