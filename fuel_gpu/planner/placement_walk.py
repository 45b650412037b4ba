"""Paths of the placement DP, followed whole or, where few would run side by side, in blocks.

A path of n rows takes n steps, one after another. In blocks it takes about 4·√n: the times from
each slot before a block to each slot at its end (a min-plus product of its steps) are found for all
blocks side by side, a scan over them gives the times before each block, and then all blocks are
followed side by side. The arithmetic grows by as many times as there are slots, so blocks pay only
where the steps are narrow.
"""

from dataclasses import dataclass
from math import isqrt
from typing import Any, Final

import numpy as np

from fuel_gpu.arrays.placement_steps import Entry, PathRows, Steps, Stretches
from fuel_gpu.planner.placement_problem import Indices

NARROW_WAYS: Final = 2048
"""Crossings priced a step, on average, below which blocks were faster with 2, 4 and 8 slots."""
LONG_ROWS: Final = 64
"""Rows of the longest path from which blocks were clearly faster."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """How some paths were cut into blocks, which are numbered by their place along the path first.

    Parameters
    ----------
    first
        (places + 1,): the number of each place's first block.
    longest_first
        int64 (blocks,): the order in which the blocks were followed.
    origin
        uint8 (slots, blocks, scenarios): the slot before a block, by the slot at its end.
    """

    first: list[int]
    longest_first: Any
    origin: Any


@dataclass(frozen=True, slots=True)
class Trail:
    """What it takes to go back along paths that were followed."""

    stretches: Stretches
    blocks: Blocks | None


def advance(steps: Steps, rows: PathRows, start: Indices, length: Indices) -> tuple[Any, Trail]:
    """Follow paths from their first rows to their last, keeping every choice.

    Parameters
    ----------
    start, length
        Where each path lies in the order of the rows; longest first.

    Returns
    -------
    times
        uint64 (slots, paths, scenarios): on arrival at each path's last row.
    trail
        For `go_back`.
    """
    _, slots, scenarios = rows.own_ns.shape
    ways = int(length.sum()) // int(length[0]) * scenarios * slots**2
    if length[0] >= LONG_ROWS and ways < NARROW_WAYS:
        return _advance_in_blocks(steps, rows, start, length)
    stretches = Stretches(start, length, steps.xp.asarray(start))
    times, _ = steps.follow(rows, stretches, None)
    return times, Trail(stretches, None)


def go_back(steps: Steps, rows: PathRows, trail: Trail, last: Any, slot: Any) -> None:
    """Write the slots of all rows of the paths, given those of their last rows.

    Parameters
    ----------
    last
        uint8 (paths, scenarios).
    slot
        uint8 (rows, scenarios), written to.
    """
    if trail.blocks is not None:
        blocks = trail.blocks
        last = steps.block_ends(blocks.origin, blocks.first, last)[blocks.longest_first]
    steps.retrace(rows, trail.stretches, last, slot)


def _advance_in_blocks(
    steps: Steps, rows: PathRows, start: Indices, length: Indices
) -> tuple[Any, Trail]:
    xp = steps.xp
    size = isqrt(int(length[0]))
    count = -(-length // size)
    first = np.concatenate([[0], np.cumsum(np.searchsorted(-count, -np.arange(count[0])))])
    place = np.repeat(np.arange(count[0]), np.diff(first))
    path = np.arange(first[-1]) - first[place]
    block_start = start[path] + place * size
    block_length = np.minimum(size, length[path] - place * size)

    def stretches(chosen: Indices) -> Stretches:
        chosen_start = block_start[chosen]
        return Stretches(chosen_start, block_length[chosen], xp.asarray(chosen_start))

    inner = np.flatnonzero(place + 1 < count[path])
    through_ns = steps.through(rows, stretches(inner), xp.asarray(place[inner] == 0))
    before_ns = steps.scan(through_ns, first.tolist())

    by_length = np.argsort(-block_length, kind="stable")
    longest_first = xp.asarray(by_length)
    all_blocks = stretches(by_length)
    entry = Entry(before_ns[:, longest_first], xp.asarray(place[by_length] == 0))
    times, origin = steps.follow(rows, all_blocks, entry)
    followed_at = np.argsort(by_length, kind="stable")
    blocks = Blocks(first.tolist(), longest_first, origin[:, xp.asarray(followed_at)])
    ends = followed_at[first[count - 1] + np.arange(len(length))]
    return times[:, xp.asarray(ends)], Trail(all_blocks, blocks)
