"""CSV exports: a figure a row, or a row of a matrix a row."""

import csv
import dataclasses
import io
from collections.abc import Iterable, Iterator

from fuel_gpu.calibration.export_figures import Figure, figures
from fuel_gpu.calibration.export_matrix import Matrix, matrices
from fuel_gpu.calibration.table import Table


def long_csv(table: Table) -> str:
    """Give one figure a row; a cell is empty where its column has no meaning."""
    heads = [field.name for field in dataclasses.fields(Figure)]
    return _text([heads, *(dataclasses.astuple(figure) for figure in figures(table))])


def matrix_csv(table: Table, size_bytes: int) -> str:
    """Give the bandwidths, the latencies, and how each was obtained: a row a source.

    The first columns say which matrix the row belongs to, so that the file stays one table.
    """
    heads = ["memory", "quantity", "bytes", "from", *(device.id for device in table.devices)]
    return _text([heads, *(row for m in matrices(table, size_bytes) for row in _rows(m))])


def _rows(matrix: Matrix) -> Iterator[list[object]]:
    at, latency_at = matrix.bandwidth_bytes, matrix.latency_bytes
    for row, src in enumerate(matrix.devices):
        values = [matrix.bytes_per_ns(row, column) for column in range(len(matrix.devices))]
        yield [matrix.memory, "bandwidth_bytes_per_ns", at, src, *values]
    for src, cells in zip(matrix.devices, matrix.bandwidth_cells, strict=True):
        yield [matrix.memory, "bandwidth_provenance", at, src, *cells]
    for src, cells in zip(matrix.devices, matrix.latency_cells, strict=True):
        yield [matrix.memory, "latency_ns", latency_at, src, *(cell and cell.ns for cell in cells)]
    for src, cells in zip(matrix.devices, matrix.latency_cells, strict=True):
        yield [matrix.memory, "latency_provenance", latency_at, src, *cells]


def _text(rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
