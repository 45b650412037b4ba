"""One decision point: ranking, retention and the set's own invariants."""

import random
from typing import Any

import naive_alternatives as naive
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu.device import Device
from fuel_gpu.errors import PlanError, UsageError
from fuel_gpu.planner.alternative_set import KEEP_PER_DEVICE, AlternativeSet, DecisionContext
from fuel_gpu.planner.candidate import (
    PRIMITIVE_DETERMINISTIC_CPU,
    REFERENCE,
    UNAUDITED,
    Candidate,
    CostEstimate,
    PrecisionGuarantee,
)
from fuel_gpu.planner.cost_vector import CostVector

CPU = Device("cpu")
CUDA = Device("cuda", 0)


def candidate(
    flops: int = 0,
    *,
    device: Device = CPU,
    backend: str | None = None,
    bytes_moved: int = 0,
    overhead: int = 0,
    inbound: int = 0,
    precision: PrecisionGuarantee = PRIMITIVE_DETERMINISTIC_CPU,
    kernel: str = "",
) -> Candidate:
    cost = CostEstimate(flops, bytes_moved, overhead)
    return Candidate(device, backend or device.backend, cost, precision, inbound, kernel)


def digits(count: int) -> PrecisionGuarantee:
    return PrecisionGuarantee(True, max_relative=10.0**-count)


def flops(alternatives: AlternativeSet) -> list[int]:
    return [each.static_cost.flops for each in alternatives.alternatives]


def ranked_and_retained(candidates: list[Candidate], keep: int) -> AlternativeSet:
    alternatives = AlternativeSet.from_candidates(candidates)
    alternatives.rank_by_cost()
    alternatives.retain_per_device_frontier(keep)
    return alternatives


def test_an_empty_set_has_no_winner() -> None:
    alternatives = AlternativeSet.empty()
    assert alternatives.is_empty
    assert len(alternatives) == 0
    assert alternatives.winner is None
    alternatives.rank_by_cost()
    alternatives.retain_per_device_frontier(0)
    assert alternatives.is_empty


def test_pushing_appends_and_the_first_is_the_winner() -> None:
    alternatives = AlternativeSet.empty()
    alternatives.push(candidate(10))
    alternatives.push(candidate(20))
    assert flops(alternatives) == [10, 20]
    assert alternatives.winner is not None
    assert alternatives.winner.static_cost.flops == 10


def test_rank_follows_roofline_and_transfer_on_one_precision() -> None:
    alternatives = AlternativeSet.from_candidates(
        [
            candidate(300),
            candidate(100, inbound=50),  # 150
            candidate(200, bytes_moved=800),  # max(200, 200)
            candidate(0, bytes_moved=4000, overhead=10, inbound=90),  # 1100
            candidate(120),
        ]
    )
    alternatives.rank_by_cost()
    assert flops(alternatives) == [120, 100, 200, 300, 0]


def test_rank_by_composite_cost_counts_the_transfer() -> None:
    alternatives = AlternativeSet.from_candidates([candidate(100, inbound=5000), candidate(200)])
    alternatives.rank_by_composite_cost()
    assert flops(alternatives) == [200, 100]


def test_rank_is_stable_after_precision_accuracy_and_memory() -> None:
    alternatives = AlternativeSet.from_candidates(
        [
            candidate(5, precision=UNAUDITED, kernel="a"),
            candidate(5, precision=UNAUDITED, kernel="b"),
            candidate(5, precision=digits(4), bytes_moved=8, kernel="c"),
            candidate(5, precision=digits(4), bytes_moved=4, kernel="d"),
            candidate(5, precision=REFERENCE, bytes_moved=12, kernel="e"),
        ]
    )
    alternatives.rank_by_cost()
    assert [each.kernel_source for each in alternatives] == ["e", "d", "c", "a", "b"]


def test_retain_indices_keeps_what_it_is_given() -> None:
    alternatives = AlternativeSet.from_candidates([candidate(n) for n in range(5)])
    alternatives.retain_indices([0, 1, 2, 3, 4])
    assert flops(alternatives) == [0, 1, 2, 3, 4]
    alternatives.retain_indices([0, 2, 4])
    assert flops(alternatives) == [0, 2, 4]
    alternatives.retain_indices([])
    assert alternatives.is_empty


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([1, 0], r"sorted strictly ascending, got \[1, 0\]"),
        ([0, 0], r"sorted strictly ascending, got \[0, 0\]"),
        ([0, 5], r"out-of-range index in \[0, 5\]: the set has 2 candidates"),
        ([-1], r"out-of-range index in \[-1\]"),
    ],
)
def test_retain_indices_refuses_impossible_indices(indices: list[int], message: str) -> None:
    alternatives = AlternativeSet.from_candidates([candidate(1), candidate(2)])
    with pytest.raises(PlanError, match=message):
        alternatives.retain_indices(indices)
    assert flops(alternatives) == [1, 2]


