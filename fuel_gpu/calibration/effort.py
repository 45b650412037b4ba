"""How long to measure and how exactly: the quick and the full calibration."""

import time
from dataclasses import dataclass
from typing import Final

MIB: Final = 2**20

_OCTAVES: Final = tuple(2**k for k in range(12, 29))
_BETWEEN: Final = tuple(3 * 2**k for k in range(11, 27))

_FIRST_SITTING: Final = 3
"""In the first sitting kernels are compiled and compete: it gets so many times the others' time."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What one device's calibration aims at.

    Parameters
    ----------
    sittings
        How often all is measured, each time in a fresh process.
    budget_s
        Seconds to measure in, over all sittings; what is under way when a sitting's
        share ends is completed.
    limit_s
        Seconds after which a sitting is taken to hang, compiling included.
    copy_sizes_bytes
        Sizes of the copies, ascending.
    width
        Half the median's confidence interval over the median, at which a figure is settled.
    fewest, most
        Samples of one figure in one sitting.
    fewest_copies
        Samples of one size of a copy in one sitting, unless they took long.
    dwell_s
        How long to measure a rate in one sitting at least.
    product_run_ns
        How long one matrix product should take: long against a launch.
    stream_caches
        How many times the last-level caches each of the two arrays should fill that are streamed.
    """

    sittings: int
    budget_s: float
    limit_s: float
    copy_sizes_bytes: tuple[int, ...]
    width: float
    fewest: int
    most: int
    fewest_copies: int
    dwell_s: float
    product_run_ns: int
    stream_caches: int

    def sitting_s(self, *, first: bool) -> float:
        """Seconds of one sitting."""
        weight = _FIRST_SITTING if first else 1
        return self.budget_s * weight / (self.sittings - 1 + _FIRST_SITTING)


QUICK: Final = Effort(
    sittings=6,
    budget_s=10.0,
    limit_s=60.0,
    copy_sizes_bytes=_OCTAVES,
    width=0.03,
    fewest=3,
    most=60,
    fewest_copies=9,
    dwell_s=0.05,
    product_run_ns=20_000_000,
    stream_caches=1,
)
FULL: Final = Effort(
    sittings=12,
    budget_s=60.0,
    limit_s=300.0,
    copy_sizes_bytes=tuple(sorted(_OCTAVES + _BETWEEN)),
    width=0.01,
    fewest=6,
    most=60,
    fewest_copies=15,
    dwell_s=0.2,
    product_run_ns=100_000_000,
    stream_caches=4,
)


class Budget:
    """Seconds to spend, handed out step by step in proportion to the steps' weights.

    A step that ends early leaves its rest to those after it.
    """

    def __init__(self, seconds: float, weight: float) -> None:
        self._start = time.monotonic()
        self._seconds = seconds
        self._weight_left = weight

    def deadline(self, weight: float) -> float:
        """When the next step, which has this weight, should end: a `time.monotonic` value."""
        now = time.monotonic()
        left = max(0.0, self._start + self._seconds - now)
        share = weight / self._weight_left if self._weight_left > 0 else 1.0
        self._weight_left -= weight
        return now + left * min(share, 1.0)

    def spent(self) -> float:
        """Which share of the seconds is spent, 0 to 1."""
        return min(1.0, (time.monotonic() - self._start) / self._seconds)
