"""``fuel-gpu diff``: what changed between two tables by more than its noise; for use in CI."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fuel_gpu.errors import TableError, UsageError

if TYPE_CHECKING:
    from fuel_gpu.calibration.table import Table


def diff(
    old: Annotated[Path, typer.Argument(help="The earlier table.", show_default=False)],
    new: Annotated[Path, typer.Argument(help="The later table.", show_default=False)],
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="PERCENT",
            help="The least change that counts, beyond the figures' noise; 10 by default.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the changes as JSON.")] = False,
) -> None:
    """Show what changed between two tables by more than its noise, the largest change first.

    Exit status: 1 if something got slower, 0 if nothing did, 2 if the tables cannot be compared.
    """
    import msgspec

    from fuel_gpu.calibration.compare import DEFAULT_THRESHOLD, compare
    from fuel_gpu.cli.diff_view import print_diff
    from fuel_gpu.cli.output import write_stdout

    if threshold is not None and not 0 <= threshold < math.inf:
        raise UsageError(f"--threshold {threshold:g}: a change in percent is 0 or more")
    tables = _load(old), _load(new)
    share = DEFAULT_THRESHOLD if threshold is None else threshold / 100
    comparison = compare(*tables, threshold=share)
    if as_json:
        write_stdout(msgspec.json.format(msgspec.json.encode(comparison), indent=1) + b"\n")
    else:
        print_diff(comparison, *tables)
    if comparison.got_slower:
        raise typer.Exit(1)


def _load(path: Path) -> "Table":
    """Read a table; as in diff(1), one that cannot be read is no difference but status 2."""
    from fuel_gpu.calibration.table_file import load_table

    try:
        return load_table(path)
    except TableError as error:
        raise UsageError(str(error)) from None
