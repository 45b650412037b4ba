"""The crowding cap: thin a frontier to a bound while keeping its spread."""

from collections.abc import Sequence
from math import isfinite
from typing import Any, Final

from fuel_gpu.arrays.axis_lists import link_axes
from fuel_gpu.arrays.engine import Engine, EngineName, choose_engine, given_array, is_on_gpu, run
from fuel_gpu.arrays.ordering import (
    compact_numbers,
    dense_ranks,
    lexicographic_order,
    numbered_runs,
    ordered_codes,
    span,
)
from fuel_gpu.arrays.peel import removal_distances, remove_one_at_a_time
from fuel_gpu.errors import UsageError
from fuel_gpu.numbers import whole_number

MOST_PEELS: Final = 8
"""Peels before points go one at a time: each further one protects one label's last point."""

STRIDE: Final = 64
"""One point in so many makes the sample that narrows the search for the last to leave."""

SAMPLED_FROM: Final = 1024
"""Points that there must be for each that stays before a sample is taken."""


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
    about 30 bytes a point and axis.

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
        If shapes do not agree, a point or the range of an axis is not finite, or `keep` is no
        whole number from 0.
    """
    keep = whole_number(keep, "keep")
    points = given_array(points, "points")
    named = {"groups": groups, "labels": labels, "protected": protected}
    codes = {
        name: None if values is None else given_array(values, name)
        for name, values in named.items()
    }
    on_gpu = is_on_gpu(points)
    chosen = choose_engine(engine, work=len(points), crossover=crossover, on_gpu=on_gpu)

    def program(engine: Engine) -> Any:
        mask = _cap(points, keep, codes, engine)
        return mask if on_gpu else engine.give_out(mask)

    return run(program, chosen)


def _cap(points: Any, keep: int, codes: dict[str, Any], engine: Engine) -> Any:
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
        (m,) arrays, one an axis: finite float64, or integers below 2**53.
    keep
        Bound for each group, at least 1.
    groups, labels
        (m,) unsigned, m > 0; groups ascend.
    protected
        (m,) bool.
    """
    xp = engine.xp
    _, excess, number = numbered_runs(groups, engine)
    excess -= keep
    kept = xp.ones(number.size, dtype=bool)
    shielded = protected.copy()
    points = xp.flatnonzero((excess > 0)[number])
    for _ in range(MOST_PEELS):
        if not points.size:
            break
        # All rows are taken without a copy.
        rows = slice(None) if points.size == number.size else points
        del points
        of_group = number[rows]
        gone, last_of_label = _peel(
            [column[rows] for column in columns],
            keep,
            of_group,
            labels[rows],
            shielded[rows],
            engine,
        )
        kept[rows] = ~gone
        shielded[rows] |= last_of_label
        excess -= xp.bincount(of_group[gone], minlength=excess.size)
        again = xp.bincount(of_group[last_of_label], minlength=excess.size) > 0
        points = xp.flatnonzero(kept & again[number])
    if points.size:
        gone = _drop_one_at_a_time(
            [column[points] for column in columns],
            excess,
            number[points],
            labels[points],
            protected[points],
            engine,
        )
        kept[points] = ~gone
        excess -= xp.bincount(number[points[gone]], minlength=excess.size)
    points = xp.flatnonzero(kept & (excess > 0)[number])
    if points.size:
        kept[points] = ~_first_that_may_go(
            excess, number[points], labels[points], protected[points], engine
        )
    return kept


def _peel(
    columns: Sequence[Any], keep: int, number: Any, labels: Any, shielded: Any, engine: Engine
) -> tuple[Any, Any]:
    """Masks of what certainly goes, and in each group of the first to be its label's last.

    What goes after the latter must be found anew, with that point in its place.
    """
    xp = engine.xp
    pairs = _joint(number, labels, engine)
    in_pair = xp.bincount(pairs)
    pinned = shielded | (in_pair == 1)[pairs]
    removed_at = removal_distances(link_axes(columns, number, engine), pinned, engine)
    gone = xp.isfinite(removed_at)
    gone[_last_to_leave(removed_at, keep, number, engine)] = False
    last_of_label = xp.zeros_like(gone)
    emptied = (in_pair > 0) & (xp.bincount(pairs[gone], minlength=in_pair.size) == in_pair)
    if not bool(emptied.any()):
        return gone, last_of_label
    lasts = xp.flatnonzero(gone & emptied[pairs])
    lasts = lasts[_removal_order(pairs[lasts], removed_at[lasts], xp)]
    starts, counts, _ = numbered_runs(pairs[lasts], engine)
    lasts = xp.sort(lasts[starts + counts - 1])
    lasts = lasts[_removal_order(number[lasts], removed_at[lasts], xp)]
    starts, _, _ = numbered_runs(number[lasts], engine)
    firsts = lasts[starts]
    last_of_label[firsts] = True
    groups = int(number[-1]) + 1
    until, until_position = xp.full(groups, xp.inf), xp.full(groups, number.size, dtype=xp.int64)
    until[number[firsts]] = removed_at[firsts]
    until_position[number[firsts]] = firsts
    for part in engine.chunks(number.size, 8):
        of_group, position = number[part], xp.arange(part.start, part.stop)
        before = (removed_at[part] == until[of_group]) & (position < until_position[of_group])
        gone[part] &= before | (removed_at[part] < until[of_group])
    return gone, last_of_label


