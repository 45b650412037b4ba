"""A comparison of two tables in a few lines: what it is about, then the figures by size."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fuel_gpu.cli.console import console, format_ns
from fuel_gpu.sizes import size_text

if TYPE_CHECKING:
    from fuel_gpu.calibration.compare import Change, Comparison, Figure
    from fuel_gpu.calibration.table import Table


def print_diff(comparison: "Comparison", old: "Table", new: "Table") -> None:
    """Print the changes; a pair's copies in one line, which shows the size that changed most."""
    from rich import box
    from rich.table import Table as Grid

    screen = console()
    for change in comparison.changes:
        if change.old is None:
            screen.print(_part_text(change))
    figures = [change for change in comparison.changes if change.old is not None]
    if figures:
        grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
        grid.add_column("change", no_wrap=True)
        grid.add_column("what", overflow="fold")
        for head in ("old", "new"):
            grid.add_column(head, overflow="fold")
        for worst, others in _grouped(figures):
            grid.add_row(*_row(worst, others), style="red" if worst.kind == "slower" else None)
        screen.print(grid)
        for name, table in (("old", old), ("new", new)):
            for note in table.notes:
                screen.print(f"note in the {name} table: {note}")
    slower = sum(change.kind == "slower" for change in figures)
    screen.print(
        f"{comparison.compared} figures compared; beyond their noise and "
        f"{comparison.threshold * 100:.3g} %: {slower} slower, {len(figures) - slower} faster"
    )


def _grouped(figures: "list[Change]") -> "Iterator[tuple[Change, int]]":
    """Give the largest change of each pair's copies, or of a rate, and how many it stands for."""
    groups: dict[tuple[str, ...], list[Change]] = {}
    for change in figures:  # the largest in front
        key = (change.kind, change.quantity, change.src, change.dst, change.memory, change.dtype)
        groups.setdefault(key, []).append(change)
    for group in groups.values():
        yield group[0], len(group)


def _row(change: "Change", count: int) -> "tuple[str, str, str, str]":
    factor = change.factor if change.kind == "slower" else 1 / change.factor
    what = f"{change.quantity} {_place_text(change)}"
    if change.bytes is not None:
        what += f", {size_text(change.bytes)}"
    if count > 1:
        what += f", and {count - 1} more size{'' if count == 2 else 's'}"
    return (
        f"{factor:.2f}x {change.kind}",
        *(what, _figure_text(change.old, change.unit), _figure_text(change.new, change.unit)),
    )


def _part_text(change: "Change") -> str:
    what = "" if change.quantity == "device" else f"{change.quantity} "
    text = f"{what}{_place_text(change)} {change.kind}"
    if change.kind == "changed":
        place = f"{change.src}: " if change.src else ""
        return (
            f"{place}other {change.quantity}: {change.old_text or 'none'} before, "
            f"{change.new_text or 'none'} now"
        )
    name = change.old_text or change.new_text
    return f"{text} ({name})" if name else text


def _place_text(change: "Change") -> str:
    place = f"{change.src} to {change.dst}" if change.dst else change.src
    return ", ".join(part for part in (place, change.memory, change.dtype) if part)


def _figure_text(figure: "Figure | None", unit: str) -> str:
    """Write a figure with its noise; a byte a nanosecond is a GB/s, a FLOP a GFLOP/s."""
    if figure is None:
        return ""
    if unit == "ns":
        value, low, high = (format_ns(round(ns)) for ns in (figure.value, figure.low, figure.high))
    else:
        per_s = {"FLOP/ns": "GFLOP/s", "byte/ns": "GB/s"}[unit]
        value = f"{figure.value:.4g} {per_s}"
        low, high = f"{figure.low:.4g}", f"{figure.high:.4g}"
    noise = f" ({low} .. {high})" if figure.low < figure.high else ""
    return value + noise + ("" if figure.provenance == "measured" else f", {figure.provenance}")
