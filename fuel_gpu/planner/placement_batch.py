"""The placement DP over arrays: any number of scenarios, wide graphs and long chains.

The results are those of `PlacementDP`, row for row, whatever the order of evaluation: the same
saturating sums, and ties to the lowest slot.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.arrays.engine import NUMPY, Engine
from fuel_gpu.arrays.placement_steps import PathRows, arrivals, lowest, plus
from fuel_gpu.numbers import U64_MAX
from fuel_gpu.planner.placement_problem import Indices, PlacementProblem, Times
from fuel_gpu.planner.placement_schedule import Round, Schedule, Stage, schedule
from fuel_gpu.planner.placement_walk import Trail, advance, go_back

_STATE_BYTES = 2**30


@dataclass(frozen=True, slots=True, eq=False)
class Placements:
    """Where each row runs in each scenario, and what that takes.

    Parameters
    ----------
    slot
        uint8 (rows, scenarios): the position in the row's own list of devices.
    total_ns
        uint64 (scenarios,): the accumulated times of all rows that no row chains, with their way
        out or to the reader that closed them; saturating.
    """

    slot: NDArray[np.uint8]
    total_ns: Times


def place_batch(problem: PlacementProblem, engine: Engine = NUMPY) -> Placements:
    """Solve the placement DP in every scenario of a problem.

    Parameters
    ----------
    problem
        The graph's structure and its times.
    engine
        Where the work is done and the problem's times lie.

    Returns
    -------
    Placements
        Equal to what `PlacementDP` commits in each scenario; in the engine's arrays.

    Notes
    -----
    Scenarios are taken in pieces. Beside the problem and the result, memory holds about
    ``17 · rows · slots`` bytes for each scenario of a piece, 1 GiB at most if one fits that.
    """
    xp, rows, slots = engine.xp, problem.rows, problem.slots
    slot = xp.zeros((rows, problem.scenarios), xp.uint8)
    total_ns = xp.zeros(problem.scenarios, xp.uint64)
    if rows == 0:
        return Placements(slot, total_ns)
    plan = schedule(problem)
    along = xp.asarray(plan.along)
    fitting = min(engine.chunk_bytes // (8 * slots**2), _STATE_BYTES // (17 * rows * slots))
    for start in range(0, problem.scenarios, max(fitting, 1)):
        part = slice(start, min(start + max(fitting, 1), problem.scenarios))
        piece = _piece(problem, plan, engine, along, part, slot[:, part])
        for stage in plan.stages:
            total_ns[part] = plus(xp, total_ns[part], _place_stage(piece, stage))
    return Placements(slot, total_ns)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some scenarios of a problem, and what is known of them so far.

    Parameters
    ----------
    end_ns
        uint64 (paths, slots, scenarios): the times at the last row of each path followed.
    end_slot
        uint8 (paths, scenarios): the slot of the last row of each path that is decided.
    slot
        uint8 (rows, scenarios): the slot of each row that is decided.
    """

    problem: PlacementProblem
    plan: Schedule
    engine: Engine
    rows: PathRows
    exit_ns: Any
    closing_ns: Any
    end_ns: Any
    end_slot: Any
    slot: Any


def _piece(
    problem: PlacementProblem, plan: Schedule, engine: Engine, along: Any, part: slice, slot: Any
) -> _Piece:
    xp, shape = engine.xp, (problem.slots, part.stop - part.start)
    paths = len(plan.path_start) - 1
    own_ns, available, first_available = problem.cost_ns[..., part], None, None
    if problem.available is not None:
        available = _of(problem.available, part)
        own_ns = xp.where(available, own_ns, xp.uint64(U64_MAX))
        first_available = available.argmax(axis=1).astype(xp.uint8)
    elif plan.joins:
        own_ns = own_ns.copy()
    rows = PathRows(
        xp=xp,
        index_host=plan.along,
        index=along,
        own_ns=own_ns,
        crossing_ns=_of(problem.crossing_ns, part),
        choice=xp.empty((len(problem.producer) + 1, *shape), xp.uint8),
        first_available=first_available,
    )
    return _Piece(
        problem=problem,
        plan=plan,
        engine=engine,
        rows=rows,
        exit_ns=None if problem.exit_ns is None else _of(problem.exit_ns, part),
        closing_ns=None if problem.closings is None else _of(problem.closings.crossing_ns, part),
        end_ns=xp.empty((paths, *shape), xp.uint64),
        end_slot=xp.empty((paths, shape[1]), xp.uint8),
        slot=slot,
    )


def _of(times: Any, part: slice) -> Any:
    """Take some scenarios of an array, which all may share."""
    return times if times.shape[-1] == 1 else times[..., part]


def _place_stage(piece: _Piece, stage: Stage) -> Any:
    """Follow a stage's trees to their ends and back; give the sum of their times by scenario."""
    trails = [_follow_round(piece, turn) for turn in stage.rounds]
    total_ns = _leave(piece, stage.last_paths)
    for turn, parts in zip(reversed(stage.rounds), reversed(trails), strict=True):
        for paths, trail in parts:
            go_back(piece.rows, trail, piece.end_slot[paths], piece.slot)
        _hand_down(piece, turn.merging)
    return total_ns


