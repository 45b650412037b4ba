"""The placement DP over arrays: any number of scenarios, wide graphs and long chains.

The results are those of `PlacementDP`, row for row, whatever the order of evaluation: the same
saturating sums, and ties to the lowest slot.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.arrays.engine import Engine, EngineName, choose_engine, is_on_gpu, run
from fuel_gpu.arrays.placement_kernels import MOST_SLOTS, KernelSteps
from fuel_gpu.arrays.placement_steps import (
    ArraySteps,
    PathRows,
    Steps,
    arrivals,
    first_at,
    lowest,
    plus,
)
from fuel_gpu.errors import UsageError
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


def place_batch(
    problem: PlacementProblem,
    *,
    engine: EngineName | Engine | None = None,
    crossover: int | None = None,
) -> Placements:
    """Solve the placement DP in every scenario of a problem.

    Parameters
    ----------
    problem
        The graph's structure and its times.
    engine, crossover
        Where to run, as `fuel_gpu.arrays.engine.choose_engine` takes them; the crossover is in
        rows times scenarios.

    Returns
    -------
    Placements
        Equal to what `PlacementDP` commits in each scenario; on the GPU where `cost_ns` is.

    Raises
    ------
    UsageError
        If `problem` is none.

    Notes
    -----
    Scenarios are taken in pieces. Beside the problem and the result, memory holds about
    ``17 · rows · slots`` bytes for each scenario of a piece, 1 GiB at most if one fits that.

    Examples
    --------
    The chain of `PlacementDP`'s example, with slot 0 for the processor and slot 1 for the GPU, in
    two scenarios: in the second, the GPU takes 60 ns for row 1.

    >>> import numpy as np
    >>> problem = PlacementProblem(
    ...     first_edge=np.array([0, 0, 1]),  # row 0 reads no row, row 1 reads one
    ...     producer=np.array([0]),
    ...     crossing=np.array([0]),
    ...     cost_ns=np.array([[[100, 100], [130, 130]], [[100, 100], [20, 60]]], np.uint64),
    ...     crossing_ns=np.array([[[[0], [110]], [[110], [0]]]], np.uint64),
    ...     exit_ns=np.array([[[0], [20]], [[0], [20]]], np.uint64),
    ... )
    >>> placed = place_batch(problem)
    >>> placed.slot.tolist(), placed.total_ns.tolist()
    ([[1, 0], [1, 0]], [170, 200])
    """
    if not isinstance(problem, PlacementProblem):
        raise UsageError(f"problem: {problem!r:.60} is no PlacementProblem")
    on_gpu = is_on_gpu(problem.cost_ns)
    work = problem.rows * problem.scenarios
    chosen = choose_engine(engine, work=work, crossover=crossover, on_gpu=on_gpu)

    def program(engine: Engine) -> Placements:
        slot, total_ns = _place_batch(problem, engine)
        if on_gpu:
            return Placements(slot, total_ns)
        return Placements(engine.give_out(slot), engine.give_out(total_ns))

    return run(program, chosen)


def _place_batch(problem: PlacementProblem, engine: Engine) -> tuple[Any, Any]:
    xp, (rows, slots, scenarios) = engine.xp, problem.cost_ns.shape
    if rows == 0 or scenarios == 0:
        return xp.zeros((rows, scenarios), xp.uint8), xp.zeros(scenarios, xp.uint64)
    times = _Times.taken_in(problem, engine)
    plan = schedule(problem)
    along = xp.asarray(plan.along)
    fitting = min(engine.chunk_bytes // (8 * slots**2), _STATE_BYTES // (17 * rows * slots))
    slot, total_ns = [], []
    for start in range(0, scenarios, max(fitting, 1)):
        part = slice(start, min(start + max(fitting, 1), scenarios))
        piece = _piece(problem, plan, engine, along, times.of(part))
        total = xp.zeros(part.stop - start, xp.uint64)
        for stage in plan.stages:
            total = plus(xp, total, _place_stage(piece, stage))
        slot.append(piece.slot)
        total_ns.append(total)
    if len(slot) == 1:
        return slot[0], total_ns[0]
    return xp.concatenate(slot, axis=1), xp.concatenate(total_ns)


@dataclass(frozen=True, slots=True)
class _Times:
    """The times of a problem, or of some of its scenarios, in the engine's memory."""

    cost_ns: Any
    crossing_ns: Any
    exit_ns: Any
    available: Any
    closing_ns: Any

    @classmethod
    def taken_in(cls, problem: PlacementProblem, engine: Engine) -> "_Times":
        closing_ns = None if problem.closings is None else problem.closings.crossing_ns
        given = (problem.cost_ns, problem.crossing_ns, problem.exit_ns, problem.available)
        return cls(*(a if a is None else engine.take_in(a) for a in (*given, closing_ns)))

    def of(self, part: slice) -> "_Times":
        """Take some scenarios of what they do not all share."""
        return _Times(*(_scenarios(getattr(self, each.name), part) for each in fields(self)))


def _scenarios(times: Any, part: slice) -> Any:
    if times is None or times.shape[-1] == 1:
        return times
    return times[..., part]


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
    steps: Steps
    rows: PathRows
    exit_ns: Any
    closing_ns: Any
    end_ns: Any
    end_slot: Any
    slot: Any


def _piece(
    problem: PlacementProblem, plan: Schedule, engine: Engine, along: Any, times: _Times
) -> _Piece:
    xp, (rows, slots, scenarios) = engine.xp, times.cost_ns.shape
    paths = len(plan.path_start) - 1
    own_ns, first_available = times.cost_ns, None
    if times.available is not None:
        own_ns = xp.where(times.available, own_ns, xp.uint64(U64_MAX))
        first_available = times.available.argmax(axis=1).astype(xp.uint8)
    elif plan.joins:
        own_ns = own_ns.copy()
    steps: Steps = ArraySteps(xp)
    if engine.kernels is not None and slots <= MOST_SLOTS:
        steps = KernelSteps(xp, engine.kernels.launch)
    return _Piece(
        problem=problem,
        plan=plan,
        engine=engine,
        steps=steps,
        rows=PathRows(
            index_host=plan.along,
            index=along,
            own_ns=xp.ascontiguousarray(own_ns),
            crossing_ns=xp.ascontiguousarray(times.crossing_ns),
            choice=xp.empty((len(problem.producer) + 1, slots, scenarios), xp.uint8),
            first_available=first_available,
        ),
        exit_ns=times.exit_ns,
        closing_ns=times.closing_ns,
        end_ns=xp.empty((paths, slots, scenarios), xp.uint64),
        end_slot=xp.empty((paths, scenarios), xp.uint8),
        slot=xp.empty((rows, scenarios), xp.uint8),
    )


def _place_stage(piece: _Piece, stage: Stage) -> Any:
    """Follow a stage's trees to their ends and back; give the sum of their times by scenario."""
    trails = [_follow_round(piece, turn) for turn in stage.rounds]
    total_ns = _leave(piece, stage.last_paths)
    for turn, parts in zip(reversed(stage.rounds), reversed(trails), strict=True):
        for paths, trail in parts:
            go_back(piece.steps, piece.rows, trail, piece.end_slot[paths], piece.slot)
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
        times, trail = advance(piece.steps, piece.rows, start, starts[paths + 1] - start)
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
    best, choice = lowest(xp, via_ns, first_at(rows, xp.asarray(producer)))
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
    best, choice = lowest(xp, leaving_ns.transpose(1, 0, 2), first_at(piece.rows, xp.asarray(row)))
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
