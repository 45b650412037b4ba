"""What ranking and dominance compare: time, memory by tier, precision, accuracy."""

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from fuel_gpu.kernels.precision import PrecisionGuarantee
from fuel_gpu.numbers import saturate, saturating_add
from fuel_gpu.planner.candidate import Candidate

MOST_DIGITS: Final = 18
"""The digits of an exact result; no bound promises more."""

_BIT_STABLE_DIGITS: Final = 9


class AccuracyClass(IntEnum):
    """How tight the bound in units in the last place is; higher is better."""

    UNBOUNDED = 0
    BIT_STABLE = 1
    LOOSE = 2
    TWO_ULP = 3
    EXACT = 4

    def rank(self) -> int:
        """Give the class as a plain number, 0 to 4."""
        return int(self)


@dataclass(frozen=True, slots=True)
class TierMemory:
    """Bytes that a candidate moves in the host's memory and in its device's."""

    host_ram_bytes: int = 0
    device_vram_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """Both tiers together, saturating."""
        return saturating_add(self.host_ram_bytes, self.device_vram_bytes)


@dataclass(frozen=True, slots=True)
class CostVector:
    """A candidate's price on every axis.

    Parameters
    ----------
    time
        Nanoseconds: roofline and inbound transfer. Lower is better.
    memory
        Bytes in each tier. Lower is better, tier by tier.
    precision
        Decimal digits promised, 0 to 18. Higher is better.
    accuracy
        How tight the ULP bound is. Higher is better.
    """

    time: int
    memory: TierMemory
    precision: int
    accuracy: AccuracyClass

    @classmethod
    def from_candidate(cls, candidate: Candidate) -> "CostVector":
        """Price a candidate: memory counts in the tier its device belongs to."""
        moved = saturate(candidate.static_cost.bytes_moved)
        memory = TierMemory(moved, 0) if candidate.device.is_host else TierMemory(0, moved)
        guarantee = candidate.precision
        return cls(
            candidate.time_ns, memory, precision_digits(guarantee), accuracy_class(guarantee)
        )

    def dominates(self, other: "CostVector") -> bool:
        """Whether this is no worse than `other` on every axis and better on one."""
        no_worse = (
            self.time <= other.time
            and self.memory.host_ram_bytes <= other.memory.host_ram_bytes
            and self.memory.device_vram_bytes <= other.memory.device_vram_bytes
            and self.precision >= other.precision
            and self.accuracy >= other.accuracy
        )
        return no_worse and self != other

    def total_order_key(self) -> tuple[int, int, int, int]:
        """Give a key that sorts the best first: time, precision, accuracy, total memory."""
        return (self.time, -self.precision, -self.accuracy, self.memory.total_bytes)


def precision_digits(guarantee: PrecisionGuarantee) -> int:
    """Decimal digits that a guarantee promises, 0 to 18.

    With a relative bound, ``floor(-log10(bound))`` kept within the range; without one, 18 for
    a bound of 0 ULP, else 9 for a bit-stable kernel, else 0.
    """
    bound = guarantee.max_relative
    if bound is None:
        if guarantee.max_ulp == 0:
            return MOST_DIGITS
        return _BIT_STABLE_DIGITS if guarantee.bit_stable_on_same_hardware else 0
    if bound <= 0.0:
        return MOST_DIGITS
    if not math.isfinite(bound):
        return 0
    return min(max(math.floor(-math.log10(bound)), 0), MOST_DIGITS)


def accuracy_class(guarantee: PrecisionGuarantee) -> AccuracyClass:
    """Class a guarantee by its ULP bound; without one only bit stability counts."""
    ulp = guarantee.max_ulp
    if ulp is None:
        stable = guarantee.bit_stable_on_same_hardware
        return AccuracyClass.BIT_STABLE if stable else AccuracyClass.UNBOUNDED
    if ulp <= 0:
        return AccuracyClass.EXACT
    return AccuracyClass.TWO_ULP if ulp <= 2 else AccuracyClass.LOOSE
