"""What becomes of the file that a calibration renews: gone on with, set aside, or refused."""

import itertools
from pathlib import Path

from fuel_gpu.calibration.staleness import other_machine
from fuel_gpu.calibration.table import Table
from fuel_gpu.calibration.table_file import read_text
from fuel_gpu.calibration.table_text import decode_table, was_a_table
from fuel_gpu.errors import TableError
from fuel_gpu.probes.report import ProbeReport

_LEFT = "it is left as it is: name another file with --table, or move it away"


def earlier_table(path: Path, report: ProbeReport, *, own: bool) -> tuple[Table | None, str]:
    """Read the table that is to be renewed.

    Parameters
    ----------
    path
        Its file, which may be missing or empty.
    own
        Whether it is this machine's own by its place, so that another machine's table there is one
        of an earlier day.

    Returns
    -------
    Table or None
        The table to go on with.
    str
        Why what is there cannot be gone on with and is to be set aside; empty if nothing is.

    Raises
    ------
    TableError
        If the file never was a table, or is another machine's.
    """
    try:
        text = read_text(path)
    except FileNotFoundError:
        return None, ""
    if not text.strip():
        return None, ""
    if not was_a_table(text):
        raise TableError(f"{path}: it is no calibration table; {_LEFT}")
    try:
        table = decode_table(text, name=str(path))
    except TableError as error:
        return None, str(error)
    if (other := other_machine(table, report)) is not None:
        if own:
            return None, f"{path}: another machine's: {other}"
        raise TableError(f"{path}: it is another machine's table: {other}; {_LEFT}")
    return table, ""


def set_aside(path: Path) -> Path:
    """Keep what lies at a path under a name of its own beside it, and give that.

    Raises
    ------
    TableError
        If it cannot be kept.
    """
    for number in itertools.count(1):
        aside = path.with_name(f"{path.name}.unusable{'' if number == 1 else f'-{number}'}")
        try:
            with aside.open("xb") as file:
                file.write(path.read_bytes())
        except FileExistsError:
            continue
        except OSError as error:
            raise TableError(
                f"{path}: cannot be replaced: what is there cannot be kept as {aside}: "
                f"{error.strerror or error}"
            ) from None
        return aside
    raise AssertionError  # itertools.count does not end


def new_figures(made: Table, earlier: Table | None) -> frozenset[str]:
    """Name the devices of which a table has figures that an earlier one has not."""
    rates = made.rates if earlier is None else [r for r in made.rates if r not in earlier.rates]
    copies = (
        made.transfers
        if earlier is None
        else [t for t in made.transfers if t not in earlier.transfers]
    )
    ends = {end for copy in copies for end in (copy.src, copy.dst)}
    hosts = {d.id for d in made.devices if d.device.is_host}
    return frozenset({rate.device for rate in rates} | (ends - hosts))
