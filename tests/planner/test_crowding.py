"""The parallel peel leaves what dropping one point at a time leaves, point for point."""

from typing import Any

import naive_alternatives as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fuel_gpu.arrays import peel_rounds
from fuel_gpu.errors import UsageError
from fuel_gpu.planner import crowding
from fuel_gpu.planner.crowding import crowding_cap

Points = NDArray[np.float64]


def test_the_middle_of_a_cluster_goes_first() -> None:
    # Along one axis of range 10: gaps around the inner points are 2, 2 and 9 tenths.
    assert crowding_cap([[0.0], [1.0], [2.0], [3.0], [10.0]], 4).tolist() == [
        True,
        False,
        True,
        True,
        True,
    ]
    # Then (2: 3 tenths, 3: 8 tenths) the second; only ends are left, and the first one goes.
    assert crowding_cap([[0.0], [1.0], [2.0], [3.0], [10.0]], 3).tolist() == [
        True,
        False,
        False,
        True,
        True,
    ]
    assert crowding_cap([[0.0], [1.0], [2.0], [3.0], [10.0]], 1).tolist() == [
        False,
        False,
        False,
        False,
        True,
    ]


def test_keep_0_counts_as_1() -> None:
    assert crowding_cap([[1.0], [2.0]], 0).tolist() == [False, True]


def test_protected_points_and_last_labels_stay() -> None:
    line = [[0.0], [1.0], [2.0], [3.0], [4.0]]
    assert crowding_cap(line, 2, protected=[False, False, True, False, False]).tolist() == [
        False,
        False,
        True,
        False,
        True,
    ]
    assert crowding_cap(line, 1, labels=[0, 1, 2, 2, 2]).tolist() == [
        True,
        True,
        False,
        False,
        True,
    ]


def test_groups_are_thinned_apart_in_whatever_order_they_come() -> None:
    points = [[0.0], [0.0], [1.0], [5.0], [2.0], [9.0]]
    groups = [4, -1, 4, -1, 4, -1]
    assert crowding_cap(points, 2, groups=groups).tolist() == [True, True, False, False, True, True]
    assert crowding_cap(points, 3, groups=groups).all()


def test_no_points() -> None:
    assert crowding_cap(np.zeros((0, 2)), 3).tolist() == []


@pytest.mark.parametrize(
    ("points", "arguments", "message"),
    [
        ([1.0, 2.0], {}, "1-D"),
        ([[1.0], [float("nan")]], {}, "axis 0 .* not finite"),
        ([[1e308], [-1e308]], {}, "axis 0 .* not finite"),
        ([[1.0], [2.0]], {"labels": [1]}, "labels must be 2 integers"),
        ([[1.0], [2.0]], {"groups": [0.5, 1.0]}, "groups must be 2 integers"),
        ([[1.0], [2.0]], {"protected": [[True, False]]}, "protected must be 2 integers"),
    ],
)
def test_impossible_input_is_refused(
    points: list[object], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        crowding_cap(points, 1, **arguments)


def random_bucket(rng: np.random.Generator, axes: int) -> Points:
    count = int(rng.integers(1, 45))
    kind = rng.integers(0, 5)
    if kind == 0:
        points = rng.random((count, axes))
    elif kind == 1:  # ties everywhere
        points = rng.integers(0, 4, (count, axes)).astype(np.float64)
    elif kind == 2:  # each point a little less crowded than the one before
        points = np.cumsum(1.0 + 1e-3 * np.arange(count))[:, None] * np.ones(axes)
    elif kind == 3:  # geometric
        points = 1.3 ** np.arange(count)[:, None] * np.ones(axes)
    else:  # like cost vectors
        points = np.floor(rng.random((count, axes)) * [10**6, 10**12, 1, 19, 5][:axes])
    points[:, rng.integers(0, axes)] = rng.choice([1.0, 2.0**64])  # a degenerate axis
    points[:, rng.integers(0, axes)] = rng.random(count)
    return np.asarray(points)


BOUNDS: dict[str, dict[str, int]] = {
    "as they are": {},
    "rounds to the end": {"FEW": 0},
    "no rounds": {"FEW": 0, "POINT_WORK": 2, "ROUND_WORK": 0},
    "one peel": {"FEW": 0, "MOST_PEELS": 1},
    "no peel": {"MOST_PEELS": 0},
    "always a sample": {"FEW": 0, "SAMPLED_FROM": 0, "STRIDE": 2},
}


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("seed", range(120))
def test_equals_the_plain_loop(
    seed: int, bounds: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with the bounds between the ways to go on moved until each does the work."""
    for name, value in bounds.items():
        monkeypatch.setattr(crowding if hasattr(crowding, name) else peel_rounds, name, value)
    rng = np.random.default_rng(seed)
    axes, keep = int(rng.integers(1, 6)), int(rng.integers(1, 15))
    buckets, groups, labels, protected, expected = [], [], [], [], []
    for group in range(int(rng.integers(1, 4))):
        bucket = random_bucket(rng, axes)
        of_label = rng.integers(0, rng.choice([1, 2, 5, 30]), len(bucket))
        shielded = np.arange(len(bucket)) == rng.integers(-5, len(bucket))
        stays = naive.crowding(bucket.tolist(), of_label.tolist(), shielded.tolist(), keep)
        buckets.append(bucket)
        groups += [group * 7] * len(bucket)
        labels += of_label.tolist()
        protected += shielded.tolist()
        expected += [position in stays for position in range(len(bucket))]
    got = crowding_cap(
        np.concatenate(buckets), keep, groups=groups, labels=labels, protected=protected
    )
    assert got.tolist() == expected


@given(st.integers(2, 60), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_bounds_and_extremes(count: int, keep: int, seed: int) -> None:
    points = np.random.default_rng(seed).random((count, 3))
    stays = crowding_cap(points, keep)
    assert stays.sum() == min(keep, count)
    if keep >= 6:
        assert stays[points.argmin(axis=0)].all()
        assert stays[points.argmax(axis=0)].all()


def test_a_sample_narrows_the_search_without_changing_what_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    points = np.column_stack([np.sort(rng.random(9000)), np.sort(rng.random(9000))[::-1]])
    points[:, 1] = np.round(points[:, 1], 2)
    groups = np.repeat([0, 1, 2], [8000, 990, 10])
    stays = crowding_cap(points, 2, groups=groups)
    monkeypatch.setattr(crowding, "SAMPLED_FROM", 10**9)
    assert stays.tolist() == crowding_cap(points, 2, groups=groups).tolist()
