"""A clock for tests of measuring: it goes on by looks at it, not by what else the machine does."""

import itertools
from types import SimpleNamespace

import pytest


def keep_steady_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each look at the clock that limits measuring take ten milliseconds."""
    looks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(looks) / 100, sleep=lambda seconds: None)
    for module in ("copy_sweep", "effort", "kernel_trials"):
        monkeypatch.setattr(f"fuel_gpu.calibration.{module}.time", clock)