def _follow_round(piece: _Piece, turn: Round) -> list[tuple[Any, Trail]]:
    engine, starts = piece.engine, piece.plan.path_start
    for edges in _parts(piece, turn.settled):
        _settle(piece, edges)
    for edges in _parts(piece, turn.merging):
        _merge(piece, edges)
    trails = []
    for paths in _parts(piece, turn.paths):
        start = starts[paths]
        times, trail = advance(piece.rows, start, starts[paths + 1] - start)
        on_engine = engine.xp.asarray(paths)
        piece.end_ns[on_engine] = times.transpose(1, 0, 2)
        trails.append((on_engine, trail))
    return trails


def _parts(piece: _Piece, members: Indices) -> Iterator[Indices]:
    """Take as many paths or edges at a time as have their crossings in the engine's cache."""
    item_bytes = 8 * piece.problem.slots**2 * int(piece.slot.shape[1])
    for part in piece.engine.chunks(len(members), item_bytes):
        if len(members):
            yield members[part]


def _settle(piece: _Piece, edges: Indices) -> None:
    """Add to rows what arrives from rows that are decided already."""
    xp, rows, problem = piece.engine.xp, piece.rows, piece.problem
    slot = piece.slot[xp.asarray(problem.producer[edges])][:, None]
    crossing_ns = rows.crossing_ns[xp.asarray(problem.crossing[edges])]
    arriving = crossing_ns[:, 0]
    for source in range(1, problem.slots):
        arriving = xp.where(slot == xp.uint8(source), crossing_ns[:, source], arriving)
    arriving = xp.broadcast_to(arriving, (*arriving.shape[:2], slot.shape[2]))
    _add_to_readers(piece, edges, arriving)


def _merge(piece: _Piece, edges: Indices) -> None:
    """Add to rows the cheapest arrivals from the ends of other paths, and keep the choices."""
    xp, rows, problem = piece.engine.xp, piece.rows, piece.problem
    producer = problem.producer[edges]
    reached = piece.end_ns[xp.asarray(piece.plan.path_of[producer])].transpose(1, 0, 2)[:, None]
    via_ns = arrivals(xp, reached, rows.crossing_ns[xp.asarray(problem.crossing[edges])])
    best, choice = lowest(xp, via_ns, rows.first_at(xp.asarray(producer)))
    rows.choice[xp.asarray(edges)] = choice[:, 0].transpose(1, 0, 2)
    _add_to_readers(piece, edges, best[:, 0].transpose(1, 0, 2))


def _add_to_readers(piece: _Piece, edges: Indices, arriving: Any) -> None:
    """Add times (edges, slots, scenarios) to the rows that read by the edges, several to a row."""
    xp, own_ns, reader = piece.engine.xp, piece.rows.own_ns, piece.plan.reader[edges]
    nth = np.arange(len(reader)) - np.searchsorted(reader, reader)
    while nth.max(initial=0) > 0:  # in pairs, so that a row with many producers takes few passes
        second, stays = np.flatnonzero(nth % 2 == 1), np.flatnonzero(nth % 2 == 0)
        sums = plus(xp, arriving[xp.asarray(second - 1)], arriving[xp.asarray(second)])
        arriving = arriving.copy()
        arriving[xp.asarray(second - 1)] = sums
        arriving, reader, nth = arriving[xp.asarray(stays)], reader[stays], nth[stays] // 2
    row = xp.asarray(reader)
    own_ns[row] = plus(xp, own_ns[row], arriving)


def _leave(piece: _Piece, paths: Indices) -> Any:
    """Decide the rows that no row chains; give the sum of their times by scenario."""
    xp, plan = piece.engine.xp, piece.plan
    row = plan.along[0, plan.path_start[paths + 1] - 1]
    leaving_ns = piece.end_ns[xp.asarray(paths)]
    closing = plan.closing_of[row]
    if piece.exit_ns is not None:
        opened = np.flatnonzero(closing < 0)
        at, exits = xp.asarray(opened), piece.exit_ns[xp.asarray(row[opened])]
        leaving_ns[at] = plus(xp, leaving_ns[at], exits)
    if piece.closing_ns is not None:
        closed = np.flatnonzero(closing >= 0)
        at, closings = xp.asarray(closed), piece.closing_ns[xp.asarray(closing[closed])]
        leaving_ns[at] = plus(xp, leaving_ns[at], closings)
    best, choice = lowest(xp, leaving_ns.transpose(1, 0, 2), piece.rows.first_at(xp.asarray(row)))
    piece.end_slot[xp.asarray(paths)] = choice
    while len(best) > 1:
        half = len(best) // 2
        best = xp.concatenate([plus(xp, best[:half], best[half : 2 * half]), best[2 * half :]])
    return best[0]


def _hand_down(piece: _Piece, edges: Indices) -> None:
    """Decide the ends of the paths that merge, from the rows in which they do."""
    xp, plan, (_, slots, scenarios) = piece.engine.xp, piece.plan, piece.rows.choice.shape
    edge, columns = xp.asarray(edges)[:, None], xp.arange(scenarios)
    slot = piece.slot[xp.asarray(plan.reader[edges])].astype(xp.int64)
    choice = piece.rows.choice.reshape(-1).take((edge * slots + slot) * scenarios + columns)
    piece.end_slot[xp.asarray(plan.path_of[piece.problem.producer[edges]])] = choice