def test_costs_and_transfers_are_set_by_index() -> None:
    alternatives = AlternativeSet.from_candidates([candidate(1), candidate(2)])
    alternatives.set_static_cost(1, CostEstimate(0, 0, 7))
    alternatives.set_inbound_transfer_ns(0, 30)
    assert [each.time_ns for each in alternatives] == [31, 7]
    with pytest.raises(PlanError, match="set_static_cost: index 2"):
        alternatives.set_static_cost(2, CostEstimate())
    with pytest.raises(PlanError, match="set_inbound_transfer_ns: index -1"):
        alternatives.set_inbound_transfer_ns(-1, 0)


def test_the_context_survives_every_change() -> None:
    alternatives = AlternativeSet.from_candidates([candidate(n) for n in (3, 2, 1)])
    assert alternatives.context is None
    context = DecisionContext("MatMul", "float32", 16)
    alternatives.set_context(context)
    alternatives.retain_indices([0, 2])
    alternatives.rank_by_cost()
    alternatives.retain_per_device_frontier()
    assert alternatives.context == context


def test_a_slow_device_is_not_stranded_by_faster_ones() -> None:
    alternatives = ranked_and_retained(
        [candidate(n, precision=REFERENCE) for n in (100, 200, 300)]
        + [candidate(10_000, device=CUDA, precision=REFERENCE)],
        KEEP_PER_DEVICE,
    )
    # 10,000 FLOPs at the prior of 30 FLOP/ns take 333 ns: dearer than the CPU's 100 ns.
    assert [(each.device, each.static_cost.flops) for each in alternatives] == [
        (CPU, 100),
        (CUDA, 10_000),
    ]


def test_a_dominated_candidate_of_the_same_device_goes() -> None:
    alternatives = ranked_and_retained(
        [candidate(100, precision=REFERENCE), candidate(500, precision=UNAUDITED)], 32
    )
    assert flops(alternatives) == [100]


def test_the_crowding_cap_keeps_the_extremes() -> None:
    tradeoff = [candidate(100 + 100 * k, precision=digits(2 + k)) for k in range(10)]
    alternatives = ranked_and_retained(tradeoff, 4)
    assert len(alternatives) == 4
    assert {100, 1000} <= set(flops(alternatives))


def test_every_device_keeps_one_and_the_total_is_bounded() -> None:
    devices = [CPU, Device("cuda", 1), Device("cuda", 2)]
    alternatives = ranked_and_retained(
        [
            candidate(100 + 50 * k + d, device=device, precision=digits(8 - k))
            for d, device in enumerate(devices)
            for k in range(6)
        ],
        3,
    )
    assert {each.device for each in alternatives} == set(devices)
    assert len(alternatives) <= 3 * 3


def test_a_dominated_device_and_a_dominated_backend_stay() -> None:
    metal = Device("metal")
    alternatives = ranked_and_retained(
        [
            candidate(100, precision=REFERENCE),
            candidate(9_999, device=metal, bytes_moved=999_999, precision=UNAUDITED),
            candidate(overhead=400, backend="onednn", precision=UNAUDITED, kernel="slow"),
            candidate(overhead=300, backend="onednn", precision=UNAUDITED, kernel="less slow"),
        ],
        32,
    )
    assert [(each.backend, each.kernel_source) for each in alternatives] == [
        ("cpu", ""),
        ("onednn", "less slow"),
        ("metal", ""),
    ]


def test_retention_leaves_the_winner_alone() -> None:
    candidates = [
        candidate(300, precision=REFERENCE),
        candidate(100, device=CUDA, precision=REFERENCE),
        candidate(200, precision=REFERENCE),
    ]
    alternatives = ranked_and_retained(candidates, 32)
    assert alternatives.winner == candidates[1]


def test_a_single_candidate_passes_through() -> None:
    assert flops(ranked_and_retained([candidate(42)], 32)) == [42]


def test_equal_vectors_both_stay() -> None:
    twins = [candidate(7, kernel="a"), candidate(7, kernel="b")]
    assert list(ranked_and_retained(twins, 32)) == twins


