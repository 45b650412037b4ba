"""Known answers: a right product is accepted in every dtype, a slightly wrong one is not."""

import numpy as np
import pytest

from fuel_gpu.calibration.backends.answers import (
    ProductCheck,
    change_words,
    number_words,
    padded,
    repeat,
    same_words,
)

N = 256


@pytest.mark.parametrize("dtype", ["float64", "float32", "tf32", "float16"])
def test_a_right_product_is_accepted(dtype: str) -> None:
    check = ProductCheck(N, dtype)
    a, b = check.operands()
    assert check.accepts((a.astype(np.float64) @ b.astype(np.float64)).astype(a.dtype))


@pytest.mark.parametrize(
    ("claimed", "kept_bits"), [("float64", 23), ("float32", 12), ("float32", 10)]
)
def test_factors_that_lose_bits_on_the_way_are_found_out(claimed: str, kept_bits: int) -> None:
    check = ProductCheck(N, claimed)
    a, b = (matrix.astype(np.float64) for matrix in check.operands())
    mantissa, exponent = np.frexp(a)
    narrow = np.ldexp(np.round(mantissa * 2**kept_bits) / 2**kept_bits, exponent)
    assert not check.accepts((narrow @ b).astype(claimed))


def test_the_sums_of_the_largest_products_are_exact() -> None:
    worst = 2000 * (1 + 2.0**-12)
    assert float(np.float32(worst)) == worst
    assert 2000 * (1 + 2.0**-40) - 2000 == 2000 * 2.0**-40


def test_factors_come_in_the_dtype_the_host_hands_over() -> None:
    assert ProductCheck(N, "tf32").operands()[0].dtype == np.float32
    assert ProductCheck(N, "bfloat16").operands()[1].dtype == np.float32
    assert ProductCheck(N, "int8").operands()[0].dtype == np.int8


def test_integers_must_be_exact() -> None:
    check = ProductCheck(N, "int8")
    a, b = (matrix.astype(np.int32) for matrix in check.operands())
    product = a @ b
    assert check.accepts(product)
    product[0, 5] += 1
    assert not check.accepts(product)


def test_one_wrong_row_is_noticed_among_those_checked() -> None:
    check = ProductCheck(N, "float32")
    a, b = check.operands()
    product = a @ b
    product[N - 1] = 0
    assert not check.accepts(product)


def test_the_product_of_swapped_factors_is_refused() -> None:
    check = ProductCheck(N, "float32")
    a, b = check.operands()
    assert not check.accepts(b @ a)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_a_number_is_refused(value: float) -> None:
    check = ProductCheck(N, "float32")
    a, b = check.operands()
    product = a @ b
    product[0, 0] = value
    assert not check.accepts(product)


def test_padding_keeps_the_matrix_and_adds_zeros() -> None:
    wide = padded(np.array([[1, 2], [3, 4]]), 4)
    assert wide.tolist() == [[1, 2, 0, 0], [3, 4, 0, 0]]


def test_changed_words_differ_from_each_other_and_from_before() -> None:
    buffer = np.zeros(64, dtype=np.uint8)
    number_words(buffer)
    before = buffer.copy()
    change_words(buffer[:32])
    words, old = buffer.view(np.uint64), before.view(np.uint64)
    assert len(set(words.tolist())) == len(words)
    assert (words[:4] != old[:4]).all()
    assert (words[4:] == old[4:]).all()


def test_numbers_go_on_over_blocks_and_a_change_anywhere_is_seen() -> None:
    words = np.zeros(200_000, dtype=np.uint64)  # four blocks
    number_words(words.view(np.uint8))
    assert np.array_equal(words, np.arange(200_000, dtype=np.uint64))
    twin = words.copy()
    assert same_words(words.view(np.uint8), twin.view(np.uint8))
    for place in (0, 65_535, 65_536, 199_999):
        twin[place] += np.uint64(1)
        assert not same_words(words.view(np.uint8), twin.view(np.uint8))
        twin[place] -= np.uint64(1)


def test_a_pattern_is_repeated_to_the_end() -> None:
    out = np.zeros(8, dtype=np.float16)
    repeat(np.array([1, 2, 3], dtype=np.float16), out)
    assert out.tolist() == [1, 2, 3, 1, 2, 3, 1, 2]
    short = np.zeros(2, dtype=np.float16)
    repeat(np.array([1, 2, 3], dtype=np.float16), short)
    assert short.tolist() == [1, 2]
