"""How figures look on a terminal, and a console for them."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

_PIPED_WIDTH: Final = 200


def console(*, stderr: bool = False) -> "Console":
    """Give a console; where no terminal limits it, it is wide enough for every table."""
    from rich.console import Console

    terminal = Console(stderr=stderr, highlight=False, markup=False)
    if terminal.is_terminal:
        return terminal
    return Console(stderr=stderr, highlight=False, markup=False, width=_PIPED_WIDTH)


def format_ns(ns: int | None) -> str:
    """Write nanoseconds with three digits and a unit that fits; a dash for None."""
    if ns is None:
        return "-"
    for limit, unit in ((10**3, "ns"), (10**6, "us"), (10**9, "ms")):
        if abs(ns) < limit:
            return _three_digits(ns / (limit / 10**3), unit)
    return _three_digits(ns / 10**9, "s")


def format_bytes(size: int) -> str:
    """Write bytes with three digits and a binary unit that fits."""
    amount, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
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
