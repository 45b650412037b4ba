"""The placement DP's arithmetic: many stretches of paths side by side, forward and back.

A stretch is a path of rows, or a block of one. Times are saturating uint64 in arrays of up to four
axes, in this order: the slot reached; the slot before a block (of length 1 unless all are followed
at once); the stretch; the scenario.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.numbers import U64_MAX


def plus(xp: Any, a: Any, b: Any) -> Any:
    """Add saturating: ``~b`` is the room that `b` leaves below 2**64 - 1."""
    return xp.minimum(a, ~b) + b


def arrivals(xp: Any, reached_ns: Any, crossing_ns: Any) -> Any:
    """Price every way from a producer's slot (first axis) to a reader's slot (second axis).

    `crossing_ns` comes as a problem has it: crossing, producer's slot, reader's slot, scenario.
    """
    by_slot = xp.ascontiguousarray(crossing_ns.transpose(1, 2, 0, 3))
    return plus(xp, reached_ns[:, None], by_slot[:, :, None])


def lowest(xp: Any, via_ns: Any, first_available: Any = None) -> tuple[Any, Any]:
    """Give the minimum along the first axis and the first position that has it, as uint8.

    A slot that is not available holds 2**64 - 1, as a saturated time does: where even the minimum
    is that, `first_available` is the position.
    """
    best, choice = via_ns[0], xp.zeros(via_ns.shape[1:], xp.uint8)
    for slot in range(1, via_ns.shape[0]):
        closer = (via_ns[slot] < best).view(xp.uint8)
        best = xp.minimum(best, via_ns[slot])
        choice = xp.maximum(choice, closer * xp.uint8(slot))
    if first_available is not None:
        choice = xp.where(best == xp.uint64(U64_MAX), first_available, choice)
    return best, choice


def pick(xp: Any, table: Any, slot: Any) -> Any:
    """Look up the first axis of `table` by `slot`, whose last axes are the table's others."""
    columns = xp.arange(table[0].size).reshape(table.shape[1:])
    return table.reshape(-1).take(slot.astype(xp.int64) * columns.size + columns)


@dataclass(frozen=True, slots=True)
class Stretches:
    """Stretches of the paths, longest first, that advance side by side.

    Parameters
    ----------
    start_host, start
        int64 (stretches,) on the host and in the engine's memory: the position of each one's first
        row in the order of the paths.
    width
        For each step, how many stretches are long enough to take it.
    """

    start_host: NDArray[np.int64]
    start: Any
    width: list[int]


@dataclass(frozen=True, slots=True)
class Entry:
    """How blocks of paths are entered.

    Parameters
    ----------
    reached_ns
        uint64 (slots, 1 or slots, blocks, scenarios): the times at the slots before the block.
    is_first
        bool (blocks, 1): whether the block begins its path, so that nothing comes before it.
    """

    reached_ns: Any
    is_first: Any


@dataclass(frozen=True, slots=True)
class PathRows:
    """The rows in the order of their paths, with the times and choices of some scenarios.

    Parameters
    ----------
    index_host, index
        int64 (4, rows) on the host and in the engine's memory. For each position along the paths:
        the row, the row before it, the edge between them, that edge's entry in `crossing_ns`.
    own_ns
        uint64 (rows, slots, scenarios): the row's time, and that of arriving from elsewhere than
        along its path; 2**64 - 1 where it is not available.
    crossing_ns
        uint64 (crossings, slots, slots, scenarios).
    choice
        uint8 (edges + 1, slots, scenarios): by the reader's slot, the producer's slot of each
        chained edge. The last entry takes what is written for rows that no path enters.
    first_available
        uint8 (rows, scenarios), or None where every row can run at every slot.
    """

    xp: Any
    index_host: NDArray[np.int64]
    index: Any
    own_ns: Any
    crossing_ns: Any
    choice: Any
    first_available: Any

    def at(self, stretches: Stretches, step: int) -> Any:
        """Give the four indices of one step: slices, so views, where one stretch takes it."""
        if stretches.width[step] == 1:
            position = stretches.start_host[0] + step
            return [slice(k, k + 1) for k in self.index_host[:, position].tolist()]
        return self.index[:, stretches.start[: stretches.width[step]] + step]

    def own_at(self, row: Any) -> Any:
        """Give rows' own times as (slots, 1, rows, scenarios)."""
        return self.xp.ascontiguousarray(self.own_ns[row].transpose(1, 0, 2))[:, None]

    def first_at(self, row: Any) -> Any:
        """Give rows' first available slot, where it may matter."""
        return None if self.first_available is None else self.first_available[row]


def follow(rows: PathRows, stretches: Stretches, entry: Entry | None = None) -> tuple[Any, Any]:
    """Advance along the stretches and keep every choice.

    Returns
    -------
    times
        uint64 (slots, stretches, scenarios): on arrival at each one's last row.
    origin
        uint8 (slots, stretches, scenarios): the slot before the block from which each of them is
        reached; None without an entry.
    """
    xp = rows.xp
    reached = None if entry is None else entry.reached_ns
    origin: Any = None
    times, origins = [], []
    for step, width in enumerate(stretches.width):
        row, before, edge, crossing = rows.at(stretches, step)
        own_ns = rows.own_at(row)
        if reached is None:
            reached = own_ns
        else:
            via_ns = arrivals(xp, reached[:, :, :width], rows.crossing_ns[crossing])
            best, choice = lowest(xp, via_ns, rows.first_at(before))
            choice = choice[:, 0]
            rows.choice[edge] = choice.transpose(1, 0, 2)
            if entry is not None and step == 0:
                best, origin = xp.where(entry.is_first, xp.uint64(0), best), choice
            elif entry is not None:
                origin = pick(xp, origin[:, :width], choice)
            reached = plus(xp, best, own_ns)
        longer = stretches.width[step + 1] if step + 1 < len(stretches.width) else 0
        if longer < width:
            times.append(reached[:, 0, longer:])
            origins.append(None if origin is None else origin[:, longer:])
    times.reverse()
    origins.reverse()
    return xp.concatenate(times, axis=1), None if entry is None else xp.concatenate(origins, axis=1)


def through(rows: PathRows, blocks: Stretches, entry: Entry) -> Any:
    """Give the times to each slot at the end of a block from each slot before it.

    The blocks are of one length.

    Returns
    -------
    uint64 (slots reached, slots before, blocks, scenarios)
    """
    xp, reached = rows.xp, entry.reached_ns
    for step in range(len(blocks.width)):
        row, _, _, crossing = rows.at(blocks, step)
        best = arrivals(xp, reached, rows.crossing_ns[crossing]).min(axis=0)
        if step == 0:
            best = xp.where(entry.is_first, xp.uint64(0), best)
        reached = plus(xp, best, rows.own_at(row))
    return reached


def retrace(rows: PathRows, stretches: Stretches, last: Any, slot: Any) -> None:
    """Follow the choices back from the ends of the stretches.

    Parameters
    ----------
    last
        uint8 (stretches, scenarios): the slot of each stretch's last row.
    slot
        uint8 (rows, scenarios): written at the rows of the stretches.
    """
    xp = rows.xp
    slots, scenarios = rows.choice.shape[1:]
    at = last.astype(xp.int64)
    corner = xp.arange(len(at))[:, None] * (slots * scenarios) + xp.arange(scenarios)
    for step in range(len(stretches.width) - 1, -1, -1):
        width = stretches.width[step]
        row, _, edge, _ = rows.at(stretches, step)
        slot[row] = at[:width]
        if step:
            choice = rows.choice[edge].reshape(-1)
            at[:width] = choice.take(at[:width] * scenarios + corner[:width])
