"""Data with known answers, so that a copy that did not arrive or a wrong product is caught."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.dtypes import UNIT_ROUNDOFF

_ROWS_CHECKED: Final = 8
_SEED: Final = 20240229

_SMALL_PART: Final = {"float32": 2.0**-12, "float64": 2.0**-40}
"""Sums up to 2,000 in magnitude, so enlarged, still fit the dtype's 24 or 53 bits."""

_STEP: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
"""Odd and far from any small multiple: repeated additions pass through all values of a word."""


_BLOCK_WORDS: Final = 2**16
"""Half a MiB: blocks that stay in a cache, so that no temporary array of a buffer's size is made
whose pages have to be touched for the first time."""


def number_words(buffer: NDArray[np.uint8]) -> None:
    """Give each word of a buffer its own value, so that a copy to a wrong place shows."""
    numbers = np.arange(_BLOCK_WORDS, dtype=np.uint64)
    for start, block in _blocks(buffer):
        np.add(numbers[: len(block)], np.uint64(start), out=block)


def change_words(buffer: NDArray[np.uint8]) -> None:
    """Change every word of a numbered buffer, so that a copy that did not happen shows."""
    words = buffer.view(np.uint64)
    np.add(words, _STEP, out=words)


def same_words(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> bool:
    """Whether two buffers of one length hold the same."""
    pairs = zip(_blocks(one), _blocks(other), strict=True)
    return all(np.array_equal(block, twin) for (_, block), (_, twin) in pairs)


def _blocks(buffer: NDArray[np.uint8]) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    words = buffer.view(np.uint64)
    for start in range(0, len(words), _BLOCK_WORDS):
        yield start, words[start : start + _BLOCK_WORDS]


def repeat(pattern: NDArray[Any], out: NDArray[Any]) -> None:
    """Write a pattern over and over, to the end of `out`."""
    whole = len(out) // len(pattern) * len(pattern)
    out[:whole].reshape(-1, len(pattern))[:] = pattern
    out[whole:] = pattern[: len(out) - whole]


def padded(matrix: NDArray[Any], pitch: int) -> NDArray[Any]:
    """Widen a matrix's rows to `pitch` elements, the added ones zero."""
    wide = np.zeros((matrix.shape[0], pitch), dtype=matrix.dtype)
    wide[:, : matrix.shape[1]] = matrix
    return wide


class ProductCheck:
    """Two matrices of small integers, and the rows by which their product is judged.

    Entries are -2 .. 2, so partial sums stay exact in every dtype that has integers up to about a
    thousand: a right kernel is off by the rounding of the result alone. In float32 and float64 the
    left factor's are larger by a part so small that a narrower dtype loses it: whoever computes in
    float16 or tf32 what should be float32, or in float32 what should be float64, is found out.

    Parameters
    ----------
    n
        Rows and columns.
    dtype
        The compute dtype; ``tf32`` takes and gives float32, ``bfloat16`` is given as float32.
    """

    def __init__(self, n: int, dtype: str) -> None:
        random = np.random.default_rng(_SEED)
        self._a = random.integers(-2, 3, size=(n, n), dtype=np.int8)
        self._b = random.integers(-2, 3, size=(n, n), dtype=np.int8)
        self._scale = 1.0 + _SMALL_PART.get(dtype, 0.0)
        self._rows = np.unique(np.linspace(0, n - 1, _ROWS_CHECKED).astype(int))
        left = self._a[self._rows] * self._scale
        self._expected = left @ self._b.astype(np.float64)
        self._tolerance = 2 * UNIT_ROUNDOFF.get(dtype, 0.0)
        self._dtype = {"tf32": "float32", "bfloat16": "float32"}.get(dtype, dtype)

    def operands(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Give both factors in the dtype that the host hands over, shape (n, n)."""
        left = self._a.astype(self._dtype)
        if self._scale != 1.0:
            left *= left.dtype.type(self._scale)
        return left, self._b.astype(self._dtype)

    def accepts(self, product: NDArray[Any]) -> bool:
        """Whether a product, shape (n, n), is right on the rows that are checked."""
        found = product[self._rows].astype(np.float64)
        error = np.abs(found - self._expected)
        return bool(np.all(error <= self._tolerance * np.maximum(np.abs(self._expected), 1.0)))
