"""Codes keep the order of values, and lexicographic orders are stable."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from fuel_gpu.arrays.ordering import dense_ranks, lexicographic_order, ordered_codes
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
