"""A placement's price: every step's time, every copy once per destination, outputs brought back."""

import pytest
from small_graphs import CPU, GPU, TIMES, diamond_problem, line_transfer

from fuel_gpu.numbers import U64_MAX
from fuel_gpu.planner.pricing import copies, total_ns


@pytest.mark.parametrize(
    ("placement", "expected_ns"),
    [
        # a, b, c, d all on the CPU: 1000 + 9000 + 700 + 300, nothing crosses
        ([0, 0, 0, 0], 11_000),
        # all on the GPU: 10 + 90 + 7 + 3, x in (100 + 1000), d out (100 + 50)
        ([1, 1, 1, 1], 110 + 1_100 + 150),
        # a on the CPU: its value crosses once (100 + 400) though b and c both read it there
        ([0, 1, 1, 1], 1_000 + 100 + 500 + 150),
        # b alone on the GPU: a over (500), b's value back (100 + 300)
        ([0, 1, 0, 0], 1_000 + 90 + 700 + 300 + 500 + 400),
    ],
)
def test_worked_totals(placement: list[int], expected_ns: int) -> None:
    assert total_ns(diamond_problem(TIMES), placement, line_transfer) == expected_ns


def test_cold_uploads_the_weights_that_are_used_elsewhere() -> None:
    problem = diamond_problem(TIMES)
    warm = total_ns(problem, [1, 1, 1, 1], line_transfer)
    assert warm is not None
    assert total_ns(problem, [1, 1, 1, 1], line_transfer, cold=True) == warm + 100 + 5_000
    assert total_ns(problem, [0, 0, 0, 0], line_transfer, cold=True) == 11_000


def test_outputs_stay_where_they_are_wanted() -> None:
    problem = diamond_problem(TIMES, exit=GPU)
    assert total_ns(problem, [1, 1, 1, 1], line_transfer) == 110 + 1_100
    assert total_ns(problem, [0, 0, 0, 0], line_transfer) == 11_000 + 150


def test_copies_say_what_crosses_and_when_it_is_first_needed() -> None:
    crossings = list(copies(diamond_problem(TIMES), [0, 1, 1, 0], line_transfer))
    assert [(c.src, c.dst, c.bytes, c.ns, c.step) for c in crossings] == [
        (CPU, GPU, 400, 500, 1),
        (GPU, CPU, 300, 400, 3),
        (GPU, CPU, 200, 300, 3),
    ]


def test_a_step_that_cannot_run_there_has_no_price() -> None:
    problem = diamond_problem(TIMES | {"b": (9000, None)})
    assert total_ns(problem, [1, 1, 1, 1], line_transfer) is None
    assert total_ns(problem, [1, 0, 1, 1], line_transfer) is not None


def test_totals_saturate() -> None:
    problem = diamond_problem(TIMES | {"a": (U64_MAX, 10)})
    assert total_ns(problem, [0, 0, 0, 0], line_transfer) == U64_MAX