def test_more_backends_than_the_bound_all_keep_one() -> None:
    candidates = [candidate(100 + n, backend=f"b{n}") for n in range(5)]
    assert list(ranked_and_retained(candidates, 2)) == candidates
    assert list(ranked_and_retained(candidates, 0)) == candidates


def test_the_first_candidate_of_an_unranked_set_stays_though_dominated() -> None:
    alternatives = AlternativeSet.from_candidates([candidate(9), candidate(5), candidate(7)])
    alternatives.retain_per_device_frontier(32)
    assert flops(alternatives) == [5, 9]


# --- against the plain loops -------------------------------------------------------------

_DEVICES = [CPU, CUDA, Device("opencl", 1)]
_GUARANTEES = [
    UNAUDITED,
    PRIMITIVE_DETERMINISTIC_CPU,
    REFERENCE,
    PrecisionGuarantee(max_ulp=1, max_relative=1e-6),
    PrecisionGuarantee(max_ulp=8, max_relative=1e-3),
    digits(12),
]


def random_candidates(rng: random.Random, count: int) -> list[Candidate]:
    spread = rng.choice([1, 3, 10, 10**6])
    return [
        candidate(
            device=(device := rng.choice(_DEVICES)),
            backend=rng.choice([device.backend, "second", "third"]),
            overhead=rng.choice([rng.randrange(spread), rng.randrange(spread), 2**64 - 1]),
            bytes_moved=rng.choice([0, 10**15 * rng.randrange(spread), 2**64 - 1]),
            precision=rng.choice(_GUARANTEES),
            kernel=str(number),
        )
        for number in range(count)
    ]


def rows(candidates: list[Candidate]) -> list[naive.Row]:
    vectors = [CostVector.from_candidate(each) for each in candidates]
    backends = {each.backend: code for code, each in enumerate(candidates)}
    return [
        (
            vector.time,
            vector.memory.host_ram_bytes,
            vector.memory.device_vram_bytes,
            vector.precision,
            int(vector.accuracy),
            _DEVICES.index(each.device),
            backends[each.backend],
        )
        for vector, each in zip(vectors, candidates, strict=True)
    ]


@pytest.mark.parametrize("seed", range(300))
def test_equals_the_plain_loops(seed: int) -> None:
    rng = random.Random(seed)
    candidates = random_candidates(rng, rng.choice([1, 2, 3, 5, 8, 13, 60]))
    keep = rng.choice([0, 1, 2, 3, 5, 32])
    expected = naive.rank_and_retain(rows(candidates), keep)
    assert list(ranked_and_retained(candidates, keep)) == [candidates[i] for i in expected]


@pytest.mark.parametrize("seed", range(100))
def test_unranked_sets_equal_the_plain_loops(seed: int) -> None:
    rng = random.Random(1000 + seed)
    candidates = random_candidates(rng, rng.choice([2, 5, 13, 60]))
    keep = rng.choice([0, 1, 2, 5])
    kept = [candidates[i] for i in naive.retain(rows(candidates), keep)]
    expected = [kept[i] for i in naive.rank(rows(kept))]
    alternatives = AlternativeSet.from_candidates(candidates)
    alternatives.retain_per_device_frontier(keep)
    assert list(alternatives) == expected


@given(st.randoms(use_true_random=False), st.integers(1, 12), st.integers(0, 4))
def test_the_winner_lies_on_its_frontier_and_every_backend_stays(
    rng: random.Random, count: int, keep: int
) -> None:
    candidates = random_candidates(rng, count)
    alternatives = AlternativeSet.from_candidates(candidates)
    alternatives.rank_by_cost()
    winner = alternatives.winner
    assert winner is not None
    price = CostVector.from_candidate(winner)
    assert not any(
        CostVector.from_candidate(each).dominates(price)
        for each in candidates
        if each.device == winner.device
    )
    alternatives.retain_per_device_frontier(keep)
    assert alternatives.winner == winner
    assert {(each.device, each.backend) for each in alternatives} == {
        (each.device, each.backend) for each in candidates
    }
    for device in {each.device for each in candidates}:
        backends = {each.backend for each in candidates if each.device == device}
        survivors = sum(each.device == device for each in alternatives)
        assert survivors <= max(keep, 1, len(backends) + 1)


@pytest.mark.parametrize("pushed", [None, 3, Candidate])
def test_only_candidates_are_pushed(pushed: Any) -> None:
    alternatives = AlternativeSet.empty()
    with pytest.raises(UsageError, match=r"candidate: .* is no Candidate"):
        alternatives.push(pushed)
    assert alternatives.is_empty
