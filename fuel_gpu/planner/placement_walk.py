"""Paths of the placement DP, followed whole or, where few would run side by side, in blocks.

A path of n rows takes n steps, one after another. In blocks it takes about 4·√n: the times from
each slot before a block to each slot at its end (a min-plus product of its steps) are found for all
blocks side by side, a scan over them gives the times before each block, and then all blocks are
followed side by side. The arithmetic grows by as many times as there are slots, so blocks pay only
where the steps are narrow.
"""

from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from fuel_gpu.arrays.placement_steps import (
    Entry,
    PathRows,
    Stretches,
    follow,
    pick,
    plus,
    retrace,
    through,
)
from fuel_gpu.numbers import U64_MAX
from fuel_gpu.planner.placement_problem import Indices

_NARROW_WAYS = 2048
"""Crossings priced at a step, on average: blocks were the faster below it with 2, 4 and 8 slots."""
_LONG_ROWS = 64


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


def advance(rows: PathRows, start: Indices, length: Indices) -> tuple[Any, Trail]:
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
    if length[0] >= _LONG_ROWS and ways < _NARROW_WAYS:
        return _advance_in_blocks(rows, start, length)
    stretches = _stretches(rows.xp, start, length)
    times, _ = follow(rows, stretches)
    return times, Trail(stretches, None)


def go_back(rows: PathRows, trail: Trail, last: Any, slot: Any) -> None:
    """Write the slots of all rows of the paths, given those of their last rows.

    Parameters
    ----------
    last
        uint8 (paths, scenarios).
    slot
        uint8 (rows, scenarios), written to.
    """
    if trail.blocks is not None:
        last = _block_ends(rows.xp, trail.blocks, last)
    retrace(rows, trail.stretches, last, slot)


def _stretches(xp: Any, start: Indices, length: Indices) -> Stretches:
    width = np.searchsorted(-length, -np.arange(length[0]))
    return Stretches(start, xp.asarray(start), width.tolist())


def _advance_in_blocks(rows: PathRows, start: Indices, length: Indices) -> tuple[Any, Trail]:
    xp, (_, slots, scenarios) = rows.xp, rows.own_ns.shape
    size = isqrt(int(length[0]))
    count = -(-length // size)
    first = np.concatenate([[0], np.cumsum(np.searchsorted(-count, -np.arange(count[0])))])
    place = np.repeat(np.arange(count[0]), np.diff(first))
    path = np.arange(first[-1]) - first[place]
    block_start = start[path] + place * size
    block_length = np.minimum(size, length[path] - place * size)

    inner = np.flatnonzero(place + 1 < count[path])
    apart = xp.where(xp.eye(slots, dtype=xp.bool_), xp.uint64(0), xp.uint64(U64_MAX))
    reached = xp.broadcast_to(apart[:, :, None, None], (slots, slots, len(inner), scenarios))
    through_ns = through(
        rows,
        _stretches(xp, block_start[inner], block_length[inner]),
        Entry(reached, xp.asarray(place[inner] == 0)[:, None]),
    )
    before_ns = _scan(xp, through_ns, first.tolist())

    by_length = np.argsort(-block_length, kind="stable")
    longest_first = xp.asarray(by_length)
    stretches = _stretches(xp, block_start[by_length], block_length[by_length])
    entry = Entry(before_ns[:, None, longest_first], xp.asarray(place[by_length] == 0)[:, None])
    times, origin = follow(rows, stretches, entry)
    followed_at = np.argsort(by_length, kind="stable")
    ends = followed_at[first[count - 1] + np.arange(len(length))]
    blocks = Blocks(first.tolist(), longest_first, origin[:, xp.asarray(followed_at)])
    return times[:, xp.asarray(ends)], Trail(stretches, blocks)


def _scan(xp: Any, through_ns: Any, first: list[int]) -> Any:
    """Give the times before each block, (slots, blocks, scenarios), from those through them.

    `through_ns` has the blocks that another follows: one place's lie as the next place's do.
    """
    slots, _, _, scenarios = through_ns.shape
    before = [xp.zeros((slots, first[1], scenarios), xp.uint64)]
    done = 0
    for place in range(1, len(first) - 1):
        paths = first[place + 1] - first[place]
        via_ns = plus(xp, before[-1][None, :, :paths], through_ns[:, :, done : done + paths])
        before.append(via_ns.min(axis=1))
        done += paths
    return xp.concatenate(before, axis=1)


def _block_ends(xp: Any, blocks: Blocks, last: Any) -> Any:
    """Give the slot at the end of each block, in the order in which they were followed."""
    at = last.copy()
    ends = []
    for place in range(len(blocks.first) - 2, -1, -1):
        here = slice(blocks.first[place], blocks.first[place + 1])
        paths = here.stop - here.start
        ends.append(at[:paths].copy())
        at[:paths] = pick(xp, blocks.origin[:, here], at[:paths])
    ends.reverse()
    return xp.concatenate(ends)[blocks.longest_first]
