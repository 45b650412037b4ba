"""How figures look on a terminal, how sizes are read, and a console for both."""

import re
from typing import TYPE_CHECKING, Final

from fuel_gpu.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

_PIPED_WIDTH: Final = 200
_UNITS: Final = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", start=1)
}
_SIZE = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[A-Za-z]*)")


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


def parse_bytes(text: str) -> int:
    """Read a size such as ``6GiB``, ``500 MB`` or ``4096``.

    Raises
    ------
    UsageError
        If it is not a positive number with a known unit.
    """
    match = _SIZE.fullmatch(text.strip())
    units = {name.lower(): factor for name, factor in _UNITS.items()}
    factor = units.get(match["unit"].lower()) if match else None
    if match is None or factor is None or (size := int(float(match["number"]) * factor)) <= 0:
        raise UsageError(f"{text!r} is not a size: write a number and a unit, such as 6GiB")
    return size


def _three_digits(amount: float, unit: str) -> str:
    if amount == int(amount) and abs(amount) < 1000:
        return f"{int(amount)} {unit}"
    decimals = 2 if abs(amount) < 10 else 1 if abs(amount) < 100 else 0
    return f"{amount:.{decimals}f} {unit}"
