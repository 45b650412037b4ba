"""Monotone transfer curves over size: fitted to measured times, evaluated one by one or as an array."""

import itertools
import math
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.calibration.table import Curve
from fuel_gpu.numbers import U64_MAX, floor_to_u64

_FLOOR_SHARE = 0.5
"""The latency at zero bytes is at least this share of the smallest measured copy's time."""


def fit_curve(sizes_bytes: Sequence[int], times_ns: Sequence[int]) -> Curve:
    """Fit a monotone piecewise-linear curve with a knot at every measured size.

    A copy goes through regimes (latency, caches, streaming) whose bandwidths differ severalfold, so
    no single line fits. The times are made non-decreasing by isotonic regression of their
    logarithms (relative errors count alike at every size); straight lines join them. A knot at zero
    bytes carries the latency: the first segment extended to zero, kept within half and all of the
    first knot's time. Past the last knot the bandwidth is that of the last fourfold growth.

    Parameters
    ----------
    sizes_bytes
        Strictly ascending, positive, bytes.
    times_ns
        The time at each size, positive, nanoseconds.

    Returns
    -------
    Curve
        With the relative error of predicting each inner point from the others.

    Notes
    -----
    Isotonic regression: Barlow, Bartholomew, Bremner and Brunk, *Statistical Inference under Order
    Restrictions* (1972), as ``scipy.optimize.isotonic_regression``.
    """
    sizes = [int(size) for size in sizes_bytes]
    medians = [max(1, int(ns)) for ns in times_ns]
    knots = _knots(sizes, medians)
    errors = left_out_errors(sizes, medians)
    return Curve(
        knot_bytes=tuple(b for b, _ in knots),
        knot_ns=tuple(ns for _, ns in knots),
        tail_bytes_per_ns=_tail(knots),
        median_error=float(np.median(errors)) if errors else None,
        worst_error=max(errors) if errors else None,
    )


def line_curve(latency_ns: int, bytes_per_ns: float) -> Curve:
    """Make the curve of a latency and a bandwidth, as a datasheet gives them."""
    return Curve(knot_bytes=(0,), knot_ns=(latency_ns,), tail_bytes_per_ns=bytes_per_ns)


def _knots(sizes: list[int], medians: list[int]) -> list[tuple[int, int]]:
    from scipy.optimize import isotonic_regression

    smooth = np.exp(isotonic_regression(np.log(np.asarray(medians, dtype=np.float64))).x)
    times = np.maximum.accumulate(np.rint(smooth)).astype(np.int64).tolist()
    latency = times[0]
    if len(times) > 1:
        per_byte = (times[1] - times[0]) / (sizes[1] - sizes[0])
        latency = round(times[0] - per_byte * sizes[0])
    latency = min(max(latency, round(_FLOOR_SHARE * times[0]), 1), times[0])
    return [(0, latency), *zip(sizes, times, strict=True)]


def _tail(knots: list[tuple[int, int]]) -> float:
    last_bytes, last_ns = knots[-1]
    overall = last_bytes / last_ns
    earlier = [(b, ns) for b, ns in knots if 0 < b <= last_bytes // 4 and ns < last_ns]
    if not earlier:
        return overall
    b, ns = earlier[-1]
    # A secant far from the overall bandwidth is noise in one of its two ends, not a regime.
    return min(max((last_bytes - b) / (last_ns - ns), overall / 2), overall * 2)


def left_out_errors(sizes_bytes: Sequence[int], times_ns: Sequence[int]) -> list[float]:
    """Relative error of predicting each inner point by a curve fitted to the other points.

    One a point but the first and the last; where it is large the curve bends between neighbours.
    """
    sizes, medians = list(sizes_bytes), list(times_ns)
    errors = []
    for i in range(1, len(sizes) - 1):
        knots = _knots(sizes[:i] + sizes[i + 1 :], medians[:i] + medians[i + 1 :])
        predicted = np.interp(sizes[i], [b for b, _ in knots], [ns for _, ns in knots])
        errors.append(abs(float(predicted) - medians[i]) / medians[i])
    return errors


def sizes_at_bends(
    sizes_bytes: Sequence[int],
    times_ns: Sequence[int],
    doubts: Sequence[float],
    *,
    tolerance: float,
    most: int,
) -> list[int]:
    """Sizes to measure in addition, amid the neighbours of points that those do not predict.

    Parameters
    ----------
    sizes_bytes, times_ns
        What was measured, sizes ascending.
    doubts
        Half of each median's confidence interval over the median: a noisy point is no bend.
    tolerance
        Relative error of prediction, beyond the doubts, up to which a point is no bend.
    most
        How many sizes to add at most; the sharpest bends come first.

    Returns
    -------
    list
        Ascending; each the geometric mean of two neighbouring sizes, a multiple of 8.
    """
    errors = left_out_errors(sizes_bytes, times_ns)
    bends = [
        i
        for i, error in enumerate(errors)
        if error > tolerance + doubts[i + 1] + max(doubts[i], doubts[i + 2])
    ]
    added: list[int] = []
    for i in sorted(bends, key=errors.__getitem__, reverse=True):
        for low, high in itertools.pairwise(sizes_bytes[i : i + 3]):
            amid = size_amid(low, high)
            if low < amid < high and amid not in added:
                added.append(amid)
    return sorted(added[:most])


def size_amid(low_bytes: int, high_bytes: int) -> int:
    """The geometric mean of two sizes, down to a multiple of 8."""
    return math.isqrt(low_bytes * high_bytes) // 8 * 8


class CurveTimes:
    """A curve made ready to be evaluated: one size at a time, or an array of sizes.

    Both forms give the same integers: offsets within a segment are scaled in float64 and floored,
    and never exceed the segment's upper knot, so the time never falls as bytes grow.
    """

    def __init__(self, curve: Curve) -> None:
        self._bytes = curve.knot_bytes
        self._ns = curve.knot_ns
        slopes = [
            (ns1 - ns0) / (b1 - b0)
            for b0, b1, ns0, ns1 in zip(
                self._bytes, self._bytes[1:], self._ns, self._ns[1:], strict=False
            )
        ]
        self._slopes = (*slopes, 1.0 / curve.tail_bytes_per_ns)
        self._ceilings = (*self._ns[1:], U64_MAX)

    def at(self, nbytes: int) -> int:
        """Nanoseconds for `nbytes`, saturating at 2**64 - 1."""
        segment = bisect_right(self._bytes, nbytes) - 1
        if segment < 0:
            return self._ns[0]
        extra = floor_to_u64(float(nbytes - self._bytes[segment]) * self._slopes[segment])
        return min(self._ns[segment] + extra, self._ceilings[segment])

    def at_array(self, nbytes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Nanoseconds for each size; uint64 in and out, same shape."""
        knots = np.asarray(self._bytes, dtype=np.uint64)
        base = np.asarray(self._ns, dtype=np.uint64)
        ceilings = np.asarray(self._ceilings, dtype=np.uint64)
        segment = np.searchsorted(knots, nbytes, side="right") - 1
        below = segment < 0
        segment = np.maximum(segment, 0)
        offset = np.where(below, np.uint64(0), nbytes - knots[segment]).astype(np.float64)
        scaled = np.floor(offset * np.asarray(self._slopes)[segment])
        room = ceilings[segment] - base[segment]
        # float64 cannot hold 2**64 - 1: compare before casting, so that no cast overflows.
        fits = scaled < 2.0**64
        extra = np.where(fits, scaled, 0.0).astype(np.uint64)
        extra = np.where(fits, np.minimum(extra, room), room)
        return np.asarray(base[segment] + extra, dtype=np.uint64)
