"""The crowding cap: thin a frontier to a bound while keeping its spread."""

from collections.abc import Sequence
from math import isfinite
from typing import Any, Final

from fuel_gpu.arrays.engine import Engine, EngineName, choose_engine, is_on_gpu, run
from fuel_gpu.arrays.ordering import dense_ranks, lexicographic_order, ordered_codes, span
from fuel_gpu.arrays.peel import link_axes, removal_distances, remove_one_at_a_time
from fuel_gpu.errors import UsageError

MOST_PEELS: Final = 8
"""Peels before points go one at a time: each further one protects one label's last point."""


def crowding_cap(
    points: Any,
    keep: int,
    *,
    groups: Any | None = None,
    labels: Any | None = None,
    protected: Any | None = None,
    engine: EngineName | Engine | None = None,
    crossover: int | None = None,
) -> Any:
    """Choose at most `keep` points of each group by dropping the most crowded, one at a time.

    The crowding distance of a point (NSGA-II) is the sum over the axes of the gap between its
    neighbours, divided by the range; the ends of each axis count as infinitely far. The point with
    the least distance goes, the first of equals, and distances are taken anew. The result is
    that of this loop, point for point; the work is about m log m for m points, and the memory
    about 60 bytes a point and axis.

    Parameters
    ----------
    points
        (m, d) finite numbers. They are compared as float64.
    keep
        Bound for each group; 0 counts as 1.
    groups
        (m,) integers, or None for one group. Each group is thinned on its own.
    labels
        (m,) integers. A label never loses its last point in a group.
    protected
        (m,) bool: points that stay.
    engine, crossover
        Where to run, as `fuel_gpu.arrays.engine.choose_engine` takes them; the crossover is in
        points.

    Returns
    -------
    bool array
        (m,), where `points` lies: the points that stay. More than `keep` of a group stay only
        where labels and protection demand it.

    Raises
    ------
    UsageError
        If shapes do not agree, or a point or the range of an axis is not finite.
    """
    on_gpu = is_on_gpu(points)
    chosen = choose_engine(engine, work=len(points), crossover=crossover, on_gpu=on_gpu)

    def program(engine: Engine) -> Any:
        mask = _cap(points, keep, (groups, labels, protected), engine)
        return mask if on_gpu else engine.give_out(mask)

    return run(program, chosen)


def _cap(points: Any, keep: int, codes: tuple[Any, Any, Any], engine: Engine) -> Any:
    xp = engine.xp
    columns, group, label, shielded = _checked(points, codes, engine)
    count = group.size
    if count == 0:
        return xp.ones(0, dtype=bool)
    order = None
    if not bool((group[1:] >= group[:-1]).all()):
        order = lexicographic_order([group], xp)
        columns = [column[order] for column in columns]
        group, label, shielded = group[order], label[order], shielded[order]
    kept = cap_groups(columns, max(keep, 1), group, label, shielded, engine)
    if order is None:
        return kept
    mask = xp.empty(count, dtype=bool)
    mask[order] = kept
    return mask


def cap_groups(
    columns: Sequence[Any], keep: int, groups: Any, labels: Any, protected: Any, engine: Engine
) -> Any:
    """Mark the points that stay: as `crowding_cap`, for groups that stand together.

    Parameters
    ----------
    columns
        (m,) float64 arrays, one an axis, finite.
    keep
        Bound for each group, at least 1.
    groups, labels
        (m,) uint64; groups ascend.
    protected
        (m,) bool.
    """
    xp = engine.xp
    kept = xp.ones(groups.size, dtype=bool)
    excess = _sizes(groups, xp) - keep
    points = xp.flatnonzero(excess > 0)
    shielded = protected.copy()
    for _ in range(MOST_PEELS):
        if not points.size:
            break
        gone, last_of_label = _peel(
            _rows_of(columns, points),
            excess[points],
            groups[points],
            labels[points],
            shielded[points],
            engine,
        )
        kept[points[gone]] = False
        shielded[points[last_of_label]] = True
        again = xp.zeros(groups.size, dtype=bool)
        again[points[last_of_label]] = True
        excess = _sizes(groups, xp, kept) - keep
        points = xp.flatnonzero(kept & (_sizes(groups, xp, again) > 0))
    if points.size:
        gone = _drop_one_at_a_time(
            [column[points] for column in columns],
            excess[points],
            groups[points],
            labels[points],
            protected[points],
            engine,
        )
        kept[points[gone]] = False
    excess = _sizes(groups, xp, kept) - keep
    points = xp.flatnonzero(kept & (excess > 0))
    if points.size:
        gone = _first_that_may_go(
            excess[points], groups[points], labels[points], protected[points], xp
        )
        kept[points[gone]] = False
    return kept


