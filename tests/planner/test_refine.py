"""Refinement moves single steps while the exact price falls, and never makes a plan slower."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from small_graphs import TIMES, diamond_problem, line_transfer

from fuel_gpu.planner.pricing import total_ns
from fuel_gpu.planner.refine import refine

times = st.tuples(st.integers(0, 2_000), st.one_of(st.none(), st.integers(0, 2_000)))


def test_a_later_reader_joins_the_first_where_the_value_already_is() -> None:
    # b takes a to the GPU; c would find it there, and only its own result would cross
    problem = diamond_problem(TIMES | {"c": (700, 350), "d": (300, 299)})
    start = [0, 1, 0, 1]
    refined = refine(problem, start, line_transfer, {0: 0, 1: 1, 3: 1})
    assert refined == [0, 1, 1, 1]
    before, after = (total_ns(problem, p, line_transfer) for p in (start, refined))
    assert before is not None
    assert after == before - 700 + 350 - (100 + 200)
    assert start == [0, 1, 0, 1]


def test_pins_stay() -> None:
    assert refine(diamond_problem(TIMES), [0, 0, 0, 0], line_transfer, {1: 0})[1] == 0


def test_what_is_not_admitted_is_not_taken() -> None:
    problem = diamond_problem(TIMES)
    stuck = refine(problem, [0, 0, 0, 0], line_transfer, {}, admits=lambda _: False)
    assert stuck == [0, 0, 0, 0]


@given(
    st.fixed_dictionaries(dict.fromkeys("abcd", times)),
    st.lists(st.integers(0, 1), min_size=4, max_size=4),
    st.booleans(),
)
def test_no_single_move_is_left_that_helps(
    by_name: dict[str, tuple[int | None, int | None]], start: list[int], cold: bool
) -> None:
    problem = diamond_problem(by_name)
    start = [d if problem.time_ns[s][d] is not None else 0 for s, d in enumerate(start)]
    refined = refine(problem, start, line_transfer, {}, cold=cold)

    def price(placement: list[int]) -> int:
        ns = total_ns(problem, placement, line_transfer, cold=cold)
        return 1 << 70 if ns is None else ns

    assert price(refined) <= price(start)
    for step, device in product(range(4), range(2)):
        moved = [*refined[:step], device, *refined[step + 1 :]]
        assert price(moved) >= price(refined)
