"""Markdown exports: matrices and tables to read, or to paste into an issue."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fuel_gpu.calibration.export_figures import Figure, figures
from fuel_gpu.calibration.export_matrix import Cell, Matrix, matrices
from fuel_gpu.calibration.table import Table
from fuel_gpu.sizes import size_text

_COPY_HEADS: Final = (
    *("from", "to", "memory", "size", "figure", "95 % interval", "runs", "GB/s", "provenance"),
    "flags",
)
_RATE_HEADS: Final = (
    *("device", "dtype", "what", "figure", "95 % interval", "runs", "kernel", "provenance"),
    "flags",
)


def matrix_markdown(table: Table, size_bytes: int) -> str:
    """Give the matrices under a heading that names the machine."""
    return _document([*_head(table), *_matrices(table, size_bytes)])


def long_markdown(table: Table) -> str:
    """Give a row a figure under a heading that names the machine."""
    return _document([*_head(table), *_long(table)])


def full_markdown(table: Table, size_bytes: int) -> str:
    """Give the matrices and then a row a figure."""
    return _document([*_head(table), *_matrices(table, size_bytes), *_long(table)])


def _head(table: Table) -> Iterator[str]:
    yield f"# {_plain(table.machine.cpu or 'Calibration table')}"
    yield f"Made {table.created}."
    if table.notes:
        yield "\n".join(f"- {_plain(note)}" for note in table.notes)
    yield "## Devices"
    yield _table(
        ("device", "name", "memory", "driver"),
        ((d.id, d.name, size_text(d.memory_bytes), d.driver) for d in table.devices),
    )


def _matrices(table: Table, size_bytes: int) -> Iterator[str]:
    found = matrices(table, size_bytes)
    for matrix in found:
        of = f", {matrix.memory} host memory" if matrix.memory else ""
        yield f"## Bandwidth{of}: GB/s, copies of {size_text(matrix.bandwidth_bytes)}"
        yield _grid(matrix, _bandwidth_texts(matrix))
        yield f"## Latency{of}: microseconds, copies of {size_text(matrix.latency_bytes)}"
        yield _grid(matrix, _latency_texts(matrix))
    if found:
        yield (
            "A number alone was measured, for exactly this size; any other has beside it how it "
            "was obtained."
        )


def _bandwidth_texts(matrix: Matrix) -> Iterator[list[str]]:
    for row, cells in enumerate(matrix.bandwidth_cells):
        values = [matrix.bytes_per_ns(row, column) for column in range(len(cells))]
        yield [_text(value, cell) for value, cell in zip(values, cells, strict=True)]


def _latency_texts(matrix: Matrix) -> Iterator[list[str]]:
    for cells in matrix.latency_cells:
        yield [_text(None if cell is None else cell.ns / 1000, cell) for cell in cells]


def _text(value: float | None, cell: Cell | None) -> str:
    if value is None or cell is None:
        return ""
    return f"{value:.3g}" if cell.is_measured else f"{value:.3g} ({cell})"


def _grid(matrix: Matrix, texts: Iterable[list[str]]) -> str:
    rows = ((src, *row) for src, row in zip(matrix.devices, texts, strict=True))
    return _table(("from \\ to", *matrix.devices), rows)


def _long(table: Table) -> Iterator[str]:
    found = list(figures(table))
    copies, rates = [f for f in found if f.dst], [f for f in found if not f.dst]
    if copies:
        yield "## Copies"
        yield _table(_COPY_HEADS, map(_copy_row, copies))
    if rates:
        yield "## Rates"
        yield _table(_RATE_HEADS, map(_rate_row, rates))


def _copy_row(figure: Figure) -> Sequence[str]:
    size = "" if figure.bytes is None else size_text(figure.bytes)
    bandwidth = "" if figure.bytes is None else f"{figure.bytes / figure.value:.3g}"
    return (
        *(figure.src, figure.dst, figure.memory, size or figure.kind, *_value_texts(figure)),
        *(bandwidth, figure.provenance, figure.flags),
    )


def _rate_row(figure: Figure) -> Sequence[str]:
    return (
        *(figure.src, figure.dtype, figure.kind, *_value_texts(figure)),
        *(figure.kernel, figure.provenance, figure.flags),
    )


def _value_texts(figure: Figure) -> Sequence[str]:
    """Write the figure with its unit, its interval, and how many runs they rest on."""
    form = ",.0f" if figure.unit == "ns" else ",.4g"
    value = f"{figure.value:{form}} {figure.unit}"
    if figure.low is None or figure.high is None:
        return value, "", ""
    return value, f"{figure.low:{form}} .. {figure.high:{form}}", str(figure.samples)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_plain, line))} |" for line in lines)


def _plain(text: str) -> str:
    """Keep a name on its line and in its cell, whatever a driver put into it."""
    return " ".join(text.split()).replace("|", "\\|")


def _document(parts: Iterable[str]) -> str:
    return "\n\n".join(parts) + "\n"
