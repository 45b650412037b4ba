"""``fuel-gpu export``: hand a table's figures to something else."""

from pathlib import Path
from typing import Annotated

import typer


def export(
    format: Annotated[
        str, typer.Option("--format", help="json, csv (one figure a row) or markdown.")
    ] = "json",
    out: Annotated[
        Path | None, typer.Option("--out", help="Write to this file, not to standard output.")
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option("--table", help="A calibration table; this machine's own by default."),
    ] = None,
) -> None:
    """Write the table's transfers and rates as JSON, CSV or Markdown."""
    from fuel_gpu.calibration.export import export_table
    from fuel_gpu.calibration.table_file import load_table
    from fuel_gpu.files import write_output

    text = export_table(load_table(table), format)
    if out is None:
        print(text, end="")
    else:
        write_output(out, text.encode())
