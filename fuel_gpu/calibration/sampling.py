"""Statistics of repeated timings: the figure, its interval, when to stop, what looks wrong."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

OUTSIDE = 20
"""The interval may miss the median once in so many times: 95 % confidence."""

FEWEST_FOR_INTERVAL = 6
"""Below six samples no pair of them encloses the median with 95 % confidence."""

STEADY_NS = 20_000_000
"""What takes so long is not repeated at once: it has seen many moments itself."""

LONG_NS = 100_000_000
"""Samples that took so long in all have met as many moments as many short ones."""

_TRIMMED = 0.1
"""Of several sittings' samples such a share is left out at either end."""

_TREND_P_VALUE = 0.01
_TREND_SHIFT = 0.1
_MODE_SHARE = 0.2
_MODE_DISTANCE = 0.15
_MODE_SEPARATION = 4.5


@dataclass(frozen=True, slots=True)
class Summary:
    """What a series of samples says.

    Parameters
    ----------
    value
        The median of one sitting's samples; of several sittings' the trimmed mean.
    interval
        Its 95 % confidence interval; the range of all samples where these are fewer than six, or
        the sittings are.
    flags
        ``drift`` where later samples differ from earlier ones, ``bimodal`` where there are two
        kinds of samples, ``unsettled`` where the interval is wider than was asked for.
    """

    value: float
    interval: tuple[float, float]
    flags: tuple[str, ...]


def summarize(samples: Sequence[float], *, width: float) -> Summary:
    """Summarise samples in the order in which they were taken.

    Parameters
    ----------
    samples
        At least one, finite.
    width
        Half the interval's width relative to the median that counts as settled.
    """
    values = np.asarray(samples, dtype=np.float64)
    return Summary(
        value=float(np.median(values)),
        interval=median_interval(samples),
        flags=_flags(values, settled=settled(samples, width=width)),
    )


def summarize_sittings(sittings: Sequence[Sequence[float]], *, width: float) -> Summary:
    """Summarise one figure's samples of several sittings, in the order in which they were taken.

    The figure is the mean of all samples but the tenth at either end: where samples come in two
    kinds, as copies do whose driver's threads are awake or asleep, a median falls on either side
    and says nothing of the other. Samples of one process agree with each other more than with those
    of the next, which has other memory, other threads and another moment: the sittings, not the
    samples, are what is independent. So the interval is that of the sittings' figures' median,
    widened where the figure of all lies outside it; of fewer than six sittings, which say nothing
    with 95 % confidence, it is the range of all samples.

    Parameters
    ----------
    sittings
        One or more, each with a sample at least. Of a single one its samples are summarised.
    width
        As `summarize` has it.

    Notes
    -----
    T. Kalibera and R. Jones, "Rigorous benchmarking in reasonable time", ISMM (2013): repetition
    has to take place at the highest level that varies.
    """
    if len(sittings) == 1:
        return summarize(sittings[0], width=width)
    each = [np.asarray(samples, dtype=np.float64) for samples in sittings]
    taken = np.concatenate(each)
    value, of_each = _trimmed_mean(taken), [_trimmed_mean(samples) for samples in each]
    if len(sittings) < FEWEST_FOR_INTERVAL:
        low, high = float(taken.min()), float(taken.max())
    else:
        low, high = median_interval(of_each)
    return Summary(
        value=value,
        interval=(min(low, value), max(high, value)),
        flags=_flags(taken, settled=settled(of_each, width=width)),
    )


