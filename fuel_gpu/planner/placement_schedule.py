"""The order in which the array DP takes the rows: which edges chain, and paths side by side.

A row is chained by its first reader, so the chained edges form trees that grow toward their
terminal rows. Each tree is cut into paths: a path enters a row from the largest subtree behind it,
so no more than log2(rows) paths wait for one another. Paths that do not wait for one another make a
round, and are evaluated side by side. A tree that reads a row committed by a closing waits for that
row's whole tree: it belongs to a later stage.
"""

from dataclasses import dataclass

import numpy as np

from fuel_gpu.planner.placement_problem import Indices, PlacementProblem


@dataclass(frozen=True, slots=True)
class Round:
    """Paths that do not wait for one another.

    Parameters
    ----------
    paths
        The paths, longest first.
    merging
        The chained edges into their rows from the ends of earlier paths, in the order of readers.
    settled
        The edges into their rows from rows committed in earlier stages, in the order of readers.
    """

    paths: Indices
    merging: Indices
    settled: Indices


@dataclass(frozen=True, slots=True)
class Stage:
    """Trees that read nothing of one another's: their rounds, and the path that ends each tree."""

    rounds: tuple[Round, ...]
    last_paths: Indices


@dataclass(frozen=True, slots=True)
class Schedule:
    """What the array DP knows of a graph, whatever its times.

    Parameters
    ----------
    reader
        (edges,): the row that reads by each edge.
    along
        (4, rows): path by path, from each one's first row to its last, the row, the row before it,
        the edge between them and that edge's crossing. At a path's first row the edge is the
        number of edges, and the others stand for nothing.
    path_start
        (paths + 1,): where each path lies in `along`.
    path_of
        (rows,): the path of each row.
    closing_of
        (rows,): the closing that commits the row and all behind it, or -1.
    stages
        In the order of evaluation.
    """

    reader: Indices
    along: Indices
    path_start: Indices
    path_of: Indices
    closing_of: Indices
    stages: tuple[Stage, ...]

    @property
    def joins(self) -> bool:
        """Whether any row is reached from elsewhere than along its path."""
        turns = [turn for stage in self.stages for turn in stage.rounds]
        return any(len(turn.merging) or len(turn.settled) for turn in turns)


def schedule(problem: PlacementProblem) -> Schedule:
    """Find the trees, paths, rounds and stages of a problem's rows."""
    rows, producer = problem.rows, problem.producer
    edges = np.arange(len(producer))
    reader = np.repeat(np.arange(rows), np.diff(problem.first_edge))
    leaving, closing_of = _leaving(problem, reader)
    chained = leaving[producer] == edges
    entering = _entering(producer, reader, leaving)
    path_of, position = _paths(producer, entering)
    length = np.bincount(path_of, minlength=1 if rows else 0)
    path_start = np.concatenate([[0], np.cumsum(length)])
    order = np.empty(rows, np.int64)
    order[path_start[path_of] + position] = np.arange(rows)

    merging = np.flatnonzero(chained & (entering[reader] != edges))
    round_of = _depths(path_of[producer[merging]], path_of[reader[merging]], len(length))
    last_row = order[path_start[1:] - 1]
    onward = leaving[last_row]
    settled, stage_of = np.zeros(0, np.int64), np.zeros_like(round_of)
    if problem.closings is not None:
        tree_of = _trees(
            np.where(onward < 0, np.arange(len(length)), path_of[np.append(reader, -1)[onward]])
        )
        closing = closing_of[last_row[tree_of]]
        closed_after = np.append(problem.closings.after, rows)[closing]
        settled = np.flatnonzero(~chained & (closed_after[path_of[producer]] <= reader))
        before, after = (tree_of[path_of[ends[settled]]] for ends in (producer, reader))
        stage_of = _depths(before, after, len(length))[tree_of]

    rounds = int(round_of.max(initial=0)) + 1
    turn = stage_of * rounds + round_of
    turns = (int(stage_of.max(initial=-1)) + 1) * rounds
    paths_of = _grouped(turn, np.lexsort((-length, turn)), turns)
    merging_of, settled_of = (
        _grouped(
            turn[path_of[reader]], e[np.argsort(turn[path_of[reader[e]]], kind="stable")], turns
        )
        for e in (merging, settled)
    )
    stages = []
    for first in range(0, turns, rounds):
        taken = [k for k in range(first, first + rounds) if len(paths_of[k])]
        paths = np.concatenate([paths_of[k] for k in taken])
        stages.append(
            Stage(
                tuple(Round(paths_of[k], merging_of[k], settled_of[k]) for k in taken),
                paths[onward[paths] < 0],
            )
        )
    return Schedule(
        reader=reader,
        along=_along(problem, order, entering[order]),
        path_start=path_start,
        path_of=path_of,
        closing_of=closing_of,
        stages=tuple(stages),
    )


