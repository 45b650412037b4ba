"""Ranking and dominance in nodes of many candidates: the frontier first, then its order."""

from typing import Any

from fuel_gpu.arrays.dominance import undominated
from fuel_gpu.arrays.engine import Engine
from fuel_gpu.arrays.ordering import compact_numbers, lexicographic_order, numbered_runs, span
from fuel_gpu.planner.cost_columns import CostColumns, Marks

_WORST_CODE = 2**64 - 1


def mark_large_nodes(
    columns: CostColumns, rows: Any, node: Any, marks: Marks, engine: Engine
) -> None:
    """Mark what nodes keep before the cap, and rank it.

    Only what may stay is ranked: the frontier, the best of each stranded (device, backend), and
    rows whose total memory saturates, since only such a row can lead the order while another
    dominates it.

    Parameters
    ----------
    columns
        Candidates, those of a node adjacent.
    rows
        (m,) int64: the rows of the nodes to treat, ascending; ``slice(None)`` for all rows.
    node
        (m,) integers: their nodes, numbered from 0 in ascending order.
    marks
        Written at `rows`.
    engine
        Runs the passes.
    """
    xp = engine.xp
    frontier = _frontier(columns, rows, node, engine)
    time, host, device = (
        column[rows] for column in (columns.time_ns, columns.host_bytes, columns.device_bytes)
    )
    quality = 65535 - ((columns.precision[rows].astype(xp.uint16) << 8) | columns.accuracy[rows])
    total = host + device
    saturates = total < host
    total = xp.where(saturates, xp.uint64(_WORST_CODE), total)
    order_keys = (time, quality, total)

    pairs = _numbered(node, columns.pair[rows], columns.no_pair, engine)
    readmitted = _best_of_stranded(pairs, frontier, order_keys, xp)
    del pairs
    contenders = frontier | saturates
    contenders[readmitted] = True
    contenders = xp.flatnonzero(contenders)
    chosen = slice(None) if contenders.size == node.size else contenders
    keys = [node[chosen], *(key[chosen] for key in order_keys)]
    del order_keys, total
    ranked = contenders[lexicographic_order(keys, xp)]
    del keys, contenders
    starts, _, number = numbered_runs(node[ranked], engine)
    rank = xp.arange(ranked.size) - starts[number]

    listed = xp.full(node.size, 2, dtype=xp.uint8)
    listed[readmitted] = 1
    listed[frontier] = 0
    listed = listed[ranked]
    written = ranked if isinstance(rows, slice) else rows[ranked]
    marks.kept[written] = (listed < 2) | (rank == 0)
    marks.rank[written] = rank
    marks.listed[written] = listed


def _frontier(columns: CostColumns, rows: Any, node: Any, engine: Engine) -> Any:
    """Mark what no other candidate of the same node and device dominates."""
    buckets = _numbered(node, columns.device[rows], columns.no_device, engine)
    host, device = columns.host_bytes[rows], columns.device_bytes[rows]
    return undominated(
        [
            columns.time_ns[rows],
            *_memory_axes(host, device, buckets, engine.xp),
            255 - columns.precision[rows],
            255 - columns.accuracy[rows],
        ],
        buckets if span(buckets) else None,
        engine,
    )


def _numbered(node: Any, code: Any, codes: int, engine: Engine) -> Any:
    """Number (node, code) pairs from 0, with few numbers left unused."""
    xp = engine.xp
    return compact_numbers(node.astype(xp.uint64) * xp.uint64(codes) + code, engine)


def _memory_axes(host: Any, device: Any, buckets: Any, xp: Any) -> list[Any]:
    """Both tiers as one axis where no bucket uses both, as in every table made of candidates."""
    uses_host = xp.zeros(span(buckets) + 1, dtype=bool)
    uses_device = xp.zeros(span(buckets) + 1, dtype=bool)
    uses_host[buckets[host > 0]] = True
    uses_device[buckets[device > 0]] = True
    if bool((uses_host & uses_device).any()):
        return [host, device]
    return [host | device]


def _best_of_stranded(pairs: Any, frontier: Any, order_keys: Any, xp: Any) -> Any:
    """Position of the first in ranked order of each pair that has none on the frontier."""
    represented = xp.zeros(span(pairs) + 1, dtype=bool)
    represented[pairs[frontier]] = True
    stranded = xp.flatnonzero(~represented[pairs])
    if not stranded.size:
        return stranded
    pair = pairs[stranded]
    keys = [pair, *(key[stranded] for key in order_keys)]
    order = lexicographic_order(keys, xp)
    pair = pair[order]
    leads = xp.ones(order.size, dtype=bool)
    leads[1:] = pair[1:] != pair[:-1]
    return stranded[order[leads]]
