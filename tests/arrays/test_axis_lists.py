"""Points are linked in order along each axis, and gaps are summed over the axes."""

import numpy as np

from fuel_gpu.arrays.axis_lists import crowding_distances, link_axes
from fuel_gpu.arrays.engine import NUMPY


def test_links_ends_and_distances_of_two_groups() -> None:
    values = np.array([4.0, 0.0, 1.0, 3.0, 3.0, 9.0])
    digits = np.array([7, 7, 7, 2, 6, 4], np.uint8)
    groups = np.array([0, 0, 0, 5, 5, 5])
    lists = link_axes([values, np.full(6, 8.0), digits], groups, NUMPY)
    wide, narrow = lists.axes  # the axis on which all are equal adds nothing
    assert wide.previous.tolist() == [2, 1, 1, 3, 3, 4]
    assert wide.following.tolist() == [0, 2, 0, 4, 5, 5]
    assert wide.ranges.tolist() == [4.0, 6.0]
    # The first group is degenerate on this axis: its points keep their order, its range is 1.
    assert narrow.previous.tolist() == [0, 0, 1, 3, 5, 3]
    assert narrow.following.tolist() == [1, 2, 2, 5, 4, 4]
    assert narrow.ranges.tolist() == [1.0, 4.0]
    # First and last in value, of equals in position: on the degenerate axes 0, 2, 3 and 5.
    assert lists.ends.tolist() == [True, True, True, True, True, True]
    assert lists.group.tolist() == [0, 0, 0, 1, 1, 1]


def test_distances_are_sums_of_gaps_over_ranges_in_float64() -> None:
    values, digits = np.array([0.0, 1.0, 2.0, 8.0]), np.array([18, 0, 9, 6], np.uint8)
    lists = link_axes([values, digits], np.zeros(4, np.uint8), NUMPY)
    # Point 1: 2 eighths, an end in digits. Point 2: 7 eighths, and between 6 and 18.
    assert crowding_distances(lists, np.array([2]), np).tolist() == [7 / 8 + 12 / 18]
    assert lists.ends.tolist() == [True, True, False, True]


def test_links_take_four_bytes_on_a_cpu() -> None:
    lists = link_axes([np.arange(5.0)], np.zeros(5, np.uint8), NUMPY)
    assert lists.axes[0].previous.dtype == lists.axes[0].following.dtype == np.int32
