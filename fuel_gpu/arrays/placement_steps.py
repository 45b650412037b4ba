"""The placement DP's arithmetic: many stretches of paths side by side, forward and back.

A stretch is a path of rows, or a block of one. Times are saturating uint64 in arrays of up to four
axes, in this order: the slot reached; the slot before a block (of length 1 unless all are followed
at once); the stretch; the scenario.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.numbers import U64_MAX


@dataclass(frozen=True, slots=True)
class Stretches:
    """Stretches of the paths, longest first, that advance side by side.

    Parameters
    ----------
    start_host, length_host
        int64 (stretches,) on the host: the position of each one's first row in the order of the
        paths, and how many rows it has.
    start
        `start_host` in the engine's memory.
    """

    start_host: NDArray[np.int64]
    length_host: NDArray[np.int64]
    start: Any

    def widths(self) -> list[int]:
        """Give for each step how many stretches are long enough to take it."""
        steps = np.arange(self.length_host[0])
        widths: list[int] = np.searchsorted(-self.length_host, -steps).tolist()
        return widths


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
        uint64 (crossings, slots, slots, scenarios or 1).
    choice
        uint8 (edges + 1, slots, scenarios): by the reader's slot, the producer's slot of each
        chained edge. The last entry takes what is written for rows that no path enters.
    first_available
        uint8 (rows, scenarios or 1), or None where every row can run at every slot.
    """

    index_host: NDArray[np.int64]
    index: Any
    own_ns: Any
    crossing_ns: Any
    choice: Any
    first_available: Any


@dataclass(frozen=True, slots=True)
class Entry:
    """How blocks of paths are entered.

    Parameters
    ----------
    reached_ns
        uint64 (slots, blocks, scenarios): the times at the slots before the block.
    is_first
        bool (blocks,): whether the block begins its path, so that nothing comes before it.
    """

    reached_ns: Any
    is_first: Any


