"""Dominance on three wide axes, by divide and conquer with all halves of a level at once.

Points are sorted by the first axis and cut into stretches, which are merged in pairs, level by
level: an earlier half's running minimum of the third axis, along the second, decides for each
point of the later half. Inside a block the points are compared pairwise. The work is n log n for
each of log2(n / BLOCK) levels, the memory about 80 bytes a point.
"""

from typing import Any

from fuel_gpu.arrays.engine import Engine
from fuel_gpu.arrays.ordering import dense_ranks, lexicographic_order, span
from fuel_gpu.arrays.staircase import BLOCK, dominated_in_block


def dominated_by_earlier(second: Any, third: Any, engine: Engine) -> Any:
    """Whether an earlier point is no larger on both axes.

    Parameters
    ----------
    second, third
        (n,) unsigned.
    engine
        Runs the passes.

    Returns
    -------
    bool array
        (n,).
    """
    xp = engine.xp
    count = second.size
    third = dense_ranks(third, xp)
    dominated = dominated_in_block(third, [second], engine)
    # Equal values rank by position: of two, the earlier point counts as no larger.
    by_second = lexicographic_order([second], xp)
    rank = xp.empty(count, dtype=xp.uint64)
    rank[by_second] = xp.arange(count, dtype=xp.uint64)
    position = xp.arange(count, dtype=xp.uint64)
    half = BLOCK
    while half < count:
        _merge(position // xp.uint64(half), rank, by_second, third, dominated, engine)
        half *= 2
    return dominated


def _merge(
    half: Any, rank: Any, by_second: Any, third: Any, dominated: Any, engine: Engine
) -> None:
    """Mark points of odd halves that a point of the even half before dominates."""
    xp = engine.xp
    one = xp.uint64(1)
    rank_bits = xp.uint64(span(rank).bit_length())
    third_bits = xp.uint64(span(third).bit_length())
    pair = half >> one
    ordered = xp.sort(pair << rank_bits | rank)
    point = by_second[(ordered & ((one << rank_bits) - one)).astype(xp.int64)]
    pair = ordered >> rank_bits
    # Later pairs get smaller keys, so that a minimum of an earlier pair never passes for theirs.
    key = (xp.uint64(span(pair)) - pair) << third_bits | third[point]
    later = (half[point] & one) == one
    least = engine.prefix_min(xp.where(later, xp.uint64(2**64 - 1), key), axis=0)
    dominated[point[later & (least <= key)]] = True
