"""The order of the array DP: trees, paths, rounds and stages, on graphs drawn by hand."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu.planner.placement_problem import Closings, PlacementProblem
from fuel_gpu.planner.placement_schedule import Schedule, schedule


def scheduled(reads: Sequence[Sequence[int]], closings: Sequence[tuple[int, int]] = ()) -> Schedule:
    """Schedule rows that read rows; a closing is a row and how many rows were pushed before."""
    producer = np.array([row for row_reads in reads for row in row_reads], np.int64)
    closed = None
    if closings:
        row, after = np.array(closings).T
        closed = Closings(row=row, after=after, crossing_ns=np.zeros((len(row), 1, 1), np.uint64))
    return schedule(
        PlacementProblem(
            first_edge=np.cumsum([0, *map(len, reads)]),
            producer=producer,
            crossing=np.zeros(len(producer), np.int64),
            cost_ns=np.zeros((len(reads), 1, 1), np.uint64),
            crossing_ns=np.zeros((1, 1, 1, 1), np.uint64),
            closings=closed,
        )
    )


def paths(plan: Schedule) -> list[list[int]]:
    return [plan.along[0, a:b].tolist() for a, b in pairwise(plan.path_start.tolist())]


def test_a_chain_is_one_path() -> None:
    plan = scheduled([[], [0], [1], [2]])
    assert paths(plan) == [[0, 1, 2, 3]]
    assert plan.along[2].tolist() == [3, 0, 1, 2], "edge 3 is none: nothing enters the first row"
    (stage,) = plan.stages
    (turn,) = stage.rounds
    assert turn.paths.tolist() == stage.last_paths.tolist() == [0]
    assert not plan.joins


def test_two_chains_that_alternate_are_two_paths_of_one_round() -> None:
    plan = scheduled([[], [], [0], [1], [2]])
    assert paths(plan) == [[0, 2, 4], [1, 3]]
    assert [turn.paths.tolist() for turn in plan.stages[0].rounds] == [[0, 1]]


def test_only_the_first_reader_chains_a_row() -> None:
    plan = scheduled([[], [0], [0], [0]])
    assert paths(plan) == [[0, 1], [2], [3]]
    assert plan.stages[0].last_paths.tolist() == [0, 1, 2]


def test_a_join_is_entered_from_its_largest_subtree_and_waits_for_the_others() -> None:
    #  0 → 1 → 4 → 5,  2 → 3 ↗ is as large as 0 → 1; row 4 is entered by its last edge among equals
    plan = scheduled([[], [0], [], [2], [1, 3], [4]])
    assert paths(plan) == [[0, 1], [2, 3, 4, 5]]
    first, second = plan.stages[0].rounds
    assert first.paths.tolist() == [0]
    assert second.paths.tolist() == [1]
    assert second.merging.tolist() == [2], "the edge from row 1 into row 4"
    assert plan.joins


def test_a_diamond_chains_its_first_branch_only() -> None:
    plan = scheduled([[], [0], [0], [1, 2]])
    assert paths(plan) == [[0, 1, 3], [2]]
    assert [turn.paths.tolist() for turn in plan.stages[0].rounds] == [[1], [0]]


def test_a_closing_before_the_first_reader_ends_the_tree_there() -> None:
    # Row 1 is closed after two rows: row 2 reads it from where it was committed, a stage later.
    plan = scheduled([[], [0], [1]], closings=[(1, 2)])
    assert paths(plan) == [[0, 1], [2]]
    assert plan.closing_of.tolist() == [-1, 0, -1]
    first, second = plan.stages
    assert first.last_paths.tolist() == [0]
    assert second.last_paths.tolist() == [1]
    assert second.rounds[0].settled.tolist() == [1]


def test_a_row_behind_a_closed_one_is_settled_with_it() -> None:
    # Row 0 is chained by row 1, row 1 closed after two rows, so row 2 finds row 0 committed.
    plan = scheduled([[], [0], [0]], closings=[(1, 2)])
    assert plan.stages[1].rounds[0].settled.tolist() == [1]


@pytest.mark.parametrize(
    "closing", [(0, 2), (1, 1), (0, 0)], ids=["chained", "not pushed yet", "nothing pushed"]
)
def test_closing_a_row_that_is_not_open_does_nothing(closing: tuple[int, int]) -> None:
    plan = scheduled([[], [0]], closings=[closing])
    assert paths(plan) == [[0, 1]]
    assert plan.closing_of.tolist() == [-1, -1]


def test_only_the_first_closing_of_a_row_counts() -> None:
    plan = scheduled([[], []], closings=[(0, 1), (0, 2)])
    assert plan.closing_of.tolist() == [0, -1]


def test_only_trees_that_read_what_was_committed_wait_for_it() -> None:
    plan = scheduled([[], [], [0], [1]], closings=[(0, 1)])
    assert paths(plan) == [[0], [1, 3], [2]]
    assert [sorted(stage.last_paths.tolist()) for stage in plan.stages] == [[0, 1], [2]]


@given(
    st.lists(st.lists(st.integers(0, 10**6), max_size=3), min_size=1, max_size=60),
)
def test_every_row_is_on_one_path_and_few_paths_wait_for_one_another(
    draws: list[list[int]],
) -> None:
    reads = [
        sorted({draw % row for draw in drawn}) if row else [] for row, drawn in enumerate(draws)
    ]
    plan = scheduled(reads)
    assert sorted(plan.along[0].tolist()) == list(range(len(reads)))
    (stage,) = plan.stages
    assert 2 ** (len(stage.rounds) - 1) <= len(reads)
    producer = [before for row_reads in reads for before in row_reads]
    done: set[int] = set()
    for turn in stage.rounds:
        here = set(turn.paths.tolist())
        for path in here:
            assert all(before in reads[row] for before, row in pairwise(paths(plan)[path]))
        assert {int(plan.path_of[plan.reader[edge]]) for edge in turn.merging} <= here
        assert {int(plan.path_of[producer[edge]]) for edge in turn.merging} <= done
        done |= here
