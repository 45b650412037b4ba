"""Crowding distances under removal: linked lists along each axis, peeled in parallel rounds.

Removing a point changes only its neighbours' distances, and only upward. So the order in which
one-at-a-time removal takes the points is ascending (distance at removal, position), and every point
that comes before all its neighbours in (distance, position) leaves at the distance it has now: all
such points leave in one round.
"""

import heapq
from array import array
from collections.abc import Callable, Iterator
from typing import Any, Final

from fuel_gpu.arrays.axis_lists import AxisLists, crowding_distances
from fuel_gpu.arrays.engine import Engine
from fuel_gpu.arrays.kernel_sources import ACTIVE, GONE
from fuel_gpu.arrays.ordering import lexicographic_order, ordered_codes
from fuel_gpu.arrays.peel_rounds import make_rounds

_MOST_RAW_ROUNDS: Final = 1024


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
    for part in engine.chunks(stays.size, 8):
        may_go = xp.flatnonzero(~stays[part]) + part.start
        distance[may_go] = crowding_distances(lists, may_go, xp)
    if not lists.axes:
        return distance  # nothing tells the points apart: none of them moves another
    if engine.kernels is not None:
        return _by_raw_rounds(lists, stays, distance, engine)
    rounds = make_rounds(lists, stays, distance, engine)
    if rounds.waiting.any():
        points, distances = remove_one_at_a_time(
            rounds.lists, xp.flatnonzero(rounds.waiting), lambda _: True, engine
        )
        places = xp.asarray(points)
        names = places if rounds.names is None else rounds.names[places]
        rounds.removed_at[names] = xp.asarray(distances)
    return rounds.removed_at


def _by_raw_rounds(lists: AxisLists, stays: Any, distance: Any, engine: Engine) -> Any:
    """Make rounds by the raw kernels, and leave the points that are linked then to the heap."""
    xp = engine.xp
    assert engine.kernels is not None
    previous, following, values, ranges = (
        xp.stack(each)
        for each in zip(
            *(
                (
                    axis.previous,
                    axis.following,
                    axis.values.astype(xp.float64, copy=False),
                    axis.ranges[lists.group],
                )
                for axis in lists.axes
            ),
            strict=True,
        )
    )
    removed_at = xp.full(stays.size, xp.inf)
    state = stays.astype(xp.uint8) * xp.uint8(GONE)
    marks = (distance, removed_at, state)
    if engine.kernels.peel((previous, following), values, ranges, marks, _MOST_RAW_ROUNDS):
        for axis, before, after in zip(lists.axes, previous, following, strict=True):
            axis.previous[:] = before
            axis.following[:] = after
        active = xp.flatnonzero(state == ACTIVE)
        points, distances = remove_one_at_a_time(lists, active, lambda _: True, engine)
        removed_at[xp.asarray(points)] = xp.asarray(distances)
    return removed_at


def remove_one_at_a_time(
    lists: AxisLists, candidates: Any, leave: Callable[[int], bool], engine: Engine
) -> "tuple[array[int], array[float]]":
    """Remove the most crowded point again and again, by a heap: m log m whatever the distances.

    Parameters
    ----------
    lists
        The linked points; their links are used up.
    candidates
        Points that may leave, ascending, none of them an end of an axis.
    leave
        Asked of each point in its turn; one that it refuses stays for good.

    Returns
    -------
    points, distances
        In the order of removal.
    """
    xp = engine.xp
    if not candidates.size:
        return array("q"), array("d")

    def on_host(column: Any) -> Any:
        return memoryview(engine.give_out(column))

    distances_now = xp.full(lists.ends.size, xp.inf)
    distances_now[candidates] = crowding_distances(lists, candidates, xp)
    order = lexicographic_order([ordered_codes(distances_now[candidates], xp)], xp)
    in_order = candidates[order]
    begins = zip(on_host(distances_now[in_order]), on_host(in_order), strict=True)
    waits = xp.zeros(lists.ends.size, dtype=bool)
    waits[candidates] = True
    waiting, current, group = on_host(waits), on_host(distances_now), on_host(lists.group)
    axes = [
        tuple(map(on_host, (axis.values, axis.ranges, axis.previous, axis.following)))
        for axis in lists.axes
    ]

    def distance(point: int) -> float:
        total = 0.0
        for values, ranges, previous, following in axes:
            gap = float(values[following[point]]) - float(values[previous[point]])
            total += gap / ranges[group[point]]
        return total

    wider: list[tuple[float, int]] = []
    points, distances = array("q"), array("d")
    for crowding, point in _merged(begins, wider):
        if not waiting[point]:
            continue
        if crowding != current[point]:  # it has grown since: the point's turn comes later
            heapq.heappush(wider, (current[point], point))
            continue
        waiting[point] = False
        if not leave(point):
            continue
        points.append(point)
        distances.append(crowding)
        touched = set()
        for values, _, previous, following in axes:
            before, after = previous[point], following[point]
            following[before] = after
            previous[after] = before
            if values[after] != values[point]:
                touched.add(before)
            if values[before] != values[point]:
                touched.add(after)
        for neighbour in touched:
            if waiting[neighbour]:
                current[neighbour] = distance(neighbour)
    return points, distances


def _merged(
    ascending: Iterator[tuple[float, int]], heap: list[tuple[float, int]]
) -> Iterator[tuple[float, int]]:
    """Take the least of what is to come and of a heap, to which more is added on the way."""
    for each in ascending:
        while heap and heap[0] < each:
            yield heapq.heappop(heap)
        yield each
    while heap:
        yield heapq.heappop(heap)
