"""Baselines: all on one device, and greedy, which looks at each node and the copies it causes."""

from small_graphs import TIMES, diamond_problem, line_transfer

from fuel_gpu.planner.baselines import all_on, greedy


def test_all_on_one_device_keeps_pins() -> None:
    problem = diamond_problem(TIMES)
    assert all_on(problem, 1, {}) == [1, 1, 1, 1]
    assert all_on(problem, 1, {2: 0}) == [1, 1, 0, 1]


def test_a_device_without_a_kernel_cannot_run_everything() -> None:
    problem = diamond_problem(TIMES | {"c": (700, None)})
    assert all_on(problem, 1, {}) is None
    assert all_on(problem, 1, {2: 0}) == [1, 1, 0, 1]


def test_greedy_stays_where_no_single_step_pays_for_the_crossing() -> None:
    # a: CPU 1000 against GPU 10 + 1100 for x; b: 9000 against 90 + 500; c then finds a there
    assert greedy(diamond_problem(TIMES), line_transfer, {}) == [0, 1, 1, 1]


def test_greedy_pays_for_a_copy_once() -> None:
    # c: CPU 400 against GPU 7 + 0, because b has brought a over already
    problem = diamond_problem(TIMES | {"c": (400, 7)})
    assert greedy(problem, line_transfer, {}) == [0, 1, 1, 1]
    # with b held on the CPU, nobody has: 400 against 7 + 500
    assert greedy(problem, line_transfer, {1: 0}) == [0, 0, 0, 0]


def test_greedy_ties_go_to_the_device_listed_first() -> None:
    even: dict[str, tuple[int | None, int | None]] = dict.fromkeys("abcd", (0, 0))
    assert greedy(diamond_problem(even), lambda *_: 0, {}) == [0, 0, 0, 0]


def test_greedy_has_no_answer_where_a_node_has_no_device() -> None:
    problem = diamond_problem(TIMES | {"c": (None, None)})
    assert greedy(problem, line_transfer, {}) is None
