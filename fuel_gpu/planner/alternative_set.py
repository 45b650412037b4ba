"""The candidates of one decision point: filtered, ranked, and cut to each device's frontier."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.arrays.engine import NUMPY
from fuel_gpu.device import Device
from fuel_gpu.errors import PlanError, UsageError
from fuel_gpu.planner.candidate import Candidate, CostEstimate
from fuel_gpu.planner.cost_vector import MOST_DIGITS, CostVector
from fuel_gpu.planner.frontier import crowding_cap, pareto_mask

KEEP_PER_DEVICE: Final = 32
"""How many candidates each device keeps: enough for every query that a prototype asked."""

_PAIRWISE_UP_TO: Final = 16  # measured: from there on the arrays' fixed cost is the smaller one


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """What the judge knows a decision point by.

    Parameters
    ----------
    op
        The operation.
    principal_dtype
        The first input's dtype.
    size_class
        The first input's size class, as `fuel_gpu.planner.judge` computes it.
    """

    op: str
    principal_dtype: str
    size_class: int


class AlternativeSet:
    """The candidates of one node, in order; after `rank_by_cost` the winner is the first.

    A view for people and for single decisions: a whole graph goes through
    `fuel_gpu.planner.candidate_table.rank_and_retain`, which gives the same result.
    """

    __slots__ = ("_candidates", "_context")

    def __init__(self, candidates: Iterable[Candidate] = ()) -> None:
        self._candidates = list(candidates)
        self._context: DecisionContext | None = None

    @classmethod
    def empty(cls) -> "AlternativeSet":
        """Make a set without candidates."""
        return cls()

    @classmethod
    def from_candidates(cls, candidates: Iterable[Candidate]) -> "AlternativeSet":
        """Make a set of the candidates, in their order."""
        return cls(candidates)

    def __len__(self) -> int:
        return len(self._candidates)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._candidates)

    def __getitem__(self, index: int) -> Candidate:
        return self._candidates[index]

    def __repr__(self) -> str:
        return f"AlternativeSet({self._candidates!r})"

    @property
    def is_empty(self) -> bool:
        """Whether no candidate is left."""
        return not self._candidates

    @property
    def alternatives(self) -> Sequence[Candidate]:
        """The candidates, in order."""
        return tuple(self._candidates)

    @property
    def winner(self) -> Candidate | None:
        """The first candidate: the best one once the set is ranked. None if the set is empty."""
        return self._candidates[0] if self._candidates else None

    @property
    def context(self) -> DecisionContext | None:
        """The decision point's identity; None until it is set, and kept by every change."""
        return self._context

    def set_context(self, context: DecisionContext) -> None:
        """Stamp the decision point's identity."""
        self._context = context

    def push(self, candidate: Candidate) -> None:
        """Append a candidate.

        Raises
        ------
        UsageError
            If it is none.
        """
        if not isinstance(candidate, Candidate):
            raise UsageError(f"candidate: {candidate!r:.60} is no Candidate")
        self._candidates.append(candidate)

    def retain_indices(self, indices: Sequence[int]) -> None:
        """Keep the candidates at `indices` only.

        Raises
        ------
        PlanError
            If the indices do not ascend strictly or one is out of range; nothing changes.
        """
        chosen = [int(index) for index in indices]
        if any(left >= right for left, right in pairwise(chosen)):
            raise PlanError(
                f"retain_indices: indices must be sorted strictly ascending, got {chosen}"
            )
        if chosen and (chosen[0] < 0 or chosen[-1] >= len(self._candidates)):
            raise PlanError(
                f"retain_indices: out-of-range index in {chosen}: "
                f"the set has {len(self._candidates)} candidates"
            )
        self._candidates = [self._candidates[index] for index in chosen]

    def set_static_cost(self, index: int, cost: CostEstimate) -> None:
        """Replace the static cost of the candidate at `index`.

        Raises
        ------
        PlanError
            If `index` is out of range.
        """
        self._check_index("set_static_cost", index)
        self._candidates[index] = replace(self._candidates[index], static_cost=cost)

    def set_inbound_transfer_ns(self, index: int, ns: int) -> None:
        """Replace the inbound transfer time of the candidate at `index`.

        Raises
        ------
        PlanError
            If `index` is out of range.
        """
        self._check_index("set_inbound_transfer_ns", index)
        self._candidates[index] = replace(self._candidates[index], inbound_transfer_ns=ns)

    def rank_by_cost(self) -> None:
        """Sort by time, then precision, accuracy and total memory; ties keep their order."""
        self._candidates.sort(key=_total_order_key)

    def rank_by_composite_cost(self) -> None:
        """Rank, by the name that the scalar cost had; the same as `rank_by_cost`."""
        self.rank_by_cost()

    def retain_per_device_frontier(self, keep: int = KEEP_PER_DEVICE) -> None:
        """Keep each device's frontier, at most `keep` candidates of it, and rank what is left.

        The first candidate counts as the winner and stays. A (device, backend) never loses its
        last candidate, so a device with more than `keep` backends keeps one of each. Where a
        frontier is longer than `keep`, the most crowded candidates go first.

        Parameters
        ----------
        keep
            Bound for each device; 0 counts as 1.
        """
        if len(self._candidates) <= 1:
            return
        vectors = [CostVector.from_candidate(candidate) for candidate in self._candidates]
        buckets: dict[Device, list[int]] = {}
        for index, candidate in enumerate(self._candidates):
            buckets.setdefault(candidate.device, []).append(index)
        kept: list[int] = []
        for bucket in buckets.values():
            kept.extend(self._retain_bucket(bucket, vectors, max(keep, 1)))
        self.retain_indices(sorted(kept))
        self.rank_by_cost()

    def _retain_bucket(self, bucket: list[int], vectors: list[CostVector], keep: int) -> list[int]:
        frontier = _frontier(bucket, vectors)
        represented = {self._candidates[index].backend for index in frontier}
        stranded: dict[str, int] = {}
        for index in bucket:
            backend = self._candidates[index].backend
            if backend in represented:
                continue
            best = stranded.setdefault(backend, index)
            if vectors[index].total_order_key() < vectors[best].total_order_key():
                stranded[backend] = index
        frontier.extend(stranded.values())
        if bucket[0] == 0 and 0 not in frontier:
            frontier.append(0)
        if len(frontier) <= keep:
            return frontier
        backends: dict[str, int] = {}
        stays = crowding_cap(
            _axes(frontier, vectors),
            keep,
            labels=np.array(
                [
                    backends.setdefault(self._candidates[index].backend, len(backends))
                    for index in frontier
                ]
            ),
            protected=np.array([index == 0 for index in frontier]),
            engine=NUMPY,
        )
        return [index for index, stay in zip(frontier, stays.tolist(), strict=True) if stay]

    def _check_index(self, method: str, index: int) -> None:
        if not 0 <= index < len(self._candidates):
            raise PlanError(
                f"{method}: index {index} is out of range: "
                f"the set has {len(self._candidates)} candidates"
            )


