"""Rounds and the heap give every point the same distance at removal, bit for bit."""

from typing import Any

import numpy as np
import pytest

from fuel_gpu.arrays import peel_rounds
from fuel_gpu.arrays.axis_lists import link_axes
from fuel_gpu.arrays.engine import NUMPY, Engine
from fuel_gpu.arrays.peel import removal_distances, remove_one_at_a_time


def test_a_line_by_hand() -> None:
    """1 leaves between 0 and 2, then 2 between 0 and 3, then 3 between 0 and 10."""
    lists = link_axes([np.array([0.0, 1.0, 2.0, 3.0, 10.0])], np.zeros(5, np.uint8), NUMPY)
    removed_at = removal_distances(lists, np.zeros(5, bool), NUMPY)
    assert removed_at.tolist() == [np.inf, 0.2, 0.3, 1.0, np.inf]


def columns(kind: str, count: int, rng: np.random.Generator) -> list[Any]:
    if kind == "frontier":
        memory = np.sort(rng.integers(0, 10**12, count))[::-1].astype(np.float64)
        digits, accuracy = rng.integers(0, 19, count), rng.integers(0, 5, count)
        time = np.sort(rng.integers(0, 10**12, count)).astype(np.float64)
        return [time, memory, digits.astype(np.uint8), accuracy.astype(np.uint8)]
    if kind == "ties":
        return list(rng.integers(0, 30, (3, count)).astype(np.float64))
    return list(rng.random((5, count)))


@pytest.mark.parametrize("kind", ["frontier", "ties", "random"])
@pytest.mark.parametrize("groups", [1, 7])
@pytest.mark.parametrize("engine", [NUMPY, Engine("small chunks", np, 1024)])
def test_rounds_equal_the_heap(
    kind: str, groups: int, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peel_rounds, "FEW", 0)
    monkeypatch.setattr(peel_rounds, "POINT_WORK", 10**6)
    rng = np.random.default_rng(groups)
    axes, group = columns(kind, 3000, rng), np.sort(rng.integers(0, groups, 3000))
    pinned = rng.random(3000) < 0.01
    lists = link_axes(axes, group, engine)
    may_go = np.flatnonzero(~(pinned | lists.ends))
    points, distances = remove_one_at_a_time(lists, may_go, lambda _: True, engine)
    by_heap = np.full(3000, np.inf)
    by_heap[np.array(points)] = distances
    by_rounds = removal_distances(link_axes(axes, group, engine), pinned, engine)
    assert by_rounds.tobytes() == by_heap.tobytes()
    # The order of removal is ascending (distance, position).
    in_groups = np.argsort(group[points], kind="stable")
    assert np.lexsort([np.array(distances), group[points]]).tolist() == in_groups.tolist()


def test_rounds_that_would_grow_with_the_points_end_early() -> None:
    """Along one axis with growing gaps a round takes one point, so the heap takes the most."""
    line, groups = np.cumsum(1.0 + 1e-6 * np.arange(3000)), np.zeros(3000, np.uint8)
    lists = link_axes([line], groups, NUMPY)
    stays, distance = lists.ends.copy(), np.full(3000, np.inf)
    distance[1:-1] = (line[2:] - line[:-2]) / (line[-1] - line[0])
    assert peel_rounds.make_rounds(lists, stays, distance, NUMPY).waiting.sum() > 2500
    points, distances = remove_one_at_a_time(
        link_axes([line], groups, NUMPY), np.arange(1, 2999), lambda _: True, NUMPY
    )
    removed_at = removal_distances(link_axes([line], groups, NUMPY), np.zeros(3000, bool), NUMPY)
    assert np.argsort(removed_at, kind="stable")[:2998].tolist() == points.tolist()
    assert np.sort(removed_at)[:2998].tolist() == distances.tolist()


def test_what_is_refused_stays_for_good() -> None:
    lists = link_axes([np.array([0.0, 1.0, 2.0, 3.0, 10.0])], np.zeros(5, np.uint8), NUMPY)
    points, distances = remove_one_at_a_time(lists, np.arange(1, 4), lambda p: p != 1, NUMPY)
    assert points.tolist() == [2, 3]
    assert distances.tolist() == [0.2, 0.9]


def test_none_may_leave() -> None:
    lists = link_axes([np.array([0.0, 1.0])], np.zeros(2, np.uint8), NUMPY)
    points, distances = remove_one_at_a_time(lists, np.arange(0), lambda _: True, NUMPY)
    assert (points.tolist(), distances.tolist()) == ([], [])
