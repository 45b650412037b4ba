"""What held the processor back, from the kernel's counts before and after."""

from pathlib import Path

import pytest

from fuel_gpu.calibration.backends.cpu_state import CoreCounters
from fuel_gpu.calibration.table import Conditions


def heat(root: Path, *counts: int) -> None:
    for cpu, count in enumerate(counts):
        folder = root / f"sys/devices/system/cpu/cpu{cpu}/thermal_throttle"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "core_throttle_count").write_text(f"{count}\n")
        (folder / "package_throttle_count").write_text("0\n")
        (folder / "core_throttle_max_time_ms").write_text("99\n")


def periods(root: Path, passed: int, waited: int) -> None:
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/cgroup").write_text("0::/box\n")
    group = root / "sys/fs/cgroup/box"
    group.mkdir(parents=True, exist_ok=True)
    words = f"usage_usec 5\nnr_periods {passed}\nnr_throttled {waited}\nthrottled_usec 1\n"
    (group / "cpu.stat").write_text(words)


def test_where_nothing_counts_nothing_is_told(tmp_path: Path) -> None:
    assert CoreCounters(tmp_path).conditions() is None


def test_heat_counts_only_while_it_is_watched(tmp_path: Path) -> None:
    heat(tmp_path, 7, 0)
    counters = CoreCounters(tmp_path)
    assert counters.conditions() == Conditions()
    heat(tmp_path, 7, 1)
    assert counters.conditions() == Conditions(throttled=("thermal slowdown",))
    counters.watch()
    assert counters.conditions() == Conditions()


@pytest.mark.parametrize(
    ("passed", "waited", "throttled"),
    [(10, 1, ()), (10, 2, ("CPU quota of the control group",)), (0, 0, ())],
)
def test_a_quota_counts_if_it_bound_in_more_than_one_period_of_ten(
    tmp_path: Path, passed: int, waited: int, throttled: tuple[str, ...]
) -> None:
    periods(tmp_path, 1000, 500)
    counters = CoreCounters(tmp_path)
    periods(tmp_path, 1000 + passed, 500 + waited)
    assert counters.conditions() == Conditions(throttled=throttled)


def test_both_may_hold_it_back(tmp_path: Path) -> None:
    heat(tmp_path, 0)
    periods(tmp_path, 0, 0)
    counters = CoreCounters(tmp_path)
    heat(tmp_path, 3)
    periods(tmp_path, 4, 4)
    found = counters.conditions()
    assert found == Conditions(throttled=("thermal slowdown", "CPU quota of the control group"))