def _along(problem: PlacementProblem, order: Indices, entering: Indices) -> Indices:
    first = entering < 0
    edge = np.where(first, len(problem.producer), entering)
    crossing = np.append(problem.crossing, 0)[edge]
    return np.stack([order, np.where(first, order, np.roll(order, 1)), edge, crossing])


def _leaving(problem: PlacementProblem, reader: Indices) -> tuple[Indices, Indices]:
    """Give for each row the edge that chains it and the closing that closes it, or -1.

    The first reader in topological order chains a row, unless a closing came before.
    """
    first_edge = np.full(problem.rows, -1)
    first_edge[problem.producer[::-1]] = np.arange(len(reader))[::-1]  # the last one written stays
    closing_of = np.full(problem.rows, -1)
    if problem.closings is not None and len(problem.closings.row):
        row, after = problem.closings.row, problem.closings.after
        chained_at = np.append(reader, problem.rows)[first_edge[row]]  # -1 takes the last
        works = np.flatnonzero((after > row) & (after <= chained_at))
        closing_of[row[works][::-1]] = works[::-1]
    return np.where(closing_of < 0, first_edge, -1), closing_of


def _entering(producer: Indices, reader: Indices, leaving: Indices) -> Indices:
    """Give for each row the chained edge from the largest subtree behind it, or -1."""
    entering = np.full(len(leaving), -1)
    chained = np.sort(leaving[leaving >= 0])
    if np.bincount(reader[chained]).max(initial=0) > 1:
        size = [1] * len(leaving)
        next_row = np.where(leaving < 0, -1, reader[leaving])
        for row, following in enumerate(next_row.tolist()):
            if following >= 0:
                size[following] += size[row]
        chained = chained[np.argsort(np.array(size)[producer[chained]], kind="stable")]
    entering[reader[chained]] = chained  # the last one written stays
    return entering


def _paths(producer: Indices, entering: Indices) -> tuple[Indices, Indices]:
    """Give each row's path and its position there.

    Rows that follow one another along a path usually do so in the topological order too, so runs
    of such rows are placed at once.
    """
    rows = np.arange(len(entering))
    behind = np.where(entering < 0, -1, producer[entering]) if len(producer) else entering
    goes_on = (behind == rows - 1) & (entering >= 0)
    run_of = np.cumsum(~goes_on) - 1
    run_start = np.flatnonzero(~goes_on)
    starts = run_start.tolist()
    path_of_run: list[int] = []
    offset_of_run: list[int] = []
    paths = 0
    behind = behind[run_start]
    for row, run in zip(behind.tolist(), run_of[behind].tolist(), strict=True):
        if row < 0:
            path_of_run.append(paths)
            offset_of_run.append(0)
            paths += 1
        else:
            path_of_run.append(path_of_run[run])
            offset_of_run.append(offset_of_run[run] + row - starts[run] + 1)
    position = np.array(offset_of_run, np.int64)[run_of] + rows - run_start[run_of]
    return np.array(path_of_run, np.int64)[run_of], position


def _trees(onward: Indices) -> Indices:
    """Follow each path's next path to the one that ends its tree."""
    while True:
        further = onward[onward]
        if np.array_equal(further, onward):
            return onward
        onward = further


def _depths(before: Indices, after: Indices, count: int) -> Indices:
    """Give the longest chain of waits behind each of `count` things.

    ``after[k]`` waits for ``before[k]``, whose own waits are all listed earlier.
    """
    depth = [0] * count
    for one, other in zip(before.tolist(), after.tolist(), strict=True):
        depth[other] = max(depth[other], depth[one] + 1)
    return np.array(depth, np.int64)


def _grouped(key: Indices, members: Indices, groups: int) -> list[Indices]:
    """Split `members`, ascending by their key, into one array for each key."""
    return np.split(members, np.searchsorted(key[members], np.arange(1, groups)))
