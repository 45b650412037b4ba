"""Pareto masks against all pairs, by every method that the engine may choose."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from fuel_gpu.arrays import dominance, pivot_filter
from fuel_gpu.errors import UsageError
from fuel_gpu.planner.frontier import pareto_mask

Mask = NDArray[np.bool_]


def all_pairs(points: NDArray[Any], groups: NDArray[np.int64] | None = None) -> Mask:
    """Compare every pair: nobody of the group no worse everywhere and better somewhere."""
    no_worse = np.all(points[:, None] <= points[None], axis=2)
    if groups is not None:
        no_worse &= groups[:, None] == groups[None]
    return np.asarray(~(no_worse & ~no_worse.T).any(axis=0))


@pytest.fixture
def only_large_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send even small inputs through the filter and the sorted methods."""
    monkeypatch.setattr(dominance, "PAIRWISE_UP_TO", 0)
    monkeypatch.setattr(pivot_filter, "FEWEST", 3)


def test_worked_examples() -> None:
    points = [[1, 5], [2, 2], [5, 1], [3, 3], [2, 2], [1, 6]]
    assert pareto_mask(points).tolist() == [True, True, True, False, True, False]
    assert pareto_mask([[3], [1], [1], [2]]).tolist() == [False, True, True, False]


def test_each_group_has_its_own_frontier() -> None:
    points = np.array([[1, 1], [2, 2], [3, 3], [0, 9]])
    groups = np.array([7, -3, 7, -3])
    assert pareto_mask(points, groups).tolist() == [True, True, False, True]


def test_nothing_dominates_in_no_points_or_no_axes() -> None:
    assert pareto_mask(np.zeros((0, 3))).tolist() == []
    assert pareto_mask(np.zeros((0, 3)), np.zeros(0, int)).tolist() == []
    assert pareto_mask(np.zeros((2, 0))).tolist() == [True, True]


def test_uint64_is_compared_exactly() -> None:
    top = 2**64 - 1
    points = np.array([[top, 5], [top - 1, 5], [top - 2, 6]], dtype=np.uint64)
    assert float(top) == float(top - 2)  # what a detour over float64 would see
    assert pareto_mask(points).tolist() == [False, True, True]


def test_infinities_are_ordered_and_zero_has_no_sign() -> None:
    infinity = float("inf")
    points = np.array([[-infinity, 3.0], [0.0, 2.0], [-0.0, 2.0], [infinity, 1.0], [infinity, 9.0]])
    assert pareto_mask(points).tolist() == [True, True, True, True, False]


@pytest.mark.parametrize(
    ("points", "groups", "message"),
    [
        (np.zeros(3), None, "1-D"),
        (np.array([["a"]]), None, "<U1"),
        (np.array([[1.0, 2.0], [float("nan"), 0.0]]), None, "NaN in row 1"),
        (np.zeros((2, 1)), np.zeros(3, int), "groups must be 2 integers"),
        (np.zeros((2, 1)), np.zeros(2), "groups must be 2 integers"),
    ],
)
def test_impossible_input_is_refused(
    points: NDArray[Any], groups: NDArray[np.generic] | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        pareto_mask(points, groups)


def random_points(rng: np.random.Generator) -> NDArray[Any]:
    count, axes = int(rng.integers(1, 300)), int(rng.integers(1, 6))
    kind = rng.integers(0, 6)
    if kind == 0:
        return rng.random((count, axes))
    if kind == 1:
        return rng.integers(0, 2**63, (count, axes)).astype(np.uint64) * np.uint64(2)
    if kind == 2:  # all on the frontier, but for ties
        points = np.sort(rng.integers(-50, 50, (count, axes)), axis=0)
        points[:, -1] = points[::-1, -1].copy()
        return points
    if kind == 3:  # all on the frontier
        weights = rng.random((count, axes)) + 1e-9
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))
    if kind == 4:
        return rng.integers(0, rng.choice([1, 2, 3, 19]), (count, axes)).astype(np.int8)
    degenerate = rng.integers(0, 10**9, (count, axes)).astype(np.float32)
    degenerate[:, axes // 2] = 0.0
    return degenerate


@pytest.mark.parametrize("seed", range(250))
@pytest.mark.usefixtures("only_large_methods")
def test_equals_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = random_points(rng)
    assert pareto_mask(points).tolist() == all_pairs(points).tolist()
    groups = rng.integers(0, rng.choice([2, 5, 100]), len(points)) * 10**15
    assert pareto_mask(points, groups).tolist() == all_pairs(points, groups).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_equals_all_pairs_by_the_method_it_chooses(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 1000, (2000, 5)) // [1, 1, 1000, 53, 200]
    points[:, seed % 5] = 0
    assert pareto_mask(points).tolist() == all_pairs(points).tolist()


@given(
    hnp.arrays(
        np.uint8, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=st.integers(0, 4)
    )
)
def test_the_frontier_dominates_the_rest_and_nothing_in_itself(points: NDArray[np.uint8]) -> None:
    mask = pareto_mask(points)
    front = points[mask]
    assert all_pairs(front).all()
    for point in points[~mask]:
        assert any((other <= point).all() and (other < point).any() for other in front)


def test_order_does_not_matter() -> None:
    rng = np.random.default_rng(5)
    points = rng.integers(0, 40, (500, 4))
    shuffled = rng.permutation(500)
    assert pareto_mask(points)[shuffled].tolist() == pareto_mask(points[shuffled]).tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"points": [[1], [1, 2]]}, "points makes no array"),
        ({"points": None}, "points: None is no array"),
        ({"points": 3}, "points: 3 is no array"),
        ({"points": [["a"]]}, "points must be a .* array of numbers"),
        ({"points": [[1], [2]], "groups": 1}, "groups: 1 is no array"),
        ({"points": [[1], [2]], "groups": [[1], [1, 2]]}, "groups makes no array"),
        ({"points": [[1]], "crossover": "x"}, "crossover: 'x' is no whole number from 0"),
        ({"points": [[1]], "crossover": 0.5}, "crossover: 0.5 is no whole number from 0"),
        ({"points": [[1]], "engine": "numpy", "crossover": -1}, "crossover: -1 is no whole"),
    ],
)
def test_arguments_of_another_kind_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        pareto_mask(**arguments)
