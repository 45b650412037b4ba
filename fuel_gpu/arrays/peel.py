"""Crowding distances under removal: linked lists along each axis, peeled in parallel rounds.

Removing a point changes only its neighbours' distances, and only upward. So the order in which
one-at-a-time removal takes the points is ascending (distance at removal, position), and every point
that comes before all its neighbours in (distance, position) leaves at the distance it has now: all
such points leave in one round.
"""

import heapq
from collections.abc import Callable
from typing import Any, Final

from fuel_gpu.arrays.axis_lists import AxisLists, crowding_distances
from fuel_gpu.arrays.engine import Engine
from fuel_gpu.arrays.kernel_sources import ACTIVE, GONE
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
    if engine.kernels is not None and lists.axes:
        return _by_raw_rounds(lists, stays, distance, engine)
    rounds = make_rounds(lists, stays, distance, engine)
    if rounds.waiting.any():
        points, distances = remove_one_at_a_time(
            rounds.lists, xp.flatnonzero(rounds.waiting), lambda _: True, engine
        )
        names = points if rounds.names is None else rounds.names[points]
        distance[names] = distances
    return distance


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
) -> tuple[list[int], list[float]]:
    """Remove the most crowded point again and again, by a heap: m log m whatever the distances.

    Parameters
    ----------
    lists
        The linked points; their links are used up.
    candidates
        Points that may leave, none of them an end of an axis.
    leave
        Asked of each point in its turn; one that it refuses stays for good.

    Returns
    -------
    points, distances
        In the order of removal.
    """

    def on_host(array: Any) -> memoryview:
        return memoryview(engine.give_out(array))

    group = on_host(lists.group)
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