def _total_order_key(candidate: Candidate) -> tuple[int, int, int, int]:
    return CostVector.from_candidate(candidate).total_order_key()


def _frontier(bucket: list[int], vectors: list[CostVector]) -> list[int]:
    if len(bucket) <= _PAIRWISE_UP_TO:
        return [
            index
            for index in bucket
            if not any(vectors[other].dominates(vectors[index]) for other in bucket)
        ]
    mask = pareto_mask(_points(bucket, vectors), engine=NUMPY).tolist()
    return [index for index, on_front in zip(bucket, mask, strict=True) if on_front]


def _points(indices: list[int], vectors: list[CostVector]) -> NDArray[np.uint64]:
    """Cost vectors as rows of uint64, every axis minimised."""
    points = _axes(indices, vectors)
    points[:, 3:] = MOST_DIGITS - points[:, 3:]
    return points


def _axes(indices: list[int], vectors: list[CostVector]) -> NDArray[np.uint64]:
    """Cost vectors as rows of uint64, as they are: the crowding distance breaks ties by them."""
    rows = [
        (
            vectors[index].time,
            vectors[index].memory.host_ram_bytes,
            vectors[index].memory.device_vram_bytes,
            vectors[index].precision,
            vectors[index].accuracy,
        )
        for index in indices
    ]
    return np.array(rows, dtype=np.uint64)
