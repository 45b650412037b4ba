"""How figures and names look on a terminal, and a console for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

_PIPED_WIDTH: Final = 200
_LEAST_WIDTH: Final = 96
"""Below this a table loses columns; a narrower terminal wraps its lines instead."""


def console(*, stderr: bool = False) -> "Console":
    """Give a console; where no terminal limits it, it is wide enough for every table."""
    from rich.console import Console

    terminal = Console(stderr=stderr, highlight=False, markup=False)
    if not terminal.is_terminal:
        return Console(stderr=stderr, highlight=False, markup=False, width=_PIPED_WIDTH)
    if terminal.width < _LEAST_WIDTH:
        return Console(stderr=stderr, highlight=False, markup=False, width=_LEAST_WIDTH)
    return terminal


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal's standard error what takes its time."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield
        return
    with screen.status(what):
        yield


def printable(name: str) -> str:
    """Write control characters of a name as escapes, so that they do nothing to a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def plural(count: int, one: str, many: str = "") -> str:
    """Write a count and what it counts; `many` where that is not `one` with an s."""
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def format_ns(ns: int | None) -> str:
    """Write nanoseconds with three digits and a unit that fits; a dash for None."""
    if ns is None:
        return "-"
    for limit, unit in ((10**3, "ns"), (10**6, "us"), (10**9, "ms")):
        if abs(ns) < limit:
            return _three_digits(ns / (limit / 10**3), unit)
    seconds = ns / 10**9
    for limit_s, unit_s, unit in ((120, 1, "s"), (7_200, 60, "min"), (172_800, 3_600, "h")):
        if abs(seconds) < limit_s:
            return _three_digits(seconds / unit_s, unit)
    return f"{seconds / 86_400:,.0f} days"


def format_bytes(size: int) -> str:
    """Write bytes with three digits and a binary unit that fits."""
    amount, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return _three_digits(amount, unit)


def format_flops(flops: int) -> str:
    """Write a number of operations with three digits and a decimal prefix."""
    amount, unit = float(flops), "FLOP"
    for larger in ("kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return _three_digits(amount, unit)


def _three_digits(amount: float, unit: str) -> str:
    if amount == int(amount) and abs(amount) < 1000:
        return f"{int(amount)} {unit}"
    decimals = 2 if abs(amount) < 10 else 1 if abs(amount) < 100 else 0
    return f"{amount:.{decimals}f} {unit}"
