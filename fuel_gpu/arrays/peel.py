"""Crowding distances under removal: linked lists along each axis, peeled in parallel rounds.

A point's crowding distance is the sum over the axes, in their order, of (next - previous) / range,
where next and previous are its neighbours along the axis. Removing a point changes only its
neighbours' distances, and only upward. So the order in which one-at-a-time removal takes the points
is ascending (distance at removal, position), and every point that comes before all its neighbours
in (distance, position) leaves at the distance it has now: all such points leave in one round.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fuel_gpu.arrays.engine import Engine
from fuel_gpu.arrays.kernel_sources import ACTIVE, GONE
from fuel_gpu.arrays.ordering import lexicographic_order, ordered_codes

POINT_WORK: Final = 24  # rounds over all points, on average, before the heap takes over
_MOST_RAW_ROUNDS: Final = 1024
ROUND_WORK: Final = 2000  # what a round costs beside its points, in points


@dataclass(frozen=True, slots=True)
class Axis:
    """Points linked in ascending order along one axis, each group on its own.

    Parameters
    ----------
    values
        (m,) float64 coordinates.
    ranges
        (groups,) float64: the group's range; 1 where it is degenerate, so that the axis adds
        nothing.
    previous, following
        (m,) int64 neighbours; at an end of the axis the point itself.
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
        (m,) int64 group of each point, from 0.
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
        (m,) float64 arrays, one an axis, finite.
    groups
        (m,) uint64 group numbers, ascending; equal values on an axis keep the points' order.
    """
    xp = engine.xp
    count = groups.size
    first = xp.ones(count, dtype=bool)
    first[1:] = groups[1:] != groups[:-1]
    last = xp.ones(count, dtype=bool)
    last[:-1] = first[1:]
    ends = xp.zeros(count, dtype=bool)
    axes = []
    for column in columns:
        order = lexicographic_order([groups, ordered_codes(column, xp)], xp)
        low, high = order[first], order[last]
        spread = column[high] - column[low]
        ends[low] = True
        ends[high] = True
        if not bool((spread > 0.0).any()):
            continue
        before, after = xp.empty_like(order), xp.empty_like(order)
        before[order[1:]] = order[:-1]
        after[order[:-1]] = order[1:]
        before[low] = low
        after[high] = high
        axes.append(Axis(column, xp.where(spread > 0.0, spread, 1.0), before, after))
    return AxisLists(axes, xp.cumsum(first) - 1, ends)


def removal_distances(lists: AxisLists, pinned: Any, engine: Engine) -> Any:
    """Give the distance at which each point leaves when the most crowded leaves, one at a time.

    Parameters
    ----------
    lists
        The linked points; their links are used up.
    pinned
        (m,) bool: points that never leave. The ends of axes never do.

    Returns
    -------
    float64 array
        (m,) distances, infinite for points that stay. Ascending (distance, position) is the
        order of removal.
    """
    xp = engine.xp
    stays = pinned | lists.ends
    distance = xp.full(stays.size, xp.inf)
    removed_at = xp.full(stays.size, xp.inf)
    active = xp.flatnonzero(~stays)
    distance[active] = _distances(lists, active)
    if engine.kernels is not None and lists.axes:
        active = _raw_rounds(lists, stays, distance, removed_at, engine)
    else:
        active = _rounds(lists, active, distance, removed_at, xp)
    if active.size:
        points, distances = remove_one_at_a_time(lists, active, lambda _: True)
        removed_at[xp.asarray(points)] = xp.asarray(distances)
    return removed_at


def _rounds(lists: AxisLists, active: Any, distance: Any, removed_at: Any, xp: Any) -> Any:
    """Make rounds while they are worth their while; give the points still linked."""
    work_left = POINT_WORK * active.size + 200 * ROUND_WORK
    while active.size and work_left > 0:
        work_left -= active.size + ROUND_WORK
        leaves = _before_all_neighbours(lists, active, distance, xp)
        leaving = active[leaves]
        removed_at[leaving] = distance[leaving]
        for axis in lists.axes:
            left, right = axis.previous[leaving], axis.following[leaving]
            axis.following[left] = right
            axis.previous[right] = left
        active = active[~leaves]
        distance[active] = _distances(lists, active)
    return active


def _raw_rounds(
    lists: AxisLists, stays: Any, distance: Any, removed_at: Any, engine: Engine
) -> Any:
    """Make rounds by the raw kernels; give the points still linked."""
    xp = engine.xp
    assert engine.kernels is not None
    previous, following, values, ranges = (
        xp.stack(each)
        for each in zip(
            *(
                (axis.previous, axis.following, axis.values, axis.ranges[lists.group])
                for axis in lists.axes
            ),
            strict=True,
        )
    )
    state = stays.astype(xp.uint8) * xp.uint8(GONE)
    marks = (distance, removed_at, state)
    if not engine.kernels.peel((previous, following), values, ranges, marks, _MOST_RAW_ROUNDS):
        return xp.zeros(0, dtype=xp.int64)
    for axis, before, after in zip(lists.axes, previous, following, strict=True):
        axis.previous[:] = before
        axis.following[:] = after
    return xp.flatnonzero(state == ACTIVE)


def _distances(lists: AxisLists, points: Any) -> Any:
    total: Any = 0.0
    group = lists.group[points]
    for axis in lists.axes:
        gap = axis.values[axis.following[points]] - axis.values[axis.previous[points]]
        total = total + gap / axis.ranges[group]
    return total


def _before_all_neighbours(lists: AxisLists, points: Any, distance: Any, xp: Any) -> Any:
    own = distance[points]
    first = xp.ones(points.size, dtype=bool)
    for axis in lists.axes:
        for links in (axis.previous, axis.following):
            neighbour = links[points]
            theirs = distance[neighbour]
            first &= (own < theirs) | ((own == theirs) & (points < neighbour))
    return first


def remove_one_at_a_time(
    lists: AxisLists, candidates: Any, leave: Callable[[int], bool]
) -> tuple[list[int], list[float]]:
    """Remove the most crowded point again and again, by a heap: m log m whatever the distances.

    Parameters
    ----------
    lists
        The linked points; not changed.
    candidates
        Points that may leave, none of them an end of an axis.
    leave
        Asked of each point in its turn; one that it refuses stays for good.

    Returns
    -------
    points, distances
        In the order of removal.
    """
    group = lists.group.tolist()
    axes = [
        (
            axis.values.tolist(),
            axis.ranges.tolist(),
            axis.previous.tolist(),
            axis.following.tolist(),
        )
        for axis in lists.axes
    ]

    def distance(point: int) -> float:
        total = 0.0
        for values, ranges, previous, following in axes:
            gap = values[following[point]] - values[previous[point]]
            total += gap / ranges[group[point]]
        return total

    current = {point: distance(point) for point in candidates.tolist()}
    heap = [(crowding, point) for point, crowding in current.items()]
    heapq.heapify(heap)
    points, distances = [], []
    while heap:
        crowding, point = heapq.heappop(heap)
        if current.get(point) != crowding:
            continue
        del current[point]
        if not leave(point):
            continue
        points.append(point)
        distances.append(crowding)
        touched: set[int] = set()
        for _, _, previous, following in axes:
            before, after = previous[point], following[point]
            following[before] = after
            previous[after] = before
            touched.update((before, after))
        for neighbour in touched & current.keys():
            wider = distance(neighbour)
            if wider != current[neighbour]:
                current[neighbour] = wider
                heapq.heappush(heap, (wider, neighbour))
    return points, distances
