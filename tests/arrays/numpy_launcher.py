"""The raw kernels' meaning, step by step in NumPy: a launcher for the double of CuPy."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy_placement import PLACEMENT_KERNELS
from strict_cupy import StrictArray, StrictCupy

from fuel_gpu.arrays.kernel_sources import ACTIVE, GONE, MINIMUM
from fuel_gpu.arrays.raw_kernels import RawKernels

_LEAVING = 1


def kernels_of_double(xp: StrictCupy) -> RawKernels:
    """Give kernels that count one launch each and do what the source says."""

    def launch(name: str, _groups: int, _threads: int, arguments: Sequence[Any]) -> None:
        xp.counts.launches += 1
        bare = [each._data if isinstance(each, StrictArray) else each for each in arguments]
        _KERNELS[name](*bare)

    return RawKernels(launch)


def _scan(values: Any, length: int, inner: int, operation: int) -> None:
    lines = values.reshape(-1, length, inner)
    ufunc = np.minimum if operation == MINIMUM else np.bitwise_or
    ufunc.accumulate(lines, axis=1, out=lines)


def _scan_by_thread(values: Any, _lines: int, length: int, inner: int, operation: int) -> None:
    _scan(values, length, inner, operation)


def _choose(distance: Any, previous: Any, following: Any, state: Any, _axes: int, _m: int) -> None:
    place = np.arange(state.size)
    leaves = state == ACTIVE
    for links in (*previous, *following):
        theirs = distance[links]
        leaves &= ~((theirs < distance) | ((theirs == distance) & (links < place)))
    state[leaves] = _LEAVING


def _unlink(
    distance: Any, removed_at: Any, previous: Any, following: Any, state: Any, axes: int, _m: int
) -> None:
    leaving = np.flatnonzero(state == _LEAVING)
    removed_at[leaving] = distance[leaving]
    for axis in range(axes):
        before, after = previous[axis][leaving], following[axis][leaving]
        following[axis][before] = after
        previous[axis][after] = before
    state[leaving] = GONE


def _measure(
    distance: Any,
    previous: Any,
    following: Any,
    values: Any,
    ranges: Any,
    state: Any,
    axes: int,
    _m: int,
) -> None:
    active = np.flatnonzero(state == ACTIVE)
    total = np.zeros(active.size)
    for axis in range(axes):
        gap = values[axis][following[axis][active]] - values[axis][previous[axis][active]]
        total += gap / ranges[axis][active]
    distance[active] = total


_KERNELS: dict[str, Any] = {
    "scan_by_thread": _scan_by_thread,
    "scan_by_group": _scan,
    "peel_choose": _choose,
    "peel_unlink": _unlink,
    "peel_measure": _measure,
    **PLACEMENT_KERNELS,
}
