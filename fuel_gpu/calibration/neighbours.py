"""How much of the processor others used while something was measured."""

import time

import psutil

_NOTICEABLE_CORES = 0.25
_BUSY_FIELDS = ("user", "nice", "system", "irq", "softirq", "steal")
"""Which of the system's counters exclude one another; not every system has all."""


class Neighbours:
    """Watches the whole machine's processor time, less this process's, from its creation on."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._before = _others_cpu_s()

    def cores(self) -> float:
        """Cores that other processes, and other guests of the same host, kept busy on average."""
        elapsed = max(time.monotonic() - self._begun, 1e-9)
        return max(0.0, (_others_cpu_s() - self._before) / elapsed)


def complaint(cores: float) -> str:
    """What to say of a machine of which others kept so many cores busy; empty if it was quiet."""
    if cores < _NOTICEABLE_CORES:
        return ""
    return (
        f"other processes kept {cores:.1f} of {psutil.cpu_count()} cores busy meanwhile; "
        "measure again when the machine is quiet"
    )


def _others_cpu_s() -> float:
    machine = psutil.cpu_times()
    busy = sum(getattr(machine, field, 0.0) for field in _BUSY_FIELDS)
    own = psutil.Process().cpu_times()
    return float(busy - own.user - own.system)
