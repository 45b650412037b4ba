"""Sizes as people read and write them."""

import re
from typing import Final

from fuel_gpu.errors import UsageError

_UNITS: Final = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12} | {
    f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", start=1)
}
_SIZE = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[A-Za-z]*)")


def size_text(nbytes: int) -> str:
    """Write a size in its largest whole binary unit: ``4 KiB``, ``1.5 MiB``."""
    value, unit = float(nbytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.4g} {unit}"


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
