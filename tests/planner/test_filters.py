"""The filter chain: hard filters that must leave something, soft ones that give way."""

from collections.abc import Sequence

import pytest

from fuel_gpu.device import Device
from fuel_gpu.errors import PlanError
from fuel_gpu.planner.alternative_set import AlternativeSet, DecisionContext
from fuel_gpu.planner.candidate import (
    PRIMITIVE_DETERMINISTIC_CPU,
    REFERENCE,
    UNAUDITED,
    Candidate,
    CostEstimate,
    PrecisionGuarantee,
)
from fuel_gpu.planner.filters import (
    Filter,
    apply_filter_chain,
    precision_floor,
    prefer_bit_stable,
    prefer_strided_input,
)


def alternatives(*guarantees: PrecisionGuarantee) -> AlternativeSet:
    made = AlternativeSet.from_candidates(
        Candidate(Device("cpu"), "cpu", CostEstimate(n), guarantee)
        for n, guarantee in enumerate(guarantees)
    )
    made.set_context(DecisionContext("Conv", "float16", 12))
    return made


def left(filtered: AlternativeSet) -> list[int]:
    return [each.static_cost.flops for each in filtered]


BOUNDED = PrecisionGuarantee(False, 2, 1e-6, 1e-4)


@pytest.mark.parametrize(
    ("floor", "expected"),
    [
        (precision_floor(), [0, 1, 2, 3]),
        (precision_floor(max_ulp=2), [0, 3]),
        (precision_floor(max_ulp=1), [0]),
        (precision_floor(max_relative=1e-6), [0, 3]),
        (precision_floor(max_absolute=1e-5), [0]),
        (precision_floor(max_ulp=4, max_absolute=1e-4), [0, 3]),
        (precision_floor(min_digits=6), [0, 1, 3]),
        (precision_floor(min_digits=10), [0]),
        (precision_floor(bit_stable=True), [0, 1]),
    ],
)
def test_the_precision_floor_wants_a_claim_for_each_bound(
    floor: Filter, expected: list[int]
) -> None:
    filtered = alternatives(REFERENCE, PRIMITIVE_DETERMINISTIC_CPU, UNAUDITED, BOUNDED)
    apply_filter_chain(filtered, [floor])
    assert left(filtered) == expected


def test_a_hard_filter_that_keeps_none_says_what_where_and_how_many() -> None:
    filtered = alternatives(UNAUDITED, UNAUDITED)
    with pytest.raises(
        PlanError,
        match="filter 'precision floor' keeps none of the 2 alternatives "
        "of Conv on float16, size class 12",
    ):
        apply_filter_chain(filtered, [precision_floor(max_ulp=1)])
    assert left(filtered) == [0, 1]


def test_soft_filters_give_way_rather_than_leave_too_few() -> None:
    filtered = alternatives(UNAUDITED, REFERENCE, UNAUDITED)
    apply_filter_chain(filtered, [prefer_strided_input(), prefer_bit_stable()])
    assert left(filtered) == [1]
    filtered = alternatives(UNAUDITED, UNAUDITED)
    apply_filter_chain(filtered, [prefer_bit_stable()])
    assert left(filtered) == [0, 1]


def test_strided_kernels_are_preferred_where_there_is_one() -> None:
    filtered = AlternativeSet.from_candidates(
        Candidate(Device("cpu"), "cpu", CostEstimate(n), UNAUDITED, strided_input=n == 1)
        for n in range(3)
    )
    apply_filter_chain(filtered, [prefer_strided_input()])
    assert left(filtered) == [1]


def test_filters_run_in_order_on_what_is_left_and_see_the_context() -> None:
    seen: list[tuple[int, DecisionContext | None]] = []

    def drop_first(
        candidates: Sequence[Candidate], context: DecisionContext | None
    ) -> Sequence[int]:
        seen.append((len(candidates), context))
        return range(1, len(candidates))

    filtered = alternatives(REFERENCE, REFERENCE, REFERENCE)
    chain = [Filter("drop", drop_first, 2), Filter("drop", drop_first, 2), Filter("x", drop_first)]
    apply_filter_chain(filtered, chain)
    context = DecisionContext("Conv", "float16", 12)
    assert seen == [(3, context), (2, context), (2, context)]
    assert left(filtered) == [2]


def test_a_filter_with_impossible_indices_is_refused() -> None:
    with pytest.raises(PlanError, match="out-of-range"):
        apply_filter_chain(alternatives(REFERENCE), [Filter("bad", lambda *_: [3])])