def _removal_order(groups: Any, removed_at: Any, xp: Any) -> Any:
    return lexicographic_order([groups, ordered_codes(removed_at, xp)], xp)


def _last_to_leave(removed_at: Any, keep: int, number: Any, engine: Engine) -> Any:
    """Indices of the `keep` points of each group that leave last or never."""
    xp = engine.xp
    groups = int(number[-1]) + 1
    if number.size < SAMPLED_FROM * groups * keep:
        return _last_in_order(removed_at, keep, number, groups, xp)
    # What leaves before `keep` points of a sample does so before as many of all.
    of_sample, at = number[::STRIDE], removed_at[::STRIDE]
    last = _last_in_order(at, keep, of_sample, groups, xp)
    bound = xp.full(groups, xp.inf)
    xp.minimum.at(bound, of_sample[last], at[last])
    bound[xp.bincount(of_sample[last], minlength=groups) < keep] = 0.0
    near = xp.flatnonzero(removed_at >= bound[number])
    return near[_last_in_order(removed_at[near], keep, number[near], groups, xp)]


def _last_in_order(removed_at: Any, keep: int, number: Any, groups: int, xp: Any) -> Any:
    order = _removal_order(number, removed_at, xp)
    stops = xp.searchsorted(number, xp.arange(groups, dtype=number.dtype), side="right")
    return order[xp.arange(order.size) >= stops[number] - keep]


def _drop_one_at_a_time(
    columns: Sequence[Any], excess: Any, number: Any, labels: Any, protected: Any, engine: Engine
) -> Any:
    """Mask of what goes while some that may go have a finite distance, labels minded throughout."""
    xp = engine.xp
    pairs = _joint(number, labels, engine)
    lists = link_axes(columns, number, engine)
    in_pair, quota = xp.bincount(pairs).tolist(), excess.tolist()
    group_of, pair_of = number.tolist(), pairs.tolist()

    def leave(point: int) -> bool:
        if quota[group_of[point]] == 0 or in_pair[pair_of[point]] == 1:
            return False
        quota[group_of[point]] -= 1
        in_pair[pair_of[point]] -= 1
        return True

    stays = protected | lists.ends
    points, _ = remove_one_at_a_time(lists, xp.flatnonzero(~stays), leave, engine)
    gone = xp.zeros(number.size, dtype=bool)
    gone[xp.asarray(points, dtype=xp.int64)] = True
    return gone


def _first_that_may_go(
    excess: Any, number: Any, labels: Any, protected: Any, engine: Engine
) -> Any:
    """Mask of what goes once all that may go are at ends of axes: the first, in order."""
    xp = engine.xp
    pairs = _joint(number, labels, engine)
    position = xp.arange(number.size, dtype=xp.uint64)
    last = xp.zeros(int(pairs.max()) + 1, dtype=xp.uint64)
    xp.maximum.at(last, pairs, position)
    stand_in = xp.bincount(pairs, weights=protected.astype(xp.float64)) > 0.0
    may_go = ~protected & (stand_in[pairs] | (position != last[pairs]))
    before = xp.cumsum(may_go) - may_go
    before -= before[_group_starts(number, excess.size, xp)[number]]
    return may_go & (before < excess[number])


def _group_starts(number: Any, groups: int, xp: Any) -> Any:
    """Where each group begins among ascending numbers, of which some may be missing."""
    return xp.searchsorted(number, xp.arange(groups, dtype=number.dtype))


def _joint(number: Any, labels: Any, engine: Engine) -> Any:
    """Number the (group, label) pairs from 0."""
    xp = engine.xp
    codes = number.astype(xp.uint64) * xp.uint64(span(labels) + 1) + labels
    return compact_numbers(codes, engine)


def _checked(points: Any, given: dict[str, Any], engine: Engine) -> tuple[list[Any], Any, Any, Any]:
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
    for name, column in given.items():
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
