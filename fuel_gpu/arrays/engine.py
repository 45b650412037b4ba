"""The array engine: NumPy or CuPy behind one ``xp``, chosen by name or by the size of the work."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Engine:
    """Where array programs run.

    Parameters
    ----------
    name
        ``numpy`` or ``cupy``.
    xp
        The module with NumPy's names that makes and takes the arrays.
    chunk_bytes
        How much of one array a pass should touch before the next pass starts on it: about half
        of a core's second-level cache on a CPU, everything at once on a GPU.
    """

    name: str
    xp: ModuleType
    chunk_bytes: int

    def chunks(self, count: int, item_bytes: int) -> Iterator[slice]:
        """Cut `count` items into stretches that fit the chunk; at least one, even if empty."""
        length = max(self.chunk_bytes // item_bytes, 1)
        for start in range(0, max(count, 1), length):
            yield slice(start, min(start + length, count))

    def prefix_min(self, values: Any, axis: int) -> Any:
        """Running minimum along `axis`, the element itself included."""
        return np.minimum.accumulate(values, axis=axis)

    def prefix_or(self, words: Any) -> Any:
        """Running union of rows of bit sets, the row itself included."""
        return np.bitwise_or.accumulate(words, axis=0)


NUMPY = Engine("numpy", np, 256 * 1024)
