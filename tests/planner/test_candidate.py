"""The roofline: the slower of compute and memory, floored, then the launch and the transfer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu import device
from fuel_gpu.planner.candidate import (
    REFERENCE,
    Candidate,
    CostEstimate,
    Rates,
    composite_ns,
    composite_ns_arrays,
    usable_rates,
)

U64_MAX = 2**64 - 1
CPU = device.Device("cpu", 0)
GPU = device.Device("cuda", 0)


@pytest.mark.parametrize(
    ("cost", "rates", "expected"),
    [
        (CostEstimate(300, 0, 0), (1.0, 4.0), 300),
        (CostEstimate(200, 800, 0), (1.0, 4.0), 200),
        (CostEstimate(0, 4000, 10), (1.0, 4.0), 1010),
        (CostEstimate(89, 0, 0), (30.0, 40.0), 2),  # 2.97 floors
        (CostEstimate(0, 79, 5), (30.0, 40.0), 6),  # 1.98 floors
        (CostEstimate(U64_MAX, 0, 7), (0.5, 4.0), U64_MAX),
        (CostEstimate(0, 0, U64_MAX), (1.0, 4.0), U64_MAX),
        (CostEstimate(10, 0, U64_MAX), (1.0, 4.0), U64_MAX),
        (CostEstimate(0, 0, 0), (1.0, 4.0), 0),
    ],
)
def test_composite_is_the_slower_of_the_two_and_the_launch(
    cost: CostEstimate, rates: tuple[float, float], expected: int
) -> None:
    assert composite_ns(cost, *rates) == expected


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf"), float("-inf")])
def test_an_impossible_rate_counts_as_the_cpu_prior(rate: float) -> None:
    assert composite_ns(CostEstimate(100, 0, 0), rate, 40.0) == 100
    assert composite_ns(CostEstimate(0, 100, 0), 30.0, rate) == 25
    assert usable_rates(rate, rate) == Rates(1.0, 4.0)


def test_priors_go_by_the_backend_and_measured_rates_replace_them() -> None:
    cost = CostEstimate(3000, 0, 0)
    assert Candidate(CPU, "cpu", cost, REFERENCE).composite_ns == 3000
    assert Candidate(GPU, "cuda", cost, REFERENCE).composite_ns == 100
    assert Candidate(GPU, "cuda", cost, REFERENCE, rates=Rates(300.0, 1.0)).composite_ns == 10


def test_the_transfer_comes_before_the_kernel_and_saturates() -> None:
    cost = CostEstimate(100, 0, 0)
    assert Candidate(CPU, "cpu", cost, REFERENCE, inbound_transfer_ns=50).time_ns == 150
    assert Candidate(CPU, "cpu", cost, REFERENCE, inbound_transfer_ns=U64_MAX).time_ns == U64_MAX


amounts = st.one_of(st.integers(0, 2**20), st.integers(0, U64_MAX), st.just(U64_MAX))
rates = st.one_of(st.floats(1e-3, 1e6), st.floats())


@given(st.lists(st.tuples(amounts, amounts, amounts, rates, rates), min_size=1, max_size=20))
def test_the_array_form_agrees_to_the_last_bit(
    rows: list[tuple[int, int, int, float, float]],
) -> None:
    flops, moved, overhead, compute, memory = zip(*rows, strict=True)
    got = composite_ns_arrays(
        np.array(flops, np.uint64),
        np.array(moved, np.uint64),
        np.array(overhead, np.uint64),
        np.array(compute, np.float64),
        np.array(memory, np.float64),
        xp=np,
    )
    expected = [composite_ns(CostEstimate(f, b, o), c, m) for f, b, o, c, m in rows]
    assert got.dtype == np.uint64
    assert got.tolist() == expected
