"""The placement DP over arrays: in every scenario what the single DP commits, row for row."""

import doctest
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from placement_cases import Case, Shape, random_case
from placement_oracle import MAX

from fuel_gpu.arrays.engine import NUMPY, Engine
from fuel_gpu.arrays.placement_steps import ArraySteps
from fuel_gpu.device import Device
from fuel_gpu.errors import UsageError
from fuel_gpu.planner import placement_batch, placement_walk
from fuel_gpu.planner.placement_batch import place_batch
from fuel_gpu.planner.placement_dp import ChainInput, PlacementDP
from fuel_gpu.planner.placement_problem import Closings, PlacementProblem

SHAPES: tuple[Shape, ...] = ("chain", "forest", "graph")
SMALL_CACHE = Engine("numpy", np, 200)  # a few columns at a time, so that every part has a seam


def assert_equals_the_oracle(case: Case, engine: Engine = NUMPY) -> None:
    found = place_batch(case.problem(), engine=engine)
    for scenario in range(case.cost_ns.shape[2]):
        slots, total_ns = case.expected(scenario)
        assert found.slot[:, scenario].tolist() == slots
        assert int(found.total_ns[scenario]) == total_ns


@pytest.mark.parametrize(
    "scale", [2, 1000, 2**62, MAX], ids=["ties", "plain", "large", "saturated"]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_small_graphs_in_three_scenarios(shape: Shape, scale: int) -> None:
    for seed in range(40):
        case = random_case(
            seed, shape, rows=1 + seed % 17, slots=1 + seed % 5, scenarios=3, scale=scale
        )
        assert_equals_the_oracle(case)


@pytest.mark.parametrize("scale", [2, MAX], ids=["ties", "saturated"])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_that_cannot_run_everywhere(shape: Shape, scale: int) -> None:
    for seed in range(40):
        case = random_case(
            seed,
            shape,
            rows=1 + seed % 17,
            slots=2 + seed % 4,
            scenarios=3,
            scale=scale,
            absent=0.4,
        )
        assert_equals_the_oracle(case)


@pytest.mark.parametrize("scale", [2, 1000, MAX], ids=["ties", "plain", "saturated"])
def test_rows_closed_toward_decided_readers(scale: int) -> None:
    """Later readers of what a closing committed pay from where it was committed."""
    for seed in range(150):
        case = random_case(
            seed, "graph", rows=2 + seed % 25, slots=3, scenarios=2, scale=scale, closings=seed % 7
        )
        assert_equals_the_oracle(case)
        assert_equals_the_oracle(case, SMALL_CACHE)


@pytest.mark.parametrize("engine", [NUMPY, SMALL_CACHE], ids=["whole", "in parts"])
@pytest.mark.parametrize("absent", [0.0, 0.4], ids=["everywhere", "absent"])
@pytest.mark.parametrize("scale", [3, MAX], ids=["ties", "saturated"])
@pytest.mark.parametrize("shape", SHAPES)
def test_paths_followed_in_blocks(
    shape: Shape, scale: int, absent: float, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement_walk, "LONG_ROWS", 3)
    monkeypatch.setattr(placement_walk, "NARROW_WAYS", 10**9)
    for rows, scenarios in [(30, 4), (64, 1), (100, 2)]:
        case = random_case(
            rows, shape, rows=rows, slots=3, scenarios=scenarios, scale=scale, absent=absent
        )
        assert_equals_the_oracle(case, engine)


def test_a_long_chain_in_one_scenario_is_followed_in_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = random_case(9, "chain", rows=500, slots=3, scenarios=1)
    assert_equals_the_oracle(case)
    monkeypatch.setattr(ArraySteps, "scan", None)
    with pytest.raises(TypeError, match="not callable"):
        place_batch(case.problem())


def test_many_scenarios_are_followed_whole() -> None:
    assert_equals_the_oracle(random_case(1, "graph", rows=100, slots=4, scenarios=150))


def chain_problem(cost_ns: NDArray[np.uint64], crossing_ns: NDArray[np.uint64]) -> PlacementProblem:
    rows = len(cost_ns)
    return PlacementProblem(
        first_edge=np.maximum(np.arange(rows + 1) - 1, 0),
        producer=np.arange(rows - 1),
        crossing=np.arange(rows - 1) % len(crossing_ns),
        cost_ns=cost_ns,
        crossing_ns=crossing_ns,
    )


def test_a_chain_worked_by_hand() -> None:
    # Two rows, two slots; crossing to the other slot takes 1000 in one scenario, 100 in the other.
    cost_ns = np.array([[[800, 800], [100, 100]], [[800, 800], [950, 950]]], np.uint64)
    crossing_ns = np.array([[[[0, 0], [1000, 100]], [[1000, 100], [0, 0]]]], np.uint64)
    # Slow link: at slot 0 row 1 takes 800 + min(800, 100 + 1000) = 1600, at slot 1 950 + 100.
    # Fast link: at slot 0 800 + min(800, 100 + 100) = 1000, at slot 1 950 + 100.
    found = place_batch(chain_problem(cost_ns, crossing_ns))
    assert found.slot.tolist() == [[1, 1], [1, 0]]
    assert found.total_ns.tolist() == [1050, 1000]


def test_a_long_chain_equals_the_single_dp() -> None:
    arrays = np.random.default_rng(5)
    rows, slots = 20_000, 4
    cost_ns = arrays.integers(0, 100, (rows, slots, 1), dtype=np.uint64)
    crossing_ns = arrays.integers(0, 60, (7, slots, slots, 1), dtype=np.uint64)
    devices = [Device("d", k) for k in range(slots)]

    class Links:
        def estimate_transfer_ns(self, src: Device, dst: Device, bytes: int) -> int:
            return int(crossing_ns[bytes, src.index, dst.index, 0])

    dp, links = PlacementDP[int](), Links()
    for row, times in enumerate(cost_ns[..., 0].tolist()):
        inputs = [ChainInput(row - 1, ((row - 1) % 7,))] if row else []
        dp.push_row(row, list(zip(devices, times, strict=True)), [], inputs, links)
    placed = dict(dp.finish(None, lambda _: 0, links))
    found = place_batch(chain_problem(cost_ns, crossing_ns))
    assert found.slot[:, 0].tolist() == [placed[row].index for row in range(rows)]


def test_a_row_with_thousands_of_producers() -> None:
    # Each producer costs 1 at slot 0 and 2 at slot 1; the reader only runs at slot 1; crossing 3.
    producers = 5000
    found = place_batch(
        PlacementProblem(
            first_edge=np.array([0] * (producers + 1) + [producers]),
            producer=np.arange(producers),
            crossing=np.zeros(producers, np.int64),
            cost_ns=np.array([[[1], [2]]] * producers + [[[0], [7]]], np.uint64),
            crossing_ns=np.array([[[[0], [3]], [[3], [0]]]], np.uint64),
            available=np.array([[[True], [True]]] * producers + [[[False], [True]]]),
        )
    )
    assert found.slot.tolist() == [[1]] * (producers + 1)
    assert found.total_ns.tolist() == [2 * producers + 7]


def test_arrays_that_all_scenarios_share() -> None:
    case = random_case(3, "graph", rows=40, slots=3, scenarios=4, closings=3, absent=0.3)
    case = replace(case, link_ns=np.repeat(case.link_ns[..., :1], 4, axis=-1))
    assert case.available is not None
    case = replace(case, available=np.repeat(case.available[..., :1], 4, axis=-1))
    problem = case.problem()
    assert problem.available is not None
    assert problem.closings is not None
    shared = replace(
        problem,
        crossing_ns=problem.crossing_ns[..., :1],
        exit_ns=None if problem.exit_ns is None else problem.exit_ns[..., :1],
        available=problem.available[..., :1],
        closings=replace(problem.closings, crossing_ns=problem.closings.crossing_ns[..., :1]),
    )
    found, wanted = place_batch(shared), place_batch(problem)
    np.testing.assert_array_equal(found.slot, wanted.slot)
    np.testing.assert_array_equal(found.total_ns, wanted.total_ns)


def test_the_times_given_are_left_as_they_are() -> None:
    problem = random_case(2, "graph", rows=30, slots=3, scenarios=2, closings=3).problem()
    before = problem.cost_ns.copy()
    place_batch(problem)
    np.testing.assert_array_equal(problem.cost_ns, before)


def test_no_rows_and_no_scenarios() -> None:
    links = np.zeros((1, 2, 2, 1), np.uint64)
    no_rows = place_batch(chain_problem(np.zeros((0, 2, 3), np.uint64), links))
    assert no_rows.slot.shape == (0, 3)
    assert no_rows.total_ns.tolist() == [0, 0, 0]
    no_scenarios = place_batch(chain_problem(np.zeros((4, 2, 0), np.uint64), links))
    assert no_scenarios.slot.shape == (4, 0)
    assert no_scenarios.total_ns.shape == (0,)


def test_closings_are_priced_in_the_total() -> None:
    # One row, 300 at slot 0 and 100 at slot 1; its reader is 1034 away from slot 1.
    problem = PlacementProblem(
        first_edge=np.zeros(2, np.int64),
        producer=np.zeros(0, np.int64),
        crossing=np.zeros(0, np.int64),
        cost_ns=np.array([[[300], [100]]], np.uint64),
        crossing_ns=np.zeros((0, 2, 2, 1), np.uint64),
        closings=Closings(
            row=np.array([0]), after=np.array([1]), crossing_ns=np.array([[[0], [1034]]], np.uint64)
        ),
    )
    found = place_batch(problem)
    assert found.slot.tolist() == [[0]]
    assert found.total_ns.tolist() == [300]


@pytest.mark.parametrize("problem", [None, 3, PlacementProblem])
def test_only_a_problem_is_placed(problem: Any) -> None:
    with pytest.raises(UsageError, match=r"problem: .* is no PlacementProblem"):
        place_batch(problem)


def test_the_docstrings_example_holds() -> None:
    result = doctest.testmod(placement_batch)
    assert (result.attempted, result.failed) == (4, 0)