def _peel(
    columns: Sequence[Any], excess: Any, groups: Any, labels: Any, shielded: Any, engine: Engine
) -> tuple[Any, Any]:
    """Points that certainly go, and in each group the first to be its label's last.

    What goes after the latter must be found anew, with that point in its place.
    """
    xp = engine.xp
    pairs = _joint(groups, labels, xp)
    in_pair = xp.bincount(pairs)
    lists = link_axes(columns, groups, engine)
    removed_at = removal_distances(lists, shielded | (in_pair[pairs] == 1), engine)
    order = lexicographic_order([groups, ordered_codes(removed_at, xp)], xp)
    slot = xp.arange(order.size, dtype=xp.uint64)
    number = _numbers(groups, xp)
    place = slot.astype(xp.int64) - xp.searchsorted(groups, groups)
    goes = (place < excess) & xp.isfinite(removed_at[order])
    gone_pairs = pairs[order][goes]
    emptied = xp.bincount(gone_pairs, minlength=in_pair.size) == in_pair
    if not bool(emptied.any()):
        return order[goes], order[:0]
    last = xp.zeros(in_pair.size, dtype=xp.uint64)
    xp.maximum.at(last, gone_pairs, slot[goes])
    pair_slots = last[emptied].astype(xp.int64)
    first = xp.full(order.size, order.size, dtype=xp.uint64)
    xp.minimum.at(first, number[pair_slots], last[emptied])
    until = first[number]
    return order[goes & (slot < until)], order[slot == until]


def _drop_one_at_a_time(
    columns: Sequence[Any], excess: Any, groups: Any, labels: Any, protected: Any, engine: Engine
) -> Any:
    """Points that go while some that may go have a finite distance, labels minded throughout."""
    xp = engine.xp
    number, pairs = _numbers(groups, xp), _joint(groups, labels, xp)
    lists = link_axes(columns, groups, engine)
    in_pair = xp.bincount(pairs).tolist()
    quota = dict(zip(number.tolist(), excess.tolist(), strict=True))
    group_of, pair_of = number.tolist(), pairs.tolist()

    def leave(point: int) -> bool:
        if quota[group_of[point]] == 0 or in_pair[pair_of[point]] == 1:
            return False
        quota[group_of[point]] -= 1
        in_pair[pair_of[point]] -= 1
        return True

    stays = protected | lists.ends
    gone, _ = remove_one_at_a_time(lists, xp.flatnonzero(~stays), leave)
    return xp.asarray(gone, dtype=xp.int64)


def _first_that_may_go(excess: Any, groups: Any, labels: Any, protected: Any, xp: Any) -> Any:
    """Points that go once every one that may go is at an end of an axis: the first, in order."""
    pairs = _joint(groups, labels, xp)
    position = xp.arange(groups.size, dtype=xp.uint64)
    last = xp.zeros(int(pairs.max()) + 1, dtype=xp.uint64)
    xp.maximum.at(last, pairs, position)
    stand_in = xp.bincount(pairs, weights=protected.astype(xp.float64)) > 0.0
    may_go = ~protected & (stand_in[pairs] | (position != last[pairs]))
    before = xp.cumsum(may_go) - may_go
    before = before - before[xp.searchsorted(groups, groups)]
    return xp.flatnonzero(may_go & (before < excess))


def _rows_of(columns: Sequence[Any], points: Any) -> Sequence[Any]:
    """Take the points' rows; all rows without a copy."""
    if points.size == columns[0].size:
        return columns
    return [column[points] for column in columns]


def _numbers(groups: Any, xp: Any) -> Any:
    """Number ascending groups from 0."""
    fresh = xp.zeros(groups.size, dtype=xp.int64)
    fresh[1:] = groups[1:] != groups[:-1]
    return xp.cumsum(fresh)


def _sizes(groups: Any, xp: Any, counted: Any | None = None) -> Any:
    """How many points each point's group has, of those counted."""
    number = _numbers(groups, xp)
    return xp.bincount(number if counted is None else number[counted], minlength=groups.size)[
        number
    ]


def _joint(groups: Any, labels: Any, xp: Any) -> Any:
    """Number the (group, label) pairs from 0."""
    number = _numbers(groups, xp).astype(xp.uint64)
    codes = number * xp.uint64(span(labels) + 1) + labels
    return dense_ranks(codes, xp).astype(xp.int64)


def _checked(
    points: Any, given: tuple[Any, Any, Any], engine: Engine
) -> tuple[list[Any], Any, Any, Any]:
    xp = engine.xp
    points = engine.take_in(points)
    if points.ndim != 2 or points.dtype.kind not in "buif":
        raise UsageError(
            f"points must be a (m, d) array of numbers, not {points.ndim}-D of {points.dtype}"
        )
    count, axes = points.shape
    columns = [points[:, axis].astype(xp.float64) for axis in range(axes)]
    for axis, column in enumerate(columns):
        if count and not isfinite(float(column.max()) - float(column.min())):
            raise UsageError(f"axis {axis} of points has values or a range that is not finite")
    codes = []
    for name, column in zip(("groups", "labels", "protected"), given, strict=True):
        if column is None:
            codes.append(xp.zeros(count, dtype=xp.uint64))
            continue
        column = engine.take_in(column)
        if column.shape != (count,) or column.dtype.kind not in "bui":
            raise UsageError(
                f"{name} must be {count} integers, one a point, "
                f"not shape {column.shape} of {column.dtype}"
            )
        codes.append(ordered_codes(column, xp) if count else column.astype(xp.uint64))
    groups, labels, protected = codes
    if count and span(labels) > count:
        labels = dense_ranks(labels, xp)
    return columns, groups, labels, protected.astype(bool)
