"""Ranking and dominance in nodes of few candidates, by comparing all pairs of a node.

All nodes of one size are compared at once, one distance between places in the node at a time.
"""

from dataclasses import dataclass
from typing import Any, Final

from fuel_gpu.arrays.engine import Engine
from fuel_gpu.planner.cost_columns import CostColumns, Marks

LARGEST: Final = 16
"""Above this many candidates a node goes through sorting instead."""

_PADDED_SIZES: Final = (1, 2, 4, 8, 16)
_WORST: Final = 2**64 - 1


def mark_small_nodes(
    columns: CostColumns, starts: Any, counts: Any, marks: Marks, engine: Engine
) -> None:
    """Rank every node of at most `LARGEST` candidates and mark what it keeps before the cap.

    Parameters
    ----------
    columns
        Candidates, those of a node adjacent.
    starts, counts
        (nodes,) int64: where a node's candidates begin, and how many there are.
    marks
        Written at the rows of the nodes treated.
    engine
        Runs the passes.
    """
    xp = engine.xp
    largest, smallest = int(counts.max()), int(counts.min())
    if smallest == largest <= LARGEST:
        size = largest
        for nodes in engine.chunks(counts.size, 8 * size):
            rows = slice(nodes.start * size, nodes.stop * size)
            block = _block(columns, rows, size, xp)
            marked = _mark(block, engine)
            marks.kept[rows] = marked.kept.T.reshape(-1)
            marks.rank[rows] = marked.rank.T.reshape(-1)
            marks.listed[rows] = marked.listed.T.reshape(-1)
        return
    fewer = 0
    for size in _PADDED_SIZES:
        chosen = xp.flatnonzero((counts > fewer) & (counts <= size))
        for nodes in engine.chunks(chosen.size, 8 * size) if chosen.size else ():
            of_chunk = chosen[nodes]
            _mark_padded(columns, starts[of_chunk], counts[of_chunk], size, marks, engine)
        fewer = size


@dataclass(frozen=True, slots=True)
class _Block:
    """Columns of equally large nodes, laid out as (place in node, node)."""

    time_ns: Any
    host_bytes: Any
    device_bytes: Any
    precision: Any
    accuracy: Any
    device: Any
    pair: Any


def _block(columns: CostColumns, rows: slice, size: int, xp: Any) -> _Block:
    return _Block(
        *(
            xp.ascontiguousarray(column[rows].reshape(-1, size).T)
            for column in (
                columns.time_ns,
                columns.host_bytes,
                columns.device_bytes,
                columns.precision,
                columns.accuracy,
                columns.device,
                columns.pair,
            )
        )
    )


def _mark_padded(
    columns: CostColumns, starts: Any, counts: Any, size: int, marks: Marks, engine: Engine
) -> None:
    xp = engine.xp
    place = xp.arange(size, dtype=xp.int64)[:, None]
    valid = place < counts
    rows = xp.where(valid, starts + place, starts)

    def padded(column: Any, worst: int) -> Any:
        return xp.where(valid, column[rows], column.dtype.type(worst))

    # What pads a node is the worst of all and on no device, so it neither dominates nor leads.
    block = _Block(
        padded(columns.time_ns, _WORST),
        padded(columns.host_bytes, _WORST),
        padded(columns.device_bytes, _WORST),
        padded(columns.precision, 0),
        padded(columns.accuracy, 0),
        padded(columns.device, columns.no_device),
        padded(columns.pair, columns.no_pair),
    )
    marked = _mark(block, engine)
    rows = rows[valid]
    marks.kept[rows] = marked.kept[valid]
    marks.rank[rows] = marked.rank[valid]
    marks.listed[rows] = marked.listed[valid]


def _mark(block: _Block, engine: Engine) -> Marks:
    xp = engine.xp
    shape = block.time_ns.shape
    rank = xp.empty(shape, dtype=xp.uint8)
    rank[:] = xp.arange(shape[0], dtype=xp.uint8)[:, None]
    dominated = xp.zeros(shape, dtype=bool)
    quality = (block.precision.astype(xp.uint16) << 8) | block.accuracy
    total = block.host_bytes + block.device_bytes
    saturates = total < block.host_bytes
    total = xp.where(saturates, xp.uint64(_WORST), total)
    any_saturates = engine.may_hold(saturates)
    for distance in range(1, shape[0]):
        here, there = slice(distance, None), slice(None, -distance)
        time, time_there = block.time_ns[here], block.time_ns[there]
        first = time < time_there
        tie = time == time_there
        tied = engine.may_hold(tie)
        if tied:
            tie &= quality[here] == quality[there]
            first |= (time == time_there) & (quality[here] > quality[there])
            first |= tie & (total[here] < total[there])
            tie &= total[here] == total[there]
        rank[there] += first.view(xp.uint8)
        rank[here] -= first.view(xp.uint8)
        same = block.device[here] == block.device[there]
        leaner = block.host_bytes[here] <= block.host_bytes[there]
        leaner &= block.device_bytes[here] <= block.device_bytes[there]
        fatter = block.host_bytes[here] >= block.host_bytes[there]
        fatter &= block.device_bytes[here] >= block.device_bytes[there]
        if tied:
            if any_saturates:
                tie &= same
                dominated[there] |= tie & leaner & ~fatter
                dominated[here] |= tie & fatter & ~leaner
            strictly_later = ~(first | tie)
        else:
            strictly_later = ~first
        leaner &= block.precision[here] >= block.precision[there]
        leaner &= block.accuracy[here] >= block.accuracy[there]
        leaner &= same
        leaner &= first
        dominated[there] |= leaner
        fatter &= block.precision[here] <= block.precision[there]
        fatter &= block.accuracy[here] <= block.accuracy[there]
        fatter &= same
        fatter &= strictly_later
        dominated[here] |= fatter
    return _with_readmitted(block.pair, rank, ~dominated, xp)


def _with_readmitted(pair: Any, rank: Any, frontier: Any, xp: Any) -> Marks:
    """Add each stranded (device, backend)'s best candidate to the frontier, and the winner."""
    represented = frontier.copy()
    preceded = xp.zeros(pair.shape, dtype=bool)
    for distance in range(1, pair.shape[0]):
        here, there = slice(distance, None), slice(None, -distance)
        same = pair[here] == pair[there]
        represented[here] |= same & frontier[there]
        represented[there] |= same & frontier[here]
        later = rank[here] > rank[there]
        preceded[here] |= same & later
        preceded[there] |= same & ~later
    readmitted = ~(represented | preceded)
    kept = frontier | readmitted | (rank == 0)
    listed = (~frontier).astype(xp.uint8) + (~(frontier | readmitted))
    return Marks(kept, rank, listed)
