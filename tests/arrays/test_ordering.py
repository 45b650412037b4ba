"""Codes keep the order of values, and lexicographic orders are stable."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from fuel_gpu.arrays.engine import NUMPY
from fuel_gpu.arrays.ordering import (
    compact_numbers,
    dense_ranks,
    lexicographic_order,
    number_dtype,
    numbered_runs,
    ordered_codes,
)
from fuel_gpu.errors import UsageError

numbers = st.one_of(
    hnp.integer_dtypes(), hnp.unsigned_integer_dtypes(), hnp.floating_dtypes(sizes=(16, 32, 64))
)


@given(
    numbers.flatmap(
        lambda dtype: hnp.arrays(
            dtype.newbyteorder("="),
            st.integers(1, 20),
            elements=hnp.from_dtype(dtype, allow_nan=False),
        )
    )
)
def test_codes_compare_as_values_do(column: NDArray[Any]) -> None:
    codes = ordered_codes(column, np)
    assert codes.dtype.kind == "u"
    if column.dtype.kind in "iu":
        assert codes.dtype.itemsize == column.dtype.itemsize
    assert codes.min() == 0
    assert ((codes[:, None] < codes) == (column[:, None] < column)).all()


def test_integral_floats_keep_their_distances() -> None:
    assert ordered_codes(np.array([5.0, -2.0, 0.0]), np).tolist() == [7, 0, 2]
    assert ordered_codes(np.array([0.5, -0.0, 0.0]), np)[1:].tolist() == [0, 0]


def test_what_has_no_order_is_refused() -> None:
    with pytest.raises(UsageError, match="complex128"):
        ordered_codes(np.array([1j]), np)


def test_dense_ranks() -> None:
    assert dense_ranks(np.array([9, 2, 9, 4], np.uint64), np).tolist() == [2, 0, 2, 1]


def test_numbers_are_as_narrow_as_they_fit() -> None:
    bounds = [0, 255, 256, 65535, 65536, 2**32 - 1, 2**32]
    names = ["uint8", "uint8", "uint16", "uint16", "uint32", "uint32", "int64"]
    assert [np.dtype(number_dtype(bound, NUMPY)).name for bound in bounds] == names


def test_compact_numbers_close_gaps_only_where_most_numbers_would_be_unused() -> None:
    few = compact_numbers(np.array([9, 2, 9, 4], np.uint64), NUMPY)
    assert few.tolist() == [9, 2, 9, 4]
    assert few.dtype == np.uint8
    assert compact_numbers(np.array([900, 2, 900, 4], np.uint64), NUMPY).tolist() == [2, 0, 2, 1]


def test_runs() -> None:
    starts, counts, number = numbered_runs(np.array([7, 7, 3, 9, 9, 9]), NUMPY)
    assert starts.tolist() == [0, 2, 3]
    assert counts.tolist() == [2, 1, 3]
    assert number.tolist() == [0, 0, 1, 2, 2, 2]
    assert number.dtype == np.uint8


def test_more_bits_than_words_hold_are_sorted_in_turns() -> None:
    """Columns of 64 bits that differ in their last bit only: no leading bits tell rows apart."""
    high = np.uint64(2**63)
    first = np.array([0, 1, 1, 0, 1, 1], np.uint64) + high * np.array([0, 1, 1, 1, 1, 1], np.uint64)
    second = np.array([0, 2, 1, 1, 1, 0], np.uint64) + high * np.array(
        [0, 1, 1, 1, 1, 1], np.uint64
    )
    assert lexicographic_order([first, second], np).tolist() == [0, 3, 5, 2, 4, 1]


@given(
    st.integers(1, 40).flatmap(
        lambda count: st.lists(
            st.sampled_from([1, 2, 2**20, 2**40, 2**64 - 1]).flatmap(
                lambda top: hnp.arrays(np.uint64, count, elements=st.integers(0, top))
            ),
            min_size=1,
            max_size=5,
        )
    )
)
def test_the_order_is_lexicographic_and_stable(columns: list[NDArray[np.uint64]]) -> None:
    expected = sorted(range(columns[0].size), key=lambda row: [int(c[row]) for c in columns])
    assert lexicographic_order(columns, np).tolist() == expected
