"""The filter drops only points that another point of their group, which stays, dominates."""

import numpy as np
import pytest

from fuel_gpu.arrays.engine import NUMPY
from fuel_gpu.arrays.pivot_filter import survivors


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("axes", [2, 5])
def test_what_is_dropped_is_dominated_by_what_stays(groups: int, axes: int) -> None:
    rng = np.random.default_rng(axes)
    points = rng.integers(0, 200, (3000, axes))
    numbers = rng.integers(0, groups, 3000)
    left = survivors(list(points.T), numbers if groups > 1 else None, NUMPY)
    assert left is not None
    assert len(left) < 2000
    stays = np.zeros(3000, bool)
    stays[left] = True
    for row in np.flatnonzero(~stays):
        others = points[stays & (numbers == numbers[row])]
        beats = (others <= points[row]).all(axis=1) & (others < points[row]).any(axis=1)
        assert beats.any()


def test_no_round_is_made_where_nothing_would_go() -> None:
    line = np.arange(3000)
    assert survivors([line, -line], None, NUMPY) is None
    assert survivors([line[:100], line[:100]], None, NUMPY) is None


def test_equal_points_do_not_drop_one_another() -> None:
    left = survivors([np.zeros(1000), np.zeros(1000, np.uint64)], None, NUMPY)
    assert left is None or len(left) == 1000
