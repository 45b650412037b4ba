"""The placement DP's steps as raw kernels: one launch where array operations take ten a row."""

from dataclasses import dataclass
from typing import Any, Final

from fuel_gpu.arrays.placement_steps import Entry, PathRows, Stretches
from fuel_gpu.arrays.raw_kernels import Launch

MOST_SLOTS: Final = 16
"""Slots that a thread keeps at hand; the source has the same number."""

_GROUP: Final = 256


@dataclass(frozen=True, slots=True)
class KernelSteps:
    """The steps of at most `MOST_SLOTS` slots, one thread for a stretch in one scenario."""

    xp: Any
    launch: Launch

    def follow(
        self, rows: PathRows, stretches: Stretches, entry: Entry | None = None
    ) -> tuple[Any, Any]:
        xp, (_, slots, scenarios), count = self.xp, rows.own_ns.shape, len(stretches.start_host)
        times = xp.empty((slots, count, scenarios), xp.uint64)
        origin = None if entry is None else xp.empty(times.shape, xp.uint8)
        masked, unread = rows.first_available, rows.index
        self._run(
            "placement_follow",
            count * scenarios,
            rows.index,
            stretches.start,
            xp.asarray(stretches.length_host),
            rows.own_ns,
            rows.crossing_ns if rows.crossing_ns.size else unread,
            rows.choice,
            unread if masked is None else masked,
            unread if entry is None else xp.ascontiguousarray(entry.reached_ns),
            unread if entry is None else entry.is_first,
            times,
            unread if origin is None else origin,
            rows.index.shape[1],
            count,
            slots,
            scenarios,
            rows.crossing_ns.shape[3],
            0 if masked is None else masked.shape[1],
            int(entry is not None),
        )
        return times, origin

    def through(self, rows: PathRows, blocks: Stretches, is_first: Any) -> Any:
        xp, (_, slots, scenarios), count = self.xp, rows.own_ns.shape, len(blocks.start_host)
        through_ns = xp.empty((slots, slots, count, scenarios), xp.uint64)
        self._run(
            "placement_through",
            slots * count * scenarios,
            rows.index,
            blocks.start,
            rows.own_ns,
            rows.crossing_ns,
            is_first,
            through_ns,
            rows.index.shape[1],
            int(blocks.length_host[0]),
            count,
            slots,
            scenarios,
            rows.crossing_ns.shape[3],
        )
        return through_ns

    def scan(self, through_ns: Any, first: list[int]) -> Any:
        slots, _, _, scenarios = through_ns.shape
        before_ns = self.xp.empty((slots, first[-1], scenarios), self.xp.uint64)
        self._run(
            "placement_scan",
            first[1] * scenarios,
            through_ns,
            self.xp.asarray(first),
            before_ns,
            len(first) - 1,
            slots,
            scenarios,
        )
        return before_ns

    def block_ends(self, origin: Any, first: list[int], last: Any) -> Any:
        scenarios = last.shape[1]
        ends = self.xp.empty((first[-1], scenarios), self.xp.uint8)
        self._run(
            "placement_block_ends",
            first[1] * scenarios,
            self.xp.ascontiguousarray(origin),
            self.xp.asarray(first),
            self.xp.ascontiguousarray(last),
            ends,
            len(first) - 1,
            scenarios,
        )
        return ends

    def retrace(self, rows: PathRows, stretches: Stretches, last: Any, slot: Any) -> None:
        xp, (_, slots, scenarios), count = self.xp, rows.own_ns.shape, len(stretches.start_host)
        self._run(
            "placement_retrace",
            count * scenarios,
            rows.index,
            stretches.start,
            xp.asarray(stretches.length_host),
            rows.choice,
            xp.ascontiguousarray(last),
            slot,
            rows.index.shape[1],
            count,
            slots,
            scenarios,
        )

    def _run(self, kernel: str, threads: int, *arguments: Any) -> None:
        if threads:
            self.launch(kernel, -(-threads // _GROUP), _GROUP, arguments)