def _trimmed_mean(samples: NDArray[np.float64]) -> float:
    """Give the mean of samples but a tenth, rounded up, at either end; of one or two, all."""
    cut = min(math.ceil(len(samples) * _TRIMMED), (len(samples) - 1) // 2)
    return float(np.sort(samples)[cut : len(samples) - cut].mean())


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """95 % confidence interval of the median from order statistics, whatever the distribution.

    For n independent samples the k-th smallest and the k-th largest enclose the median with
    probability 1 - 2 P(B < k), B binomial (n, 1/2); the largest k that keeps it at 95 % is taken.
    Below six samples there is none: the smallest and the largest are given.

    Notes
    -----
    H. A. David and H. N. Nagaraja, *Order Statistics*, 3rd edition (2003), section 7.1.
    """
    ordered = sorted(samples)
    rank = _enclosing_rank(len(ordered))
    return ordered[rank - 1], ordered[-rank]


@lru_cache(maxsize=4096)
def _enclosing_rank(n: int) -> int:
    """Give the k of `median_interval`, at least 1."""
    outside = 2**n // OUTSIDE  # the two tails together, in units of 2**-n
    below, rank, binomial = 0, 0, 1
    while 2 * (below + binomial) <= outside:
        below += binomial
        binomial = binomial * (n - rank) // (rank + 1)
        rank += 1
    return max(rank, 1)


def _flags(values: NDArray[np.float64], *, settled: bool) -> tuple[str, ...]:
    found = (("drift", drifts(values)), ("bimodal", is_bimodal(values)), ("unsettled", not settled))
    return tuple(name for name, present in found if present)


def relative_half_width(samples: Sequence[float]) -> float:
    """Half the median's interval over the median; infinite below six samples."""
    if len(samples) < FEWEST_FOR_INTERVAL:
        return math.inf
    low, high = median_interval(samples)
    middle = float(np.median(samples))
    return (high - low) / 2 / middle if middle > 0 else math.inf


def settled(samples: Sequence[float], *, width: float) -> bool:
    """Whether the median's interval is within `width` of it on either side, on average."""
    return relative_half_width(samples) <= width


def drifts(values: NDArray[np.float64]) -> bool:
    """Whether samples rise or fall over time, by 10 % or more between the first and last thirds.

    The Mann-Kendall test decides whether there is a trend (two-sided, p < 0.01, normal
    approximation; it needs no distribution), the thirds' medians whether it matters.

    Notes
    -----
    H. B. Mann, "Nonparametric tests against trend", Econometrica 13 (1945).
    """
    n = len(values)
    if n < 10:
        return False
    signs = np.sign(values[None, :] - values[:, None])
    score = float(np.triu(signs, 1).sum())
    _, ties = np.unique(values, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if variance <= 0:
        return False
    z = (abs(score) - 1) / math.sqrt(variance)
    if math.erfc(z / math.sqrt(2)) >= _TREND_P_VALUE:
        return False
    early, late = float(np.median(values[: n // 3])), float(np.median(values[-(n // 3) :]))
    return abs(late - early) > _TREND_SHIFT * min(early, late)


def is_bimodal(values: NDArray[np.float64]) -> bool:
    """Whether samples fall into two separate kinds (two clocks, two memory nodes, a neighbour).

    The sorted samples are split in two where the summed squares within the halves are least. They
    count as two kinds if each holds a fifth of them, the means differ by 15 %, and Ashman's
    D = sqrt(2) |m1 - m2| / sqrt(s1**2 + s2**2) exceeds 4.5: the halves of one uniform distribution
    have D = 3.5, those of a normal one 2.7.

    Notes
    -----
    K. M. Ashman, C. M. Bird and S. E. Zepf, "Detecting bimodality in astronomical datasets",
    Astronomical Journal 108 (1994).
    """
    n = len(values)
    least = max(3, math.ceil(_MODE_SHARE * n))
    if n < 2 * least:
        return False
    x = np.sort(values)
    cuts = np.arange(least, n - least + 1)
    sums, squares = np.cumsum(x), np.cumsum(x * x)
    low_mean, high_mean = sums[cuts - 1] / cuts, (sums[-1] - sums[cuts - 1]) / (n - cuts)
    low_ss = squares[cuts - 1] - cuts * low_mean**2
    high_ss = squares[-1] - squares[cuts - 1] - (n - cuts) * high_mean**2
    best = int(np.argmin(low_ss + high_ss))
    cut, distance = int(cuts[best]), float(high_mean[best] - low_mean[best])
    if distance <= _MODE_DISTANCE * float(low_mean[best]):
        return False
    spread = max(float(x[:cut].var(ddof=1) + x[cut:].var(ddof=1)), 1e-300)
    return math.sqrt(2) * distance / math.sqrt(spread) > _MODE_SEPARATION
