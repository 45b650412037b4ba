"""The crowding cap on every (node, device) bucket that keeps too many candidates."""

from typing import Any

from fuel_gpu.arrays.engine import Engine
from fuel_gpu.arrays.ordering import dense_ranks, lexicographic_order
from fuel_gpu.planner.cost_columns import CostColumns, Marks
from fuel_gpu.planner.crowding import cap_groups


def cap_crowded_buckets(
    columns: CostColumns, rows: Any, node: Any, keep: int, marks: Marks, engine: Engine
) -> None:
    """Thin the buckets of which more than `keep` rows are kept.

    Parameters
    ----------
    columns
        Candidates, those of a node adjacent.
    rows
        (m,) int64: kept rows, ascending: all that their nodes keep.
    node
        (m,) uint64: their nodes, numbered from 0 in ascending order.
    keep
        Bound for each bucket, at least 1.
    marks
        Of all rows; `kept` is cleared where a row goes.
    engine
        Runs the passes.
    """
    xp = engine.xp
    bucket = dense_ranks(node * xp.uint64(columns.no_device) + columns.device[rows], xp)
    crowded = xp.bincount(bucket.astype(xp.int64))[bucket.astype(xp.int64)] > keep
    rows, bucket = rows[crowded], bucket[crowded]
    if not rows.size:
        return
    listed, rank = marks.listed[rows], marks.rank[rows]
    order = lexicographic_order([bucket, listed.astype(xp.uint64), rank.astype(xp.uint64)], xp)
    rows, bucket = rows[order], bucket[order]
    axes = [
        column[rows].astype(xp.float64)
        for column in (
            columns.time_ns,
            columns.host_bytes,
            columns.device_bytes,
            columns.precision,
            columns.accuracy,
        )
    ]
    marks.kept[rows] = cap_groups(
        axes, keep, bucket, columns.pair[rows].astype(xp.uint64), rank[order] == 0, engine
    )
