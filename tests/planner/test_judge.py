"""Measurements replace counted costs, and size classes say what they were measured at."""

import pytest

from fuel_gpu.device import Device
from fuel_gpu.planner.alternative_set import AlternativeSet, DecisionContext
from fuel_gpu.planner.candidate import UNAUDITED, Candidate, CostEstimate
from fuel_gpu.planner.judge import (
    apply_measurements,
    attention_size_class,
    matmul_size_class,
    size_class,
)


class OneKernelJudge:
    """Has measured the tiled kernel of one decision point only."""

    def measured_latency_ns(
        self, op: str, dtype: str, size_class: int, backend: str, kernel_source: str
    ) -> int | None:
        key = (op, dtype, size_class, backend, kernel_source)
        return 1234 if key == ("MatMul", "float32", 7, "cpu", "tiled") else None


def alternatives() -> AlternativeSet:
    return AlternativeSet.from_candidates(
        Candidate(Device("cpu"), "cpu", CostEstimate(100, 8, 2), UNAUDITED, 50, source)
        for source in ("tiled", "plain")
    )


def test_a_measurement_replaces_the_static_cost_and_not_the_transfer() -> None:
    judged = alternatives()
    judged.set_context(DecisionContext("MatMul", "float32", 7))
    apply_measurements(judged, OneKernelJudge())
    assert [each.static_cost for each in judged] == [
        CostEstimate(0, 0, 1234),
        CostEstimate(100, 8, 2),
    ]
    assert [each.inbound_transfer_ns for each in judged] == [50, 50]
    assert [each.time_ns for each in judged] == [1284, 152]


def test_without_a_context_nothing_is_looked_up() -> None:
    judged = alternatives()
    apply_measurements(judged, OneKernelJudge())
    assert [each.static_cost.flops for each in judged] == [100, 100]


@pytest.mark.parametrize(
    ("elements", "expected"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (1023, 9), (1024, 10)]
)
def test_size_class(elements: int, expected: int) -> None:
    assert size_class(elements) == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ((128, 64), (64, 32), (12, 7, 6)),
        ((5, 7, 128, 64), (64, 32), (12, 7, 6)),
        ((64,), (64, 32), (5, 0, 6)),
        ((128, 64), (64,), (7, 7, 6)),
        ((1, 1), (1, 1), (0, 0, 0)),
    ],
)
def test_matmul_size_class(
    left: tuple[int, ...], right: tuple[int, ...], expected: tuple[int, int, int]
) -> None:
    product, rows, inner = expected
    assert matmul_size_class(left, right) == product << 16 | rows << 8 | inner


def test_attention_size_class() -> None:
    assert attention_size_class((2, 8, 1, 64), 100) == 15 << 16 | 6 << 8 | 6
