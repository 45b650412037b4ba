"""Ranking and dominance in nodes of many candidates: the frontier first, then its order."""

from typing import Any

from fuel_gpu.arrays.dominance import undominated
from fuel_gpu.arrays.engine import Engine
from fuel_gpu.arrays.ordering import dense_ranks, lexicographic_order, span
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
        (m,) int64: the rows of the nodes to treat, ascending.
    node
        (m,) uint64: their nodes, numbered from 0 in ascending order.
    marks
        Written at `rows`.
    engine
        Runs the passes.
    """
    xp = engine.xp
    time, host, device = (
        column[rows] for column in (columns.time_ns, columns.host_bytes, columns.device_bytes)
    )
    precision, accuracy = columns.precision[rows], columns.accuracy[rows]
    buckets = _numbered(node, columns.device[rows], columns.no_device, xp)
    frontier = undominated(
        [time, *_memory_axes(host, device, buckets, xp), 255 - precision, 255 - accuracy],
        buckets if span(buckets) else None,
        engine,
    )
    total = host + device
    saturates = total < host
    total = xp.where(saturates, xp.uint64(_WORST_CODE), total)
    quality = 65535 - ((precision.astype(xp.uint16) << 8) | accuracy)
    order_keys = (time, quality.astype(xp.uint64), total)

    pairs = _numbered(node, columns.pair[rows], columns.no_pair, xp)
    readmitted = _best_of_stranded(pairs, frontier, order_keys, xp)
    contenders = frontier | saturates
    contenders[readmitted] = True
    contenders = xp.flatnonzero(contenders)
    keys = [node[contenders], *(key[contenders] for key in order_keys)]
    ranked = contenders[lexicographic_order(keys, xp)]
    ranked_node = node[ranked]
    rank = xp.arange(ranked.size) - xp.searchsorted(ranked_node, ranked_node)

    listed = xp.full(rows.size, 2, dtype=xp.uint8)
    listed[readmitted] = 1
    listed[frontier] = 0
    marks.kept[rows[ranked]] = (listed[ranked] < 2) | (rank == 0)
    marks.rank[rows[ranked]] = rank
    marks.listed[rows[ranked]] = listed[ranked]


def _numbered(node: Any, code: Any, codes: int, xp: Any) -> Any:
    """Number (node, code) pairs by int64 from 0, with few numbers left unused."""
    numbers = node * xp.uint64(codes) + code
    if span(numbers) > 4 * node.size:
        numbers = dense_ranks(numbers, xp)
    return numbers.astype(xp.int64)


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
    pair = pairs[stranded].astype(xp.uint64)
    keys = [pair, *(key[stranded] for key in order_keys)]
    order = lexicographic_order(keys, xp)
    pair = pair[order]
    leads = xp.ones(order.size, dtype=bool)
    leads[1:] = pair[1:] != pair[:-1]
    return stranded[order[leads]]
