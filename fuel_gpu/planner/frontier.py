"""Pareto frontiers of plain arrays: who is dominated by nobody, and which of them to keep."""

from typing import Any

from fuel_gpu.arrays.dominance import undominated
from fuel_gpu.arrays.engine import Engine, EngineName, choose_engine, given_array, is_on_gpu, run
from fuel_gpu.arrays.ordering import compact_numbers, ordered_codes, span
from fuel_gpu.errors import UsageError
from fuel_gpu.planner.crowding import crowding_cap

__all__ = ["crowding_cap", "pareto_mask"]


def pareto_mask(
    points: Any,
    groups: Any | None = None,
    *,
    engine: EngineName | Engine | None = None,
    crossover: int | None = None,
) -> Any:
    """Mark the points that no other point of the same group dominates.

    A point dominates another where it is no larger on any axis and smaller on one; equal points
    do not dominate one another. Values are compared exactly, whatever their dtype.

    Parameters
    ----------
    points
        (n, d) booleans, integers or floats, every axis minimised. Negate or subtract what is
        to be maximised. Infinities are ordered; NaN is refused.
    groups
        (n,) integers, or None where all points are of one group. Any numbers, in any order.
    engine, crossover
        Where to run, as `fuel_gpu.arrays.engine.choose_engine` takes them; the crossover is in
        points.

    Returns
    -------
    bool array
        (n,), where `points` lies.

    Raises
    ------
    UsageError
        If the shapes do not agree, the values are not real numbers, or one is NaN.

    Notes
    -----
    With up to two axes that take many values and others that take few (a product of 256 at
    most), the work is n log n and the memory up to 130 bytes a point, whatever the groups; three
    wide axes take log n times that work. With more it is n**2 / 128 word operations an axis and
    32 bytes a point and axis more. A filter goes before, which leaves few of points at random
    and takes 10 bytes a point.
    """
    points = given_array(points, "points")
    groups = None if groups is None else given_array(groups, "groups")
    on_gpu = is_on_gpu(points)
    chosen = choose_engine(engine, work=len(points), crossover=crossover, on_gpu=on_gpu)

    def program(engine: Engine) -> Any:
        mask = _pareto_mask(points, groups, engine)
        return mask if on_gpu else engine.give_out(mask)

    return run(program, chosen)


def _pareto_mask(points: Any, groups: Any | None, engine: Engine) -> Any:
    xp = engine.xp
    points = engine.take_in(points)
    if points.ndim != 2 or points.dtype.kind not in "buif":
        raise UsageError(
            f"points must be a (n, d) array of numbers, not {points.ndim}-D of {points.dtype}"
        )
    count, axes = points.shape
    if points.dtype.kind == "f" and count and axes and bool(xp.isnan(points.min())):
        row = int(xp.flatnonzero(xp.isnan(points).any(axis=1))[0])
        raise UsageError(f"points has NaN in row {row}: it has no place in an order")
    numbers = None if groups is None else _group_numbers(engine.take_in(groups), count, engine)
    if count == 0 or axes == 0:
        return xp.ones(count, dtype=bool)
    return undominated([points[:, axis] for axis in range(axes)], numbers, engine)


def _group_numbers(groups: Any, count: int, engine: Engine) -> Any | None:
    """Number the groups from 0, with few numbers unused; None where there is one."""
    if groups.shape != (count,) or groups.dtype.kind not in "bui":
        raise UsageError(
            f"groups must be {count} integers, one a point, "
            f"not shape {groups.shape} of {groups.dtype}"
        )
    if count == 0:
        return None
    numbers = compact_numbers(ordered_codes(groups, engine.xp), engine)
    return numbers if span(numbers) else None
