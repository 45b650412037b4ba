"""Dominance on any number of wide axes, by bit sets: 64 comparisons an instruction.

Points are sorted, so whatever dominates a point stands before it. Each axis is cut into at most
`_BINS` bins by rank, and for each bin a set holds, as bits, the points of the bins up to it. The
intersection of a point's sets over the axes, cut off at its own place, holds all that could
dominate it: mostly nothing. Where it holds something and the sets one bin lower do not decide
either, the few candidates are compared. The work is d * n**2 / 128 word operations for n points
on d axes, the memory about 32 * n * d bytes.
"""

from collections.abc import Sequence
from typing import Any, Final

from fuel_gpu.arrays.engine import Engine
from fuel_gpu.arrays.ordering import dense_ranks, span

_BINS: Final = 255
_WORD: Final = 64


def dominated_by_earlier(axes: Sequence[Any], engine: Engine) -> Any:
    """Whether an earlier point is no larger on any axis.

    Parameters
    ----------
    axes
        (n,) unsigned arrays, one an axis.
    engine
        Runs the passes.

    Returns
    -------
    bool array
        (n,).
    """
    xp = engine.xp
    count = axes[0].size
    bins = [_bins(axis, xp) for axis in axes]
    sets = [_sets(each, engine) for each in bins]
    dominated = xp.zeros(count, dtype=bool)
    words = -(-count // _WORD)
    for part in engine.chunks(count, 8 * words):
        dominated[part] = _dominated_in(part, axes, bins, sets, engine)
    return dominated


def _bins(axis: Any, xp: Any) -> Any:
    """Bin of each point, equal values in the same one; a value each where there are few."""
    ranks = dense_ranks(axis, xp)
    if span(ranks) < _BINS:
        return ranks.astype(xp.int64)
    up_to = xp.cumsum(xp.bincount(ranks.astype(xp.int64)))[ranks.astype(xp.int64)]
    return (up_to - 1) * _BINS // axis.size


def _sets(bins: Any, engine: Engine) -> Any:
    """Sets as (bins + 1, words) uint64: row b holds the points of the bins below b."""
    xp = engine.xp
    words = -(-bins.size // _WORD)
    rows = int(bins.max()) + 2
    place = xp.arange(bins.size, dtype=xp.uint64)
    bit = xp.uint64(1) << (place % xp.uint64(_WORD))
    slot = (bins + 1) * words + xp.arange(bins.size) // _WORD
    sets = xp.zeros(rows * words, dtype=xp.uint64)
    xp.bitwise_or.at(sets, slot, bit)
    return engine.prefix_or(sets.reshape(rows, words))


def _dominated_in(
    part: slice, axes: Sequence[Any], bins: Sequence[Any], sets: Sequence[Any], engine: Engine
) -> Any:
    xp = engine.xp
    queries = xp.arange(part.start, part.stop)
    possible = _intersection(queries, part.stop, [each[part] + 1 for each in bins], sets, xp)
    undecided = xp.flatnonzero(possible.any(axis=1))
    dominated = xp.zeros(queries.size, dtype=bool)
    if not undecided.size:
        return dominated
    rows = queries[undecided]
    certain = _intersection(rows, part.stop, [each[rows] for each in bins], sets, xp)
    surely = certain.any(axis=1)
    dominated[undecided[surely]] = True
    undecided = undecided[~surely]
    if undecided.size:
        found = _compared(queries[undecided], possible[undecided], axes, engine)
        dominated[undecided] = found
    return dominated


def _intersection(
    queries: Any, stop: int, rows: Sequence[Any], sets: Sequence[Any], xp: Any
) -> Any:
    """Intersect the sets' rows, a line a query, without the query itself and what follows it."""
    words = -(-stop // _WORD)
    common = sets[0][:, :words][rows[0]]
    for each, row in zip(sets[1:], rows[1:], strict=True):
        common &= each[:, :words][row]
    first = int(queries[0]) // _WORD
    start = xp.arange(first, words) * _WORD
    earlier = xp.clip(queries[:, None] - start, 0, _WORD)
    full = xp.uint64(2**64 - 1)
    below = (xp.uint64(1) << (earlier % _WORD).astype(xp.uint64)) - xp.uint64(1)
    common[:, first:] &= xp.where(earlier == _WORD, full, below)
    return common


def _compared(queries: Any, possible: Any, axes: Sequence[Any], engine: Engine) -> Any:
    """Compare each query with every point of its set."""
    xp = engine.xp
    dominated = xp.zeros(queries.size, dtype=bool)
    line, word = xp.nonzero(possible)
    bits = xp.arange(_WORD, dtype=xp.uint64)
    for part in engine.chunks(line.size, 8 * _WORD):
        lines = line[part]
        held = ((possible[lines, word[part]][:, None] >> bits) & xp.uint64(1)) != 0
        which, bit = xp.nonzero(held)
        other = word[part][which] * _WORD + bit
        mine = queries[lines[which]]
        beats = axes[0][other] <= axes[0][mine]
        for axis in axes[1:]:
            beats &= axis[other] <= axis[mine]
        dominated[lines[which[beats]]] = True
    return dominated
