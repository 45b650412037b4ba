"""The placement DP's arithmetic over arrays, on figures worked by hand."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu.arrays.placement_steps import (
    ArraySteps,
    Entry,
    PathRows,
    Stretches,
    arrivals,
    lowest,
    pick,
    plus,
)

MAX = 2**64 - 1
U64 = st.one_of(st.integers(0, MAX), st.sampled_from([0, 1, MAX - 1, MAX]))


@given(U64, U64)
def test_sums_saturate_and_never_wrap(a: int, b: int) -> None:
    (total,) = plus(np, np.array([a], np.uint64), np.array([b], np.uint64)).tolist()
    assert total == min(a + b, MAX)


def test_the_first_of_equal_minima_is_chosen() -> None:
    via = np.array([[5, 4, 2], [5, 3, 9], [4, 3, 2], [4, 8, 2]], np.uint64)
    best, choice = lowest(np, via)
    assert best.tolist() == [4, 3, 2]
    assert choice.tolist() == [2, 1, 0]
    assert choice.dtype == np.uint8


def test_where_even_the_minimum_is_saturated_the_first_available_slot_is_chosen() -> None:
    via = np.array([[MAX, MAX, 7], [MAX, MAX, 7]], np.uint64)
    assert lowest(np, via)[1].tolist() == [0, 0, 0]
    assert lowest(np, via, np.array([1, 0, 1], np.uint8))[1].tolist() == [1, 0, 0]


def test_arrivals_are_priced_from_every_slot_to_every_slot() -> None:
    reached = np.array([10, 200], np.uint64).reshape(2, 1, 1, 1)
    crossing = np.array([[0, 5], [MAX, 1]], np.uint64).reshape(1, 2, 2, 1)
    via = arrivals(np, reached, crossing)
    assert via.reshape(2, 2).tolist() == [[10, 15], [MAX, 201]]


def test_picking_looks_the_first_axis_up() -> None:
    table = np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], np.uint8)
    assert pick(np, table, np.array([[0, 1], [1, 0]], np.uint8)).tolist() == [[1, 6], [7, 4]]


def path_rows(own_ns: list[list[int]], crossing_ns: list[list[int]]) -> PathRows:
    """Give one path through the rows in their order, all edges priced alike, in one scenario."""
    rows, slots = len(own_ns), len(own_ns[0])
    row = np.arange(rows)
    index = np.stack([row, np.maximum(row - 1, 0), (row - 1) % rows, np.zeros_like(row)])
    return PathRows(
        index_host=index,
        index=index,
        own_ns=np.array(own_ns, np.uint64)[..., None],
        crossing_ns=np.array(crossing_ns, np.uint64)[None, ..., None],
        choice=np.zeros((rows, slots, 1), np.uint8),
        first_available=None,
    )


def stretches(start: list[int], length: list[int]) -> Stretches:
    return Stretches(np.array(start), np.array(length), np.array(start))


STEPS = ArraySteps(np)


def flat(array: Any) -> Any:
    return array.reshape(array.shape[0], -1).tolist()


def test_a_path_is_followed_and_retraced() -> None:
    rows = path_rows([[800, 100], [800, 100], [0, 900]], [[0, 1000], [1000, 0]])
    # row 0 [800, 100]; row 1 [800 + min(800, 1100), 100 + min(1800, 100)] = [1600, 200];
    # row 2 [0 + min(1600, 1200), 900 + min(2600, 200)] = [1200, 1100].
    whole = stretches([0], [3])
    times, origin = STEPS.follow(rows, whole)
    assert flat(times) == [[1200], [1100]]
    assert origin is None
    assert flat(rows.choice)[:2] == [[0, 1], [1, 1]]
    slot = np.zeros((3, 1), np.uint8)
    STEPS.retrace(rows, whole, np.array([[0]], np.uint8), slot)
    assert slot.ravel().tolist() == [1, 1, 0]


def test_stretches_of_several_lengths_end_where_they_end() -> None:
    rows = path_rows([[1], [2], [4], [8], [16], [32]], [[100]])
    times, _ = STEPS.follow(rows, stretches([3, 0, 2], [3, 2, 1]))
    assert flat(times) == [[8 + 16 + 32 + 200, 1 + 2 + 100, 4]]


def test_a_block_knows_the_slot_before_it_from_which_its_end_is_reached() -> None:
    rows = path_rows([[0, 0], [5, 1], [1, 5]], [[0, 3], [3, 0]])
    # Entered with [10, 6]: row 1 [5 + min(10, 9), 1 + min(13, 6)] = [14, 7], both from slot 1;
    # row 2 [1 + min(14, 10), 5 + min(17, 7)] = [11, 12].
    reached = np.array([10, 6], np.uint64).reshape(2, 1, 1)
    times, origin = STEPS.follow(rows, stretches([1], [2]), Entry(reached, np.array([False])))
    assert flat(times) == [[11], [12]]
    assert flat(origin) == [[1], [1]]


def test_nothing_comes_before_the_first_block() -> None:
    rows = path_rows([[4, 7], [0, 0]], [[0, 3], [3, 0]])
    reached = np.array([10, 6], np.uint64).reshape(2, 1, 1)
    times, _ = STEPS.follow(rows, stretches([0], [1]), Entry(reached, np.array([True])))
    assert flat(times) == [[4], [7]]


def test_times_through_a_block_from_each_slot_before_it() -> None:
    rows = path_rows([[0, 0], [5, 1], [1, 5]], [[0, 3], [3, 0]])
    ways = STEPS.through(rows, stretches([1], [2]), np.array([False]))
    # From slot 0: row 1 [5, 4], row 2 [1 + min(5, 7), 5 + min(8, 4)] = [6, 9].
    # From slot 1: row 1 [8, 1], row 2 [1 + min(8, 4), 5 + min(11, 1)] = [5, 6].
    assert flat(ways) == [[6, 5], [9, 6]]
