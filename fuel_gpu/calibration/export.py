"""Exports: a table in the formats that other programs and people read, as the texts of files."""

import os
import socket
from dataclasses import dataclass
from typing import Final

from fuel_gpu.calibration.export_csv import long_csv, matrix_csv
from fuel_gpu.calibration.export_fuel_bandwidth import FUEL_SIZE_BYTES, fuel_bandwidth
from fuel_gpu.calibration.export_json import long_json, matrix_json
from fuel_gpu.calibration.export_markdown import full_markdown, long_markdown, matrix_markdown
from fuel_gpu.calibration.export_matrix import MATRIX_SIZE_BYTES
from fuel_gpu.calibration.export_starpu import starpu_files
from fuel_gpu.calibration.plot import plot_curves
from fuel_gpu.calibration.table import Table
from fuel_gpu.calibration.table_text import encode_table
from fuel_gpu.errors import UsageError

FORMATS: Final = ("json", "csv", "markdown", "fuel-bandwidth", "starpu", "png", "svg")
LAYOUTS: Final = ("matrix", "long")
_LAID_OUT: Final = ("json", "csv", "markdown")


@dataclass(frozen=True, slots=True)
class Exported:
    """What to write.

    Parameters
    ----------
    files
        Contents by file name: one, or the several that belong together in a folder.
    notes
        What the format cannot say of the table, or leaves out.
    """

    files: dict[str, bytes]
    notes: tuple[str, ...] = ()


def export_table(
    table: Table, format: str, *, layout: str | None = None, size_bytes: int | None = None
) -> Exported:
    """Give a table in another format.

    Parameters
    ----------
    table
        What to export.
    format
        One of `FORMATS`.
    layout
        ``matrix`` or ``long``, for JSON, CSV and Markdown. Without it JSON is the table's own file,
        CSV is long, and Markdown is both.
    size_bytes
        The copies whose bandwidth a matrix holds; 32 MiB, and in ``fuel-bandwidth`` 16 MiB, if
        None.

    Raises
    ------
    UsageError
        If the format or the layout is unknown, or one that excludes the other.
    FuelGpuError
        If a plot is asked for and matplotlib is not installed, or the table has no copies.
    """
    _check(format, layout, size_bytes)
    size = size_bytes or MATRIX_SIZE_BYTES
    match format, layout:
        case "json", None:
            text = encode_table(table).decode()
        case "json", "long":
            text = long_json(table)
        case "json", _:
            text = matrix_json(table, size)
        case "csv", "matrix":
            text = matrix_csv(table, size)
        case "csv", _:
            text = long_csv(table)
        case "markdown", None:
            text = full_markdown(table, size)
        case "markdown", "long":
            text = long_markdown(table)
        case "markdown", _:
            text = matrix_markdown(table, size)
        case "fuel-bandwidth", _:
            text, notes = fuel_bandwidth(table, size_bytes or FUEL_SIZE_BYTES)
            return Exported({"bandwidth.json": text.encode()}, tuple(notes))
        case "starpu", _:
            texts, notes = starpu_files(table, _starpu_host())
            return Exported({name: t.encode() for name, t in texts.items()}, tuple(notes))
        case _:
            return Exported({f"curves.{format}": plot_curves(table, format)})
    return Exported({f"table.{format}": text.encode()})


def _check(format: str, layout: str | None, size_bytes: int | None) -> None:
    if format not in FORMATS:
        raise UsageError(f"{format!r} is no export format; there are {', '.join(FORMATS)}")
    if layout is not None and layout not in LAYOUTS:
        raise UsageError(f"{layout!r} is no layout; there are {', '.join(LAYOUTS)}")
    if layout is not None and format not in _LAID_OUT:
        raise UsageError(f"{format} has one layout only: leave out the layout {layout!r}")
    sized = layout == "matrix" or (format == "markdown" and layout is None)
    if size_bytes is not None and not sized and format != "fuel-bandwidth":
        raise UsageError(
            "a size chooses the bandwidths of a matrix and of fuel-bandwidth; "
            "this export has none to choose"
        )


def _starpu_host() -> str:
    """Give the name that StarPU on this machine looks for."""
    return os.environ.get("STARPU_HOSTNAME") or socket.gethostname().partition(".")[0]
