"""What the kernel says of the processor under load: throttled by heat, or by its group's quota."""

from pathlib import Path
from typing import Final

from fuel_gpu.calibration.table import Conditions
from fuel_gpu.probes.cgroup import cpu_periods

_SHARE: Final = 0.1
"""Waiting in fewer of the scheduler's periods moves no median."""

_HEAT: Final = "thermal slowdown"
_QUOTA: Final = "CPU quota of the control group"


class CoreCounters:
    """The kernel's counts since the latest `watch`.

    Parameters
    ----------
    root
        Where Linux' ``proc`` and ``sys`` are mounted; elsewhere nothing is told.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self.watch()

    def watch(self) -> None:
        """Count from now on."""
        self._heat, self._periods = _heat_events(self._root), cpu_periods(self._root)

    def conditions(self) -> Conditions | None:
        """Tell what held the processor back since; None if nothing counts that."""
        heat, periods = _heat_events(self._root), cpu_periods(self._root)
        if heat is None and periods is None:
            return None
        throttled = []
        if heat is not None and self._heat is not None and heat > self._heat:
            throttled.append(_HEAT)
        if periods is not None and self._periods is not None:
            passed, waited = (now - then for now, then in zip(periods, self._periods, strict=True))
            if waited > _SHARE * passed:
                throttled.append(_QUOTA)
        return Conditions(throttled=tuple(throttled))


def _heat_events(root: Path) -> int | None:
    """Count how often cores and packages became too hot, as x86 processors tell."""
    folder = root / "sys/devices/system/cpu"
    counts = []
    for file in folder.glob("cpu[0-9]*/thermal_throttle/*_throttle_count"):
        try:
            counts.append(int(file.read_text()))
        except (OSError, ValueError):
            continue
    return sum(counts) if counts else None
