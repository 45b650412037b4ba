"""Placement problems as arrays: what is refused, and how it is said."""

from typing import Any

import numpy as np
import pytest

from fuel_gpu.errors import UsageError
from fuel_gpu.planner.placement_problem import Closings, PlacementProblem


def fields(**changed: Any) -> dict[str, Any]:
    """Give the fields of a problem of three rows in a chain, two slots and two scenarios."""
    return {
        "first_edge": np.array([0, 0, 1, 2]),
        "producer": np.array([0, 1]),
        "crossing": np.array([0, 0]),
        "cost_ns": np.zeros((3, 2, 2), np.uint64),
        "crossing_ns": np.zeros((1, 2, 2, 1), np.uint64),
        "exit_ns": np.zeros((3, 2, 2), np.uint64),
        "available": np.ones((3, 2, 1), np.bool_),
        "closings": closings(),
        **changed,
    }


def closings(**changed: Any) -> Closings:
    given = {
        "row": np.array([0, 2]),
        "after": np.array([1, 3]),
        "crossing_ns": np.zeros((2, 2, 1), np.uint64),
    }
    return Closings(**{**given, **changed})


def test_a_sound_problem_knows_its_size() -> None:
    problem = PlacementProblem(**fields())
    assert (problem.rows, problem.slots, problem.scenarios) == (3, 2, 2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"first_edge": [0, 0, 1, 2]}, "first_edge is a list; it must be an array"),
        ({"producer": [0, 1]}, "producer is a list; it must be an array"),
        ({"crossing": None}, "crossing is a NoneType; it must be an array"),
        ({"cost_ns": [[[1, 2]]]}, "cost_ns is a list; it must be an array"),
        ({"available": True}, "available is a bool; it must be an array"),
        ({"closings": ()}, r"closings: \(\) is no Closings"),
        ({"closings": closings(row=[0, 2])}, "closings.row is a list; it must be an array"),
        ({"cost_ns": np.zeros((3, 2, 2))}, r"cost_ns is float64 of shape \(3, 2, 2\)"),
        ({"cost_ns": np.zeros((3, 2), np.uint64)}, r"cost_ns is uint64 of shape \(3, 2\)"),
        ({"cost_ns": np.zeros((3, 0, 2), np.uint64)}, "cost_ns has 0 slots"),
        ({"cost_ns": np.zeros((3, 256, 2), np.uint64)}, "cost_ns has 256 slots"),
        (
            {"crossing_ns": np.zeros((1, 2, 3, 2), np.uint64)},
            r"crossing_ns .* must be uint64 of shape \(any, 2, 2, 1 or 2\)",
        ),
        ({"exit_ns": np.zeros((2, 2, 2), np.uint64)}, "exit_ns"),
        ({"exit_ns": np.zeros((3, 2, 3), np.uint64)}, "exit_ns"),
        ({"available": np.ones((3, 2, 2), np.uint8)}, "available is uint8"),
        (
            {"available": np.array([[[True], [True]], [[False], [False]], [[True], [True]]])},
            "leaves row 1 no slot in scenario 0",
        ),
        ({"first_edge": np.array([0, 0, 2])}, r"first_edge .* shape \(4,\)"),
        ({"first_edge": np.array([0, 0, 2, 1])}, "first_edge must rise from 0"),
        ({"first_edge": np.array([0, 2, 1, 2])}, "first_edge must rise from 0"),
        ({"first_edge": np.array([0.0, 0.0, 1.0, 2.0])}, "first_edge is float64"),
        ({"producer": np.array([0, 3])}, r"producer\[1\] is 3; it must be in 0 .. 2"),
        ({"producer": np.array([-1, 1])}, r"producer\[0\] is -1"),
        ({"producer": np.array([0, 2])}, r"producer\[1\] is row 2, .* before its reader, row 2"),
        ({"crossing": np.array([0, 1])}, r"crossing\[1\] is 1"),
        ({"crossing": np.array([0])}, r"crossing .* shape \(2,\)"),
        (
            {"first_edge": np.array([0, 0, 0, 2]), "producer": np.array([1, 1])},
            "row 2 reads row 1 by several edges",
        ),
        ({"closings": closings(row=np.array([0, 3]))}, r"closings.row\[1\] is 3"),
        ({"closings": closings(after=np.array([0, 4]))}, r"closings.after\[1\] is 4"),
        ({"closings": closings(after=np.array([2, 1]))}, "closings.after falls"),
        (
            {"closings": closings(crossing_ns=np.zeros((1, 2, 1), np.uint64))},
            "closings.crossing_ns",
        ),
    ],
)
def test_a_wrong_array_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PlacementProblem(**fields(**changed))
