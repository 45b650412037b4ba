"""Sizes are read with decimal and binary units, and written in the largest binary one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu.errors import UsageError
from fuel_gpu.sizes import parse_bytes, size_text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("6GiB", 6 * 2**30),
        ("6 gib", 6 * 2**30),
        ("1.5KiB", 1536),
        ("500 MB", 500_000_000),
        ("2TB", 2 * 10**12),
    ],
)
def test_a_size_is_a_number_and_a_unit(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "0", "0.1", "8 gigs", "1e9", "8GiB/s"])
def test_what_is_no_size_is_named(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size: write a number and a unit"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (4096, "4 KiB"), (3 << 19, "1.5 MiB"), (2**50, "1024 TiB")],
)
def test_a_size_is_written_in_its_largest_unit(size: int, text: str) -> None:
    assert size_text(size) == text


@given(st.integers(1, 2**53))
def test_what_is_written_is_read_back_to_four_digits(size: int) -> None:
    # Half of the fourth digit, and what is left of a byte.
    assert abs(parse_bytes(size_text(size)) - size) <= 5e-4 * size + 1
