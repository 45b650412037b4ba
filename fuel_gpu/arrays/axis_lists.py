"""Points linked in ascending order along every axis, and their crowding distances.

A point's crowding distance is the sum over the axes, in their order, of (next - previous) / range,
where next and previous are its neighbours along the axis.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fuel_gpu.arrays.engine import Engine
from fuel_gpu.arrays.ordering import lexicographic_order, numbered_runs, ordered_codes


@dataclass(frozen=True, slots=True)
class Axis:
    """Points linked in ascending order along one axis, each group on its own.

    Parameters
    ----------
    values
        (m,) coordinates, float64 or narrow integers.
    ranges
        (groups,) float64: the group's range; 1 where it is degenerate, so that the axis adds
        nothing.
    previous, following
        (m,) neighbours; at an end of the axis the point itself. int64 where raw kernels follow
        them, int32 elsewhere as long as it holds them.
    """

    values: Any
    ranges: Any
    previous: Any
    following: Any


@dataclass(frozen=True, slots=True)
class AxisLists:
    """Points linked along every axis that varies.

    Parameters
    ----------
    axes
        The axes, in the order in which distances are summed.
    group
        (m,) group of each point, from 0.
    ends
        (m,) bool: the point is at an end of an axis, a degenerate one included.
    """

    axes: list[Axis]
    group: Any
    ends: Any


def link_axes(columns: Sequence[Any], groups: Any, engine: Engine) -> AxisLists:
    """Link points along every axis.

    Parameters
    ----------
    columns
        (m,) arrays, one an axis: finite float64, or integers below 2**53.
    groups
        (m,) group numbers, ascending; equal values on an axis keep the points' order.
    """
    xp = engine.xp
    starts, counts, group = numbered_runs(groups, engine)
    stops = starts + counts - 1
    ends = xp.zeros(groups.size, dtype=bool)
    axes = []
    for column in columns:
        order = lexicographic_order([group, ordered_codes(column, xp)], xp)
        low, high = order[starts], order[stops]
        ends[low] = True
        ends[high] = True
        spread = _as_float(column[high], xp) - _as_float(column[low], xp)
        if not bool((spread > 0.0).any()):
            continue
        previous, following = _links(order, engine)
        previous[low] = low
        following[high] = high
        axes.append(Axis(column, xp.where(spread > 0.0, spread, 1.0), previous, following))
    return AxisLists(axes, group, ends)


def _links(order: Any, engine: Engine) -> tuple[Any, Any]:
    """Both neighbours of each point but the last and the first."""
    xp = engine.xp
    narrow = engine.kernels is None and order.size <= 2**31
    previous = xp.empty(order.size, dtype=xp.int32 if narrow else xp.int64)
    following = xp.empty_like(previous)
    for part in engine.chunks(order.size - 1, 8):
        left, right = order[part], order[part.start + 1 : part.stop + 1]
        previous[right] = left
        following[left] = right
    return previous, following


def crowding_distances(lists: AxisLists, points: Any, xp: Any) -> Any:
    """Sum the gaps around each of the points, which are linked on both sides; float64."""
    total = xp.zeros(points.size)
    for axis in lists.axes:
        gap = _as_float(axis.values[axis.following[points]], xp)
        gap -= _as_float(axis.values[axis.previous[points]], xp)
        gap /= axis.ranges if axis.ranges.size == 1 else axis.ranges[lists.group[points]]
        total += gap
    return total


def _as_float(values: Any, xp: Any) -> Any:
    return values if values.dtype == xp.float64 else values.astype(xp.float64)
