"""What the placement DP's kernels do, said by the array operations, for the double of CuPy."""

from typing import Any

import numpy as np

from fuel_gpu.arrays.placement_steps import ArraySteps, Entry, PathRows, Stretches

_STEPS = ArraySteps(np)


def _rows(index: Any, own_ns: Any, crossing_ns: Any, choice: Any, first: Any = None) -> PathRows:
    return PathRows(index, index, own_ns, crossing_ns, choice, first)


def _follow(
    index: Any,
    start: Any,
    length: Any,
    own_ns: Any,
    crossing_ns: Any,
    choice: Any,
    first_available: Any,
    entered_ns: Any,
    is_first: Any,
    times: Any,
    origin: Any,
    *sizes: int,
) -> None:
    masked, entered = sizes[-2:]
    rows = _rows(index, own_ns, crossing_ns, choice, first_available if masked else None)
    entry = Entry(entered_ns, is_first) if entered else None
    times[...], came_from = _STEPS.follow(rows, Stretches(start, length, start), entry)
    if entered:
        origin[...] = came_from


def _through(
    index: Any,
    start: Any,
    own_ns: Any,
    crossing_ns: Any,
    is_first: Any,
    through_ns: Any,
    _positions: int,
    length: int,
    *_sizes: int,
) -> None:
    blocks = Stretches(start, np.full_like(start, length), start)
    through_ns[...] = _STEPS.through(_rows(index, own_ns, crossing_ns, None), blocks, is_first)


def _scan(through_ns: Any, first: Any, before_ns: Any, *_sizes: int) -> None:
    before_ns[...] = _STEPS.scan(through_ns, first.tolist())


def _block_ends(origin: Any, first: Any, last: Any, ends: Any, *_sizes: int) -> None:
    ends[...] = _STEPS.block_ends(origin, first.tolist(), last)


def _retrace(
    index: Any, start: Any, length: Any, choice: Any, last: Any, slot: Any, *_sizes: int
) -> None:
    rows = _rows(index, None, None, choice)
    _STEPS.retrace(rows, Stretches(start, length, start), last, slot)


PLACEMENT_KERNELS: dict[str, Any] = {
    "placement_follow": _follow,
    "placement_through": _through,
    "placement_scan": _scan,
    "placement_block_ends": _block_ends,
    "placement_retrace": _retrace,
}
