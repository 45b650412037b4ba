"""Ranking whole graphs refuses arguments of another kind, and names them."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from fuel_gpu.errors import UsageError
from fuel_gpu.planner.candidate_table import CandidateTable, rank_and_retain


def table(**changed: Any) -> CandidateTable:
    """Give two candidates of one node, equal in all but what is changed."""
    columns = {field.name: np.zeros(2, np.int64) for field in fields(CandidateTable)}
    return CandidateTable(**{**columns, **changed})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"table": 5}, "table: 5 is no CandidateTable"),
        ({"table": None}, "table: None is no CandidateTable"),
        ({"table": CandidateTable}, "table: <class .* is no CandidateTable"),
        ({"table": table(node=None)}, "column node: None is no array"),
        ({"table": table(time_ns=7)}, "column time_ns: 7 is no array"),
        ({"table": table(device=[[1], [1, 2]])}, "column device makes no array"),
        ({"table": table(precision=[18, 19])}, "precision has 19 in row 1: .* from 0 to 18"),
        ({"table": table(accuracy=[5, 4])}, "accuracy has 5 in row 0: .* from 0 to 4"),
        ({"keep": "3"}, "keep: '3' is no whole number from 0"),
        ({"keep": 2.5}, "keep: 2.5 is no whole number from 0"),
        ({"crossover": "x"}, "crossover: 'x' is no whole number from 0"),
    ],
)
def test_arguments_of_another_kind_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rank_and_retain(**{"table": table(), **arguments})


def test_the_best_promises_are_taken() -> None:
    best = table(precision=[17, 18], accuracy=[4, 4])
    assert rank_and_retain(best).rows.tolist() == [1]
