"""Cost vectors: tiers, digits, accuracy classes, dominance and the total order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu import device
from fuel_gpu.planner.candidate import (
    PRIMITIVE_DETERMINISTIC_CPU,
    REFERENCE,
    UNAUDITED,
    Candidate,
    CostEstimate,
    PrecisionGuarantee,
)
from fuel_gpu.planner.cost_vector import (
    AccuracyClass,
    CostVector,
    TierMemory,
    accuracy_class,
    precision_digits,
)

U64_MAX = 2**64 - 1


def vector(
    time: int = 0, host: int = 0, vram: int = 0, digits: int = 0, accuracy: int = 0
) -> CostVector:
    return CostVector(time, TierMemory(host, vram), digits, AccuracyClass(accuracy))


def test_memory_counts_in_the_tier_of_the_device() -> None:
    cost = CostEstimate(0, 4096, 0)
    host = Candidate(device.Device("cpu"), "cpu", cost, REFERENCE, inbound_transfer_ns=9)
    card = Candidate(device.Device("vulkan", 1), "vulkan", cost, UNAUDITED)
    assert CostVector.from_candidate(host) == vector(1024 + 9, host=4096, digits=18, accuracy=4)
    assert CostVector.from_candidate(card) == vector(102, vram=4096)


@pytest.mark.parametrize(
    ("guarantee", "digits"),
    [
        (REFERENCE, 18),
        (PRIMITIVE_DETERMINISTIC_CPU, 9),
        (UNAUDITED, 0),
        (PrecisionGuarantee(max_ulp=0), 18),
        (PrecisionGuarantee(max_ulp=1), 0),
        (PrecisionGuarantee(max_relative=0.0), 18),
        (PrecisionGuarantee(max_relative=-1.0), 18),
        (PrecisionGuarantee(max_relative=1e-30), 18),
        (PrecisionGuarantee(max_relative=10.0), 0),
        (PrecisionGuarantee(max_relative=float("inf")), 0),
        (PrecisionGuarantee(max_relative=float("nan")), 0),
        (PrecisionGuarantee(True, 0, max_relative=0.5), 0),
        (PrecisionGuarantee(max_relative=2e-7), 6),
        *((PrecisionGuarantee(max_relative=float(f"1e-{n}")), n) for n in range(19)),
    ],
)
def test_digits(guarantee: PrecisionGuarantee, digits: int) -> None:
    assert precision_digits(guarantee) == digits


@pytest.mark.parametrize(
    ("guarantee", "expected"),
    [
        (UNAUDITED, 0),
        (PRIMITIVE_DETERMINISTIC_CPU, 1),
        (PrecisionGuarantee(max_ulp=2.5), 2),
        (PrecisionGuarantee(max_ulp=2), 3),
        (PrecisionGuarantee(max_ulp=1), 3),
        (PrecisionGuarantee(max_ulp=0.5), 3),
        (REFERENCE, 4),
    ],
)
def test_accuracy_class(guarantee: PrecisionGuarantee, expected: int) -> None:
    assert accuracy_class(guarantee).rank() == expected


def test_dominance_compares_memory_tier_by_tier() -> None:
    assert vector(1).dominates(vector(2))
    assert not vector(1).dominates(vector(1))
    assert not vector(1, host=5).dominates(vector(2, vram=5))
    assert vector(1, digits=3).dominates(vector(1, digits=2))
    assert not vector(1, digits=3, accuracy=1).dominates(vector(1, digits=2, accuracy=2))


def test_the_order_is_time_precision_accuracy_total_memory() -> None:
    best_first = [
        vector(1, host=100),
        vector(2, host=9, digits=5),
        vector(2, host=9, digits=4, accuracy=2),
        vector(2, host=3, vram=3, digits=4, accuracy=1),
        vector(2, host=7, digits=4, accuracy=1),
        vector(2, host=U64_MAX, vram=1, digits=4, accuracy=1),
    ]
    assert sorted(set(best_first), key=CostVector.total_order_key) == best_first
    assert vector(host=U64_MAX, vram=9).total_order_key() == vector(host=U64_MAX).total_order_key()


vectors = st.builds(
    vector,
    st.integers(0, 2),
    st.integers(0, 2),
    st.integers(0, 2),
    st.integers(0, 2),
    st.integers(0, 2),
)


@given(vectors, vectors, vectors)
def test_dominance_is_a_strict_partial_order_within_the_total_order(
    a: CostVector, b: CostVector, c: CostVector
) -> None:
    assert not (a.dominates(b) and b.dominates(a))
    if a.dominates(b) and b.dominates(c):
        assert a.dominates(c)
    if a.dominates(b):
        assert a.total_order_key() < b.total_order_key()
