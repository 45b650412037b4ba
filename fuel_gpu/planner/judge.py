"""Measured kernel latencies, keyed by size class, in place of counted costs."""

from collections.abc import Sequence
from typing import Protocol

from fuel_gpu.planner.alternative_set import AlternativeSet, DecisionContext
from fuel_gpu.planner.candidate import Candidate, CostEstimate


class Judge(Protocol):
    """Whoever has measured kernels."""

    def measured_latency_ns(
        self, op: str, dtype: str, size_class: int, backend: str, kernel_source: str
    ) -> int | None:
        """Nanoseconds that the kernel took at this size, or None where nobody measured it."""
        ...


def measured_cost(
    candidate: Candidate, context: DecisionContext, judge: Judge
) -> CostEstimate | None:
    """Give the cost that a measurement makes of a candidate, or None where there is none.

    The measurement stands for the whole kernel, so FLOPs and bytes are 0 and it is all
    overhead. The inbound transfer is no part of it.
    """
    latency = judge.measured_latency_ns(
        context.op,
        context.principal_dtype,
        context.size_class,
        candidate.backend,
        candidate.kernel_source,
    )
    return None if latency is None else CostEstimate(0, 0, latency)


def apply_measurements(alternatives: AlternativeSet, judge: Judge) -> None:
    """Replace static costs by measurements, where the judge has them.

    A set without a context stays as it is: nothing says what was measured.
    """
    context = alternatives.context
    if context is None:
        return
    for index, candidate in enumerate(alternatives):
        cost = measured_cost(candidate, context, judge)
        if cost is not None:
            alternatives.set_static_cost(index, cost)


def size_class(elements: int) -> int:
    """``floor(log2(elements))``, no elements counting as one."""
    return max(elements, 1).bit_length() - 1


def matmul_size_class(left_shape: Sequence[int], right_shape: Sequence[int]) -> int:
    """Size class of a matrix product of (..., m, k) by (..., k, n).

    ``log2(m * n) << 16 | log2(m) << 8 | log2(k)``, logarithms floored; leading batch
    dimensions do not count. A vector on the left has m = 1, one on the right n = 1.
    """
    m = left_shape[-2] if len(left_shape) > 1 else 1
    n = right_shape[-1] if len(right_shape) > 1 else 1
    k = left_shape[-1]
    return size_class(m * n) << 16 | size_class(m) << 8 | size_class(k)


def attention_size_class(query_shape: Sequence[int], key_length: int) -> int:
    """Size class of attention of a query (B, Hq, Sq, D) over keys of length L.

    ``log2(Hq * L * D) << 16 | log2(L) << 8 | log2(D)``, logarithms floored.
    """
    _, heads, _, depth = query_shape
    return (
        size_class(heads * key_length * depth) << 16
        | size_class(key_length) << 8
        | size_class(depth)
    )
