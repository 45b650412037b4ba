"""What a kernel costs and what it promises about its result."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """A kernel's static cost.

    Parameters
    ----------
    flops
        Floating-point operations, a multiply-accumulate counted as two.
    bytes_moved
        Bytes read and written in the device's memory.
    kernel_overhead_ns
        What a launch costs before any work is done.
    """

    flops: int = 0
    bytes_moved: int = 0
    kernel_overhead_ns: int = 0


@dataclass(frozen=True, slots=True)
class PrecisionGuarantee:
    """Bounds that a kernel promises; None claims nothing.

    Parameters
    ----------
    bit_stable_on_same_hardware
        The same inputs give the same bits on the same hardware.
    max_ulp
        Largest error in units in the last place.
    max_relative
        Largest relative error; for sums of products relative to the sum of absolute products.
    max_absolute
        Largest absolute error.
    notes
        Where the claim comes from.
    """

    bit_stable_on_same_hardware: bool = False
    max_ulp: float | None = None
    max_relative: float | None = None
    max_absolute: float | None = None
    notes: str = ""


REFERENCE: Final = PrecisionGuarantee(True, 0, 0.0, 0.0, "reference")
PRIMITIVE_DETERMINISTIC_CPU: Final = PrecisionGuarantee(
    True, notes="deterministic on one CPU, no stated bound"
)
UNAUDITED: Final = PrecisionGuarantee(notes="unaudited")
