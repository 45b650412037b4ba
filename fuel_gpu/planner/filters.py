"""The chain of filters that a node's candidates pass before they are ranked."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fuel_gpu.errors import PlanError
from fuel_gpu.planner.alternative_set import AlternativeSet, DecisionContext
from fuel_gpu.planner.candidate import Candidate
from fuel_gpu.planner.cost_vector import precision_digits

KeptIndices = Callable[[Sequence[Candidate], DecisionContext | None], Sequence[int]]
"""``(alternatives, context)`` to the indices to keep, strictly ascending."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on the candidates of a decision point.

    Parameters
    ----------
    name
        What errors call it.
    kept_indices
        Gives the indices of the candidates to keep, strictly ascending.
    min_remaining
        For a soft filter, the number of candidates that it must leave: it is skipped where it
        would leave fewer. None makes the filter hard: to keep none is an error.
    by_kernel
        Whether the answer depends on the kernels alone (device, backend, precision), not on the
        node's costs: one answer then serves every node with the same kernels.
    """

    name: str
    kept_indices: KeptIndices
    min_remaining: int | None = None
    by_kernel: bool = False

    @property
    def is_hard(self) -> bool:
        """Whether keeping no candidate is an error."""
        return self.min_remaining is None


def apply_filter_chain(alternatives: AlternativeSet, filters: Iterable[Filter]) -> None:
    """Apply the filters to the set, in order.

    Raises
    ------
    PlanError
        If a hard filter keeps none: the message names the filter, the context and how many
        alternatives there were. Also if a filter gives indices that do not ascend strictly or
        are out of range. The set is then as the filters before left it.
    """
    for each in filters:
        kept = each.kept_indices(alternatives.alternatives, alternatives.context)
        if each.min_remaining is not None:
            if len(kept) < each.min_remaining:
                continue
        elif not len(kept):
            raise PlanError(
                f"filter {each.name!r} keeps none of the {len(alternatives)} alternatives "
                f"of {_describe(alternatives.context)}"
            )
        alternatives.retain_indices(kept)


def precision_floor(
    *,
    max_ulp: float | None = None,
    max_relative: float | None = None,
    max_absolute: float | None = None,
    min_digits: int | None = None,
    bit_stable: bool = False,
) -> Filter:
    """Admit only kernels that promise at least this much: a hard filter.

    Each bound that is stated must be met by a claim of the same kind; a kernel that makes no
    such claim fails it.

    Parameters
    ----------
    max_ulp, max_relative, max_absolute
        The largest error allowed, or None for no condition.
    min_digits
        The fewest decimal digits, as the cost vector counts them, or None.
    bit_stable
        Whether the same inputs must give the same bits on the same hardware.
    """

    def admits(candidate: Candidate) -> bool:
        promise = candidate.precision
        return (
            _within(promise.max_ulp, max_ulp)
            and _within(promise.max_relative, max_relative)
            and _within(promise.max_absolute, max_absolute)
            and (min_digits is None or precision_digits(promise) >= min_digits)
            and (promise.bit_stable_on_same_hardware or not bit_stable)
        )

    bounds = (max_ulp, max_relative, max_absolute, min_digits)
    only_bits = bit_stable and all(bound is None for bound in bounds)
    name = "bit-stable floor" if only_bits else "precision floor"
    return Filter(name, _keeping(admits), by_kernel=True)


def prefer_strided_input() -> Filter:
    """Prefer kernels that read strided inputs in place, where there is one: a soft filter."""
    return Filter("strided input", _keeping(lambda candidate: candidate.strided_input), 1, True)


def prefer_bit_stable() -> Filter:
    """Prefer kernels that give the same bits again, where there is one: a soft filter."""
    return Filter(
        "bit-stable",
        _keeping(lambda candidate: candidate.precision.bit_stable_on_same_hardware),
        1,
        True,
    )


def _keeping(admits: Callable[[Candidate], bool]) -> KeptIndices:
    def kept_indices(
        alternatives: Sequence[Candidate], _context: DecisionContext | None
    ) -> Sequence[int]:
        return [index for index, candidate in enumerate(alternatives) if admits(candidate)]

    return kept_indices


def _within(claim: float | None, bound: float | None) -> bool:
    return bound is None or (claim is not None and claim <= bound)


def _describe(context: DecisionContext | None) -> str:
    if context is None:
        return "a decision point without a context"
    return f"{context.op} on {context.principal_dtype}, size class {context.size_class}"
