"""Unsigned 64-bit arithmetic that saturates and never wraps: nanoseconds, bytes, FLOPs."""

import math
import operator
from typing import SupportsIndex

from fuel_gpu.errors import UsageError

U64_MAX = 2**64 - 1
I64_MAX = 2**63 - 1


def whole_number(value: SupportsIndex, argument: str) -> int:
    """Take an argument as a whole number from 0, NumPy's integers among them.

    Raises
    ------
    UsageError
        If it is none; the message names the argument.
    """
    whole = hasattr(value, "__index__") and not isinstance(value, bool)
    number = operator.index(value) if whole else -1
    if number < 0:
        raise UsageError(f"{argument}: {value!r:.60} is no whole number from 0")
    return number


def saturate(value: int) -> int:
    """Clamp an integer into 0 .. 2**64 - 1."""
    return 0 if value < 0 else min(value, U64_MAX)


def saturating_add(*terms: int) -> int:
    """Sum non-negative integers, clamped at 2**64 - 1."""
    return min(sum(terms), U64_MAX)


def saturating_mul(a: int, b: int) -> int:
    """Multiply two non-negative integers, clamped at 2**64 - 1."""
    return min(a * b, U64_MAX)


def floor_to_u64(value: float) -> int:
    """Floor a float to an integer in 0 .. 2**64 - 1; NaN gives 0, as a saturating cast does."""
    if math.isnan(value) or value <= 0.0:
        return 0
    if value >= U64_MAX:
        return U64_MAX
    return math.floor(value)


def floor_divide_by_rate(amount: int, rate_per_ns: float) -> int:
    """Nanoseconds that `amount` takes at `rate_per_ns`, floored, saturating.

    The division is done in float64 after rounding `amount` to it, so that the array form
    (``floor(amount.astype(float64) / rate)``) agrees to the last bit.
    """
    return floor_to_u64(float(amount) / rate_per_ns)
