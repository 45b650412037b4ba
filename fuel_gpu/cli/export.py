"""``fuel-gpu export``: hand a table's figures to something else."""

from pathlib import Path
from typing import Annotated

import typer

from fuel_gpu.errors import UsageError


def export(
    format: Annotated[
        str,
        typer.Option(
            "--format", help="json, csv, markdown, fuel-bandwidth, starpu (two files), png or svg."
        ),
    ] = "json",
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout",
            help="matrix (pairs of devices) or long (one figure a row), for json, csv, markdown.",
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            "--size",
            help="Whose bandwidths a matrix holds: 32MiB by default, in fuel-bandwidth 16MiB.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write to this file (starpu: folder), not to standard output."),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option("--table", help="A calibration table; this machine's own by default."),
    ] = None,
) -> None:
    """Write the table's transfers and rates in a format that another program or a person reads."""
    import sys

    from fuel_gpu.calibration.export import export_table
    from fuel_gpu.calibration.table_file import default_table_path, load_table
    from fuel_gpu.cli.output import refuse_overwriting, write_folder, write_stdout
    from fuel_gpu.files import write_output
    from fuel_gpu.sizes import parse_bytes

    refuse_overwriting(out, table or default_table_path())
    size_bytes = None if size is None else parse_bytes(size)
    if format == "starpu" and out is None:
        raise UsageError("starpu is two files: name a folder for them with --out")
    if format == "png" and out is None and sys.stdout.isatty():
        raise UsageError("png is no text for a terminal: name a file with --out")
    exported = export_table(load_table(table), format, layout=layout, size_bytes=size_bytes)
    for note in exported.notes:
        print(f"note: {note}", file=sys.stderr)
    contents = list(exported.files.values())
    if out is None:
        write_stdout(contents[0])
    elif len(contents) == 1:
        write_output(out, contents[0])
    else:
        for written in write_folder(out, exported.files):
            print(f"written: {written}", file=sys.stderr)
