"""Unsigned 64-bit arithmetic that saturates and never wraps: nanoseconds, bytes, FLOPs."""

import math

U64_MAX = 2**64 - 1
I64_MAX = 2**63 - 1


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
