"""Which points no other point of their group dominates, by the method that fits their axes."""

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from fuel_gpu.arrays import bitset_dominance, merge_dominance, staircase
from fuel_gpu.arrays.engine import Engine
from fuel_gpu.arrays.ordering import dense_ranks, lexicographic_order, ordered_codes, span
from fuel_gpu.arrays.pivot_filter import survivors

PAIRWISE_UP_TO: Final = 256  # measured: below it, comparing all pairs is the fastest


def undominated(columns: Sequence[Any], groups: Any | None, engine: Engine) -> Any:
    """Mark the points that no other point of the same group dominates.

    Parameters
    ----------
    columns
        (n,) real arrays, one an axis, all minimised, without NaN.
    groups
        (n,) group numbers from 0, or None where all points are of one group.
    engine
        Runs the passes.

    Returns
    -------
    bool array
        (n,); equal points do not dominate one another.
    """
    xp = engine.xp
    count = columns[0].size
    left = survivors(columns, groups, engine)
    if left is None:
        return _exact(columns, groups, engine)
    kept = _exact(
        [column[left] for column in columns], None if groups is None else groups[left], engine
    )
    mask = xp.zeros(count, dtype=bool)
    mask[left[kept]] = True
    return mask


def _exact(columns: Sequence[Any], groups: Any | None, engine: Engine) -> Any:
    xp = engine.xp
    if columns[0].size <= PAIRWISE_UP_TO:
        return ~_dominated_pairwise(columns, groups)
    keys = [ordered_codes(column, xp) for column in columns]
    keys = sorted((key for key in keys if span(key)), key=span, reverse=True)
    if not keys:
        return xp.ones(columns[0].size, dtype=bool)
    if groups is not None:
        keys.insert(0, groups)
    order = lexicographic_order(keys, xp)
    for place, key in enumerate(keys):
        keys[place] = key[order]
    del key
    distinct, number = _distinct(keys, xp)
    if distinct is not None:
        keys = [key[distinct] for key in keys]
    dominated = _dominated_sorted(keys, groups is not None, engine)
    if distinct is not None:
        dominated = dominated[number]
    mask = xp.empty(order.size, dtype=bool)
    mask[order] = ~dominated
    return mask


def _dominated_pairwise(columns: Sequence[Any], groups: Any | None) -> Any:
    no_worse = columns[0][:, None] <= columns[0]
    for column in columns[1:]:
        no_worse &= column[:, None] <= column
    if groups is not None:
        no_worse &= groups[:, None] == groups
    return (no_worse & ~no_worse.T).any(axis=0)


def _distinct(keys: Sequence[Any], xp: Any) -> tuple[Any | None, Any | None]:
    """First position of each run of equal rows, and each row's run; None where all differ."""
    same = keys[0][1:] == keys[0][:-1]
    for key in keys[1:]:
        same &= key[1:] == key[:-1]
    if not bool(same.any()):
        return None, None
    fresh = xp.ones(keys[0].size, dtype=bool)
    fresh[1:] = ~same
    return xp.flatnonzero(fresh), xp.cumsum(fresh) - 1


def _dominated_sorted(keys: Sequence[Any], grouped: bool, engine: Engine) -> Any:
    """Whether an earlier row, all rows being distinct and in lexicographic order, dominates."""
    xp = engine.xp
    count = keys[0].size
    group = keys[0] if grouped else None
    _, *rest = keys[1:] if grouped else keys
    values = rest[0].astype(xp.uint64, copy=False) if rest else xp.zeros(count, dtype=xp.uint64)
    if group is not None:
        values = _later_groups_first(group, values, xp)
    others = rest[1:]
    sizes = [span(axis) + 1 for axis in others]
    if prod(sizes) > staircase.LARGEST_LATTICE:
        if len(others) == 1:
            return merge_dominance.dominated_by_earlier(others[0], values, engine)
        return bitset_dominance.dominated_by_earlier([values, *others], engine)
    if not others:
        others, sizes = [xp.zeros(count, dtype=xp.uint8)], [1]
    lattice = [axis.astype(xp.uint8) for axis in others]
    return staircase.dominated_by_earlier(values, lattice, sizes, engine)


def _later_groups_first(group: Any, values: Any, xp: Any) -> Any:
    """Values that keep their order in a group and lie below those of every earlier group.

    So no point of an earlier group passes for one that is no larger.
    """
    bits = span(values).bit_length()
    last = span(group)
    if bits + last.bit_length() > 63:
        values = dense_ranks(values, xp)
        bits = span(values).bit_length()
    return ((xp.uint64(last) - group.astype(xp.uint64)) << xp.uint64(bits)) | values
