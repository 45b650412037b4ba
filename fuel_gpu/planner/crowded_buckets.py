"""The crowding cap on every (node, device) bucket that keeps too many candidates."""

from typing import Any

from fuel_gpu.arrays.engine import Engine
from fuel_gpu.arrays.ordering import compact_numbers, lexicographic_order
from fuel_gpu.planner.cost_columns import CostColumns, Marks
from fuel_gpu.planner.crowding import cap_groups


def cap_crowded_buckets(
    columns: CostColumns, node: Any, counts: Any, keep: int, marks: Marks, engine: Engine
) -> None:
    """Thin the buckets of which more than `keep` rows are kept.

    Parameters
    ----------
    columns
        Candidates, those of a node adjacent.
    node
        (n,) integers: their nodes, numbered from 0 in ascending order.
    counts
        (nodes,) int64: how many candidates each node has.
    keep
        Bound for each bucket, at least 1.
    marks
        Of all rows; `kept` is cleared where a row goes.
    engine
        Runs the passes.
    """
    xp = engine.xp
    rows = xp.flatnonzero(marks.kept & (counts > keep)[node])
    codes = node[rows].astype(xp.uint64) * xp.uint64(columns.no_device) + columns.device[rows]
    bucket = compact_numbers(codes, engine)
    del codes
    crowded = (xp.bincount(bucket) > keep)[bucket]
    rows, bucket = rows[crowded], bucket[crowded]
    if not rows.size:
        return
    order = lexicographic_order([bucket, marks.listed[rows], marks.rank[rows]], xp)
    rows, bucket = rows[order], bucket[order]
    del order
    axes = [
        _axis(column[rows], xp)
        for column in (
            columns.time_ns,
            columns.host_bytes,
            columns.device_bytes,
            columns.precision,
            columns.accuracy,
        )
    ]
    marks.kept[rows] = cap_groups(
        axes, keep, bucket, columns.pair[rows], marks.rank[rows] == 0, engine
    )


def _axis(column: Any, xp: Any) -> Any:
    """Make a crowding axis of a cost: as narrow as holds it exactly, or float64."""
    if column.dtype == xp.uint8:
        return column
    if bool((column == column[0]).all()):
        return xp.zeros(column.size, dtype=xp.uint8)
    return column.astype(xp.float64)