class Steps(Protocol):
    """The parts of the DP that go row by row along stretches."""

    @property
    def xp(self) -> Any:
        """The module that makes and takes the arrays."""
        ...

    def follow(self, rows: PathRows, stretches: Stretches, entry: Entry | None) -> tuple[Any, Any]:
        """Advance along the stretches and keep every choice.

        Returns
        -------
        times
            uint64 (slots, stretches, scenarios): on arrival at each one's last row.
        origin
            uint8 (slots, stretches, scenarios): the slot before the block from which each of them
            is reached; None without an entry.
        """
        ...

    def through(self, rows: PathRows, blocks: Stretches, is_first: Any) -> Any:
        """Give the times to each slot at the end of a block from each slot before it.

        The blocks are of one length; `is_first` is as in `Entry`.

        Returns
        -------
        uint64 (slots reached, slots before, blocks, scenarios)
        """
        ...

    def scan(self, through_ns: Any, first: list[int]) -> Any:
        """Give the times before each block from those through them.

        Parameters
        ----------
        through_ns
            As `through` gives them, of the blocks that another block follows.
        first
            The number of the first block at each place along the paths, and how many there are.
            Blocks are numbered by place, then by path, the paths with most blocks first.

        Returns
        -------
        uint64 (slots, blocks, scenarios)
        """
        ...

    def block_ends(self, origin: Any, first: list[int], last: Any) -> Any:
        """Give the slot at the end of each block, uint8 (blocks, scenarios).

        Parameters
        ----------
        origin
            As `follow` gives it, by the number of the block.
        first
            As in `scan`.
        last
            uint8 (paths, scenarios): the slot at the end of each path.
        """
        ...

    def retrace(self, rows: PathRows, stretches: Stretches, last: Any, slot: Any) -> None:
        """Follow the choices back from the ends of the stretches.

        Parameters
        ----------
        last
            uint8 (stretches, scenarios): the slot of each stretch's last row.
        slot
            uint8 (rows, scenarios): written at the rows of the stretches.
        """
        ...


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
class ArraySteps:
    """The steps as array operations, some ten for each row of the longest stretch."""

    xp: Any

    def follow(
        self, rows: PathRows, stretches: Stretches, entry: Entry | None = None
    ) -> tuple[Any, Any]:
        xp, widths = self.xp, stretches.widths()
        reached = None if entry is None else entry.reached_ns[:, None]
        origin: Any = None
        times, origins = [], []
        for step, width in enumerate(widths):
            row, before, edge, crossing = self._at(rows, stretches, step, width)
            own_ns = self._own(rows, row)
            if reached is None:
                reached = own_ns
            else:
                via_ns = arrivals(xp, reached[:, :, :width], rows.crossing_ns[crossing])
                best, choice = lowest(xp, via_ns, first_at(rows, before))
                choice = choice[:, 0]
                rows.choice[edge] = choice.transpose(1, 0, 2)
                if entry is not None and step == 0:
                    best, origin = self._begin(best, entry.is_first), choice
                elif entry is not None:
                    origin = pick(xp, origin[:, :width], choice)
                reached = plus(xp, best, own_ns)
            longer = widths[step + 1] if step + 1 < len(widths) else 0
            if longer < width:
                times.append(reached[:, 0, longer:])
                origins.append(None if origin is None else origin[:, longer:])
        times.reverse()
        origins.reverse()
        ended = xp.concatenate(times, axis=1)
        return ended, None if entry is None else xp.concatenate(origins, axis=1)

    def through(self, rows: PathRows, blocks: Stretches, is_first: Any) -> Any:
        xp, (_, slots, scenarios), widths = self.xp, rows.own_ns.shape, blocks.widths()
        apart = xp.where(xp.eye(slots, dtype=xp.bool_), xp.uint64(0), xp.uint64(U64_MAX))
        reached = xp.broadcast_to(apart[:, :, None, None], (slots, slots, widths[0], scenarios))
        for step, width in enumerate(widths):
            row, _, _, crossing = self._at(rows, blocks, step, width)
            best = arrivals(xp, reached, rows.crossing_ns[crossing]).min(axis=0)
            if step == 0:
                best = self._begin(best, is_first)
            reached = plus(xp, best, self._own(rows, row))
        return reached

    def scan(self, through_ns: Any, first: list[int]) -> Any:
        xp, (slots, _, _, scenarios) = self.xp, through_ns.shape
        before = [xp.zeros((slots, first[1], scenarios), xp.uint64)]
        for place in range(1, len(first) - 1):
            inner = slice(first[place] - first[1], first[place + 1] - first[1])
            reached = before[-1][None, :, : inner.stop - inner.start]
            before.append(plus(xp, reached, through_ns[:, :, inner]).min(axis=1))
        return xp.concatenate(before, axis=1)

    def block_ends(self, origin: Any, first: list[int], last: Any) -> Any:
        at, ends = last.copy(), []
        for place in range(len(first) - 2, -1, -1):
            here = slice(first[place], first[place + 1])
            paths = here.stop - here.start
            ends.append(at[:paths].copy())
            at[:paths] = pick(self.xp, origin[:, here], at[:paths])
        ends.reverse()
        return self.xp.concatenate(ends)

    def retrace(self, rows: PathRows, stretches: Stretches, last: Any, slot: Any) -> None:
        xp, (_, slots, scenarios) = self.xp, rows.choice.shape
        at = last.astype(xp.int64)
        corner = xp.arange(len(at))[:, None] * (slots * scenarios) + xp.arange(scenarios)
        widths = stretches.widths()
        for step in range(len(widths) - 1, -1, -1):
            width = widths[step]
            row, _, edge, _ = self._at(rows, stretches, step, width)
            slot[row] = at[:width]
            if step:
                choice = rows.choice[edge].reshape(-1)
                at[:width] = choice.take(at[:width] * scenarios + corner[:width])

    def _at(self, rows: PathRows, stretches: Stretches, step: int, width: int) -> Any:
        """Give the four indices of one step: slices, so views, where one stretch takes it."""
        if width == 1:
            position = stretches.start_host[0] + step
            return [slice(k, k + 1) for k in rows.index_host[:, position].tolist()]
        return rows.index[:, stretches.start[:width] + step]

    def _own(self, rows: PathRows, row: Any) -> Any:
        return self.xp.ascontiguousarray(rows.own_ns[row].transpose(1, 0, 2))[:, None]

    def _begin(self, best: Any, is_first: Any) -> Any:
        return self.xp.where(is_first[:, None], self.xp.uint64(0), best)


def first_at(rows: PathRows, row: Any) -> Any:
    """Give rows' first available slot, where it may matter."""
    return None if rows.first_available is None else rows.first_available[row]
