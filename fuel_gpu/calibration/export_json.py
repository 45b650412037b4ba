"""JSON exports: matrices, or a list of all figures; nothing that is not known is a number."""

import dataclasses
from typing import Any

import msgspec

from fuel_gpu.calibration.export_figures import figures
from fuel_gpu.calibration.export_matrix import Cell, Matrix, matrices
from fuel_gpu.calibration.table import Table


def long_json(table: Table) -> str:
    """Give every figure as an object, with its unit, interval and provenance."""
    found = [dataclasses.asdict(figure) for figure in figures(table)]
    return _document(table, {"figures": found})


def matrix_json(table: Table, size_bytes: int) -> str:
    """Give bandwidths and latencies as lists of rows, null where nothing is known of a pair."""
    found = [_matrix(matrix) for matrix in matrices(table, size_bytes)]
    return _document(table, {"matrices": found})


def _matrix(matrix: Matrix) -> dict[str, Any]:
    places = range(len(matrix.devices))
    bandwidths = [[matrix.bytes_per_ns(row, column) for column in places] for row in places]
    return {
        "memory": matrix.memory,
        "devices": matrix.devices,
        "bandwidth_bytes": matrix.bandwidth_bytes,
        "bandwidth_bytes_per_ns": bandwidths,
        "bandwidth_provenance": _provenances(matrix.bandwidth_cells),
        "latency_bytes": matrix.latency_bytes,
        "latency_ns": [[cell and cell.ns for cell in row] for row in matrix.latency_cells],
        "latency_provenance": _provenances(matrix.latency_cells),
    }


def _provenances(cells: tuple[tuple[Cell | None, ...], ...]) -> list[list[str | None]]:
    return [[None if cell is None else str(cell) for cell in row] for row in cells]


def _document(table: Table, content: dict[str, Any]) -> str:
    head = {
        "machine": table.machine,
        "created": table.created,
        "notes": table.notes,
        "devices": [{"id": d.id, "name": d.name, "driver": d.driver} for d in table.devices],
    }
    text = msgspec.json.encode({**head, **content})
    return msgspec.json.format(text, indent=1).decode() + "\n"
