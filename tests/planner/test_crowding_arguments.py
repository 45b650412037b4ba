"""The crowding cap refuses arguments of another kind, and names them."""

from typing import Any

import numpy as np
import pytest

from fuel_gpu.errors import UsageError
from fuel_gpu.planner.frontier import crowding_cap


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"keep": 2.5}, "keep: 2.5 is no whole number from 0"),
        ({"keep": "3"}, "keep: '3' is no whole number from 0"),
        ({"keep": None}, "keep: None is no whole number from 0"),
        ({"keep": True}, "keep: True is no whole number from 0"),
        ({"keep": -1}, "keep: -1 is no whole number from 0"),
        ({"points": None}, "points: None is no array"),
        ({"points": [[1], [1, 2]]}, "points makes no array"),
        ({"labels": 1}, "labels: 1 is no array"),
        ({"groups": [[1], [1, 2]]}, "groups makes no array"),
        ({"protected": False}, "protected: False is no array"),
        ({"crossover": "x"}, "crossover: 'x' is no whole number from 0"),
    ],
)
def test_arguments_of_another_kind_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        crowding_cap(**{"points": [[1], [2]], "keep": 1, **arguments})


def test_the_bound_may_be_a_numpy_integer() -> None:
    keep: Any = np.int64(2)
    assert crowding_cap([[1], [2]], keep).tolist() == [True, True]
