"""Rounds of the crowding peel that look again only at what changed, for want of raw kernels.

A point that does not leave has a neighbour that comes before it: its witness. As distances only
grow, the point stays for as long as the witness is linked and its distance the same, and need not
be looked at. When half of the points are gone, the rest is packed together, which keeps passes
short and neighbours close in memory.
"""

from dataclasses import dataclass
from typing import Any, Final

from fuel_gpu.arrays.axis_lists import Axis, AxisLists, crowding_distances
from fuel_gpu.arrays.engine import Engine

POINT_WORK: Final = 24  # looks at every point, on average, before the rounds end
ROUND_WORK: Final = 2000  # what a round costs beside its looks, in looks
FEW: Final = 200  # points that a heap takes out sooner than rounds
_SCANNED: Final = 16  # points whose witness is checked in the time of a look


@dataclass(frozen=True, slots=True)
class Rounds:
    """Points between two rounds; the next one changes the arrays.

    Parameters
    ----------
    lists
        The points, linked.
    distance
        (m,) float64 crowding distances; infinite for points that never leave. Those that have left
        keep the distance at which they did.
    waiting
        (m,) bool: points that are still to leave.
    witness
        (m,) int32 or int64: a neighbour that comes before the point, or the point itself before its
        first round; once it has left, `resting`.
    changed
        (m,) bool: points that the last round removed, or moved to another distance.
    resting
        A point that never leaves.
    names
        (m,) positions of the points at the beginning; None as long as they are the same.
    removed_at
        `distance` at the beginning, where points are by those positions.
    """

    lists: AxisLists
    distance: Any
    waiting: Any
    witness: Any
    changed: Any
    resting: int
    names: Any | None
    removed_at: Any


def make_rounds(lists: AxisLists, stays: Any, distance: Any, engine: Engine) -> Rounds:
    """Make rounds until few points are left, or the work that is allowed for is done.

    Parameters
    ----------
    lists
        The linked points; they are used up.
    stays
        (m,) bool: points that never leave.
    distance
        (m,) float64: their distances, infinite where they stay; becomes `removed_at`.
    """
    xp = engine.xp
    waiting = ~stays
    places = xp.arange(stays.size, dtype=xp.int32 if stays.size <= 2**31 else xp.int64)
    rounds = Rounds(
        lists, distance, waiting, places, waiting.copy(), int(stays.argmax()), None, distance
    )
    left = int(waiting.sum())
    staying = stays.size - left
    work = POINT_WORK * left + 200 * ROUND_WORK
    while left > FEW and work > 0:
        leaving, looks = _leaving(rounds, engine)
        _unlink(rounds, leaving, engine)
        _measure_again(rounds, engine)
        rounds.changed[leaving] = True
        left -= leaving.size
        work -= looks + rounds.waiting.size // _SCANNED + ROUND_WORK
        if 2 * (left + staying) < rounds.waiting.size:
            rounds = _packed(rounds, engine)
    return rounds


def _leaving(rounds: Rounds, engine: Engine) -> tuple[Any, int]:
    """Points that come before all their neighbours; and how many were looked at."""
    xp, distance = engine.xp, rounds.distance
    found, looks = [], 0
    for part in engine.chunks(distance.size, 8):
        points = xp.flatnonzero(rounds.changed[rounds.witness[part]]) + part.start
        looks += points.size
        own = distance[points]
        for axis in rounds.lists.axes:
            for links in (axis.previous, axis.following):
                neighbour = links[points]
                rounds.witness[points] = neighbour
                theirs = distance[neighbour]
                first = own < theirs
                tie = own == theirs
                if tie.any():
                    first |= tie & (points < neighbour)
                first = xp.flatnonzero(first)
                points, own = points[first], own[first]
        rounds.witness[points] = rounds.resting
        found.append(points)
    return xp.concatenate(found), looks


def _unlink(rounds: Rounds, leaving: Any, engine: Engine) -> None:
    """Take points out, no two of them neighbours; `changed` gets those whose gaps widen."""
    rounds.waiting[leaving] = False
    rounds.changed[:] = False
    if rounds.names is not None:
        rounds.removed_at[rounds.names[leaving]] = rounds.distance[leaving]
    for part in engine.chunks(leaving.size, 8):
        points = leaving[part]
        for axis in rounds.lists.axes:
            before, after = axis.previous[points], axis.following[points]
            axis.following[before] = after
            axis.previous[after] = before
            own = axis.values[points]
            rounds.changed[before.compress(own != axis.values[after])] = True
            rounds.changed[after.compress(own != axis.values[before])] = True


def _measure_again(rounds: Rounds, engine: Engine) -> None:
    rounds.changed[:] &= rounds.waiting
    for part in engine.chunks(rounds.changed.size, 8):
        points = engine.xp.flatnonzero(rounds.changed[part]) + part.start
        rounds.distance[points] = crowding_distances(rounds.lists, points, engine.xp)


def _packed(rounds: Rounds, engine: Engine) -> Rounds:
    """Leave out the points that are gone."""
    xp = engine.xp
    linked = rounds.waiting | xp.isinf(rounds.distance)
    place = xp.cumsum(linked, dtype=rounds.witness.dtype)
    place -= 1
    rows = xp.flatnonzero(linked)

    def taken(column: Any) -> Any:
        return _gathered(column, rows, engine)

    def renumbered(links: Any) -> Any:
        return _gathered(place, taken(links), engine)

    axes, old = [], rounds.lists
    while old.axes:
        axis = old.axes.pop(0)
        links = renumbered(axis.previous), renumbered(axis.following)
        axes.append(Axis(taken(axis.values), axis.ranges, *links))
    # A point whose witness is gone is looked at next: it becomes its own witness.
    lost = ~_gathered(linked, taken(rounds.witness), engine)
    witness = renumbered(rounds.witness)
    witness[lost] = xp.flatnonzero(lost)
    return Rounds(
        AxisLists(axes, taken(old.group), taken(old.ends)),
        taken(rounds.distance),
        taken(rounds.waiting),
        witness,
        taken(rounds.changed) | lost,
        int(place[rounds.resting]),
        rows if rounds.names is None else taken(rounds.names),
        rounds.removed_at,
    )


def _gathered(column: Any, places: Any, engine: Engine) -> Any:
    """Take values in parts, so that the index is widened to int64 only in parts."""
    out = engine.xp.empty(places.size, dtype=column.dtype)
    for part in engine.chunks(places.size, 8):
        out[part] = column[places[part]]
    return out
