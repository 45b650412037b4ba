"""Array programs that would take many small launches, as a few raw kernels."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from fuel_gpu.arrays.kernel_sources import ACTIVE, MINIMUM, SCAN_GROUP, UNION, kernel_source

Launch = Callable[[str, int, int, Sequence[Any]], None]
"""``(kernel, groups, threads of a group, arguments)``; integers are Python's, int64 but for the
scans' operation, which is int32."""

_GROUP: Final = 256
_LONG_LINE: Final = 64
_MANY_LINES: Final = 4096
_ROUNDS_BETWEEN_COUNTS: Final = 8


class RawKernels:
    """Scans and the crowding peel, through whatever launches kernels.

    Parameters
    ----------
    launch
        Runs one kernel of `kernel_source` and returns once later launches will see its effect.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch = launch

    def prefix_min(self, values: Any, axis: int) -> Any:
        """Running minimum of a C-contiguous uint64 array along `axis`, in place."""
        self._scan(values, axis, MINIMUM)
        return values

    def prefix_or(self, words: Any) -> Any:
        """Running union of the rows of a C-contiguous uint64 array, in place."""
        self._scan(words, 0, UNION)
        return words

    def _scan(self, values: Any, axis: int, operation: int) -> None:
        length = values.shape[axis]
        inner = 1
        for size in values.shape[axis + 1 :]:
            inner *= size
        if values.size == 0:
            return
        lines = values.size // length
        if length <= _LONG_LINE or lines >= _MANY_LINES:
            arguments = (values, lines, length, inner, operation)
            self.launch("scan_by_thread", -(-lines // _GROUP), _GROUP, arguments)
        else:
            self.launch("scan_by_group", lines, SCAN_GROUP, (values, length, inner, operation))

    def peel(
        self,
        links: tuple[Any, Any],
        values: Any,
        ranges: Any,
        marks: tuple[Any, Any, Any],
        rounds: int,
    ) -> int:
        """Make up to `rounds` rounds of the peel, or stop when no point is active.

        Parameters
        ----------
        links
            Previous and following neighbours, (axes, m) int64; changed.
        values, ranges
            (axes, m) float64.
        marks
            distance and removed_at, (m,) float64, and state, (m,) uint8; changed.

        Returns
        -------
        int
            How many points are still active.
        """
        previous, following = links
        distance, removed_at, state = marks
        axes, points = values.shape
        groups = -(-points // _GROUP)
        active = int(points)
        for done in range(rounds):
            if done % _ROUNDS_BETWEEN_COUNTS == 0:
                active = int((state == ACTIVE).sum())
                if active == 0:
                    break
            arguments: tuple[Any, ...] = (distance, previous, following, state, axes, points)
            self.launch("peel_choose", groups, _GROUP, arguments)
            arguments = (distance, removed_at, previous, following, state, axes, points)
            self.launch("peel_unlink", groups, _GROUP, arguments)
            arguments = (distance, previous, following, values, ranges, state, axes, points)
            self.launch("peel_measure", groups, _GROUP, arguments)
        return active


def cuda_kernels(cupy: Any) -> RawKernels:
    """Compile the kernels for the current CUDA device, through CuPy."""
    module = cupy.RawModule(code=kernel_source("cuda"), options=("--fmad=false",))
    int32 = {"scan_by_thread", "scan_by_group"}

    def launch(name: str, groups: int, threads: int, arguments: Sequence[Any]) -> None:
        typed = [
            cupy.int64(argument) if isinstance(argument, int) else argument
            for argument in arguments
        ]
        if name in int32:
            typed[-1] = cupy.int32(arguments[-1])
        module.get_function(name)((groups,), (threads,), tuple(typed))

    return RawKernels(launch)
