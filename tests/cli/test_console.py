"""Figures have three digits and a unit that fits; names do nothing to a terminal."""

import pytest

from fuel_gpu.cli.console import format_bytes, format_flops, format_ns, plural, printable


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "-"),
        (0, "0 ns"),
        (999, "999 ns"),
        (1_500, "1.50 us"),
        (25_430_000, "25.4 ms"),
        (1_999_000_000, "2.00 s"),
        (90_000_000_000, "90 s"),
        (150 * 10**9, "2.50 min"),
        (3 * 3600 * 10**9, "3 h"),
        (2**64 - 1, "213,504 days"),
    ],
)
def test_times(ns: int | None, text: str) -> None:
    assert format_ns(ns) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.50 KiB"), (2**30, "1 GiB"), (2**63, "8 EiB")],
)
def test_sizes(size: int, text: str) -> None:
    assert format_bytes(size) == text


def test_operations() -> None:
    assert format_flops(8_178_000_000) == "8.18 GFLOP"


def test_control_characters_are_written_as_escapes() -> None:
    assert printable("conv\x1b[31m\n1") == "conv\\x1b[31m\\n1"
    assert printable("größe/1=2") == "größe/1=2"


def test_plurals() -> None:
    assert (plural(1, "node"), plural(0, "node")) == ("1 node", "0 nodes")
    assert (plural(1, "copy", "copies"), plural(2, "copy", "copies")) == ("1 copy", "2 copies")
