"""Measures devices and keeps the table: what `calibrate` and `demo` share."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fuel_gpu.errors import CalibrationError, TableError

if TYPE_CHECKING:
    from fuel_gpu.calibration.progress import Event
    from fuel_gpu.calibration.table import Table
    from fuel_gpu.device import Device
    from fuel_gpu.probes.report import ProbeReport


def measure_and_save(
    report: "ProbeReport", path: Path, *, full: bool, devices: "Sequence[Device] | None"
) -> "tuple[Table, bool]":
    """Measure, show what is being measured, and save the table at `path`.

    Every device's figures are saved as soon as they are finished. What is not measured again
    stays as an earlier table there has it.

    Returns
    -------
    Table
        What was saved.
    bool
        Whether it was interrupted and is incomplete.

    Raises
    ------
    CalibrationError
        If nothing could be measured.
    TableError
        If the table cannot be written.
    """
    import msgspec

    from fuel_gpu.calibration.calibrate import calibrate
    from fuel_gpu.calibration.progress import Interrupted
    from fuel_gpu.calibration.table_file import save_table
    from fuel_gpu.cli.progress import shown_progress
    from fuel_gpu.planner.engine_crossover import measure_crossover

    interrupted = False
    with shown_progress() as show:

        def progress(event: "Event") -> None:
            nonlocal interrupted
            interrupted = interrupted or isinstance(event, Interrupted)
            show(event)

        made = calibrate(
            report,
            full=full,
            devices=devices,
            earlier=_earlier(path),
            progress=progress,
            checkpoint=lambda unfinished: _save(unfinished, path),
        )
    if not made.rates and not made.transfers:
        raise CalibrationError(
            f"nothing was measured: {'; '.join(made.notes) or 'no device was left to measure'}"
        )
    if not interrupted and any(device.backend == "cuda" for device in made.devices):
        made = msgspec.structs.replace(made, engine_crossover=measure_crossover())
    save_table(made, path)
    return made, interrupted


def _save(unfinished: "Table", path: Path) -> None:
    from fuel_gpu.calibration.table_file import save_table

    if unfinished.rates or unfinished.transfers:
        save_table(unfinished, path)


def _earlier(path: Path) -> "Table | None":
    """Read the table that is to be renewed, if there is a whole one; set a damaged one aside."""
    from fuel_gpu.calibration.table_file import load_table

    if not path.is_file():
        return None
    try:
        return load_table(path)
    except TableError as error:
        aside = path.with_name(f"{path.name}.unusable")
        shutil.copy2(path, aside)
        print(
            f"fuel-gpu: the earlier table cannot be used and is replaced; it is kept as {aside}: "
            f"{error}",
            file=sys.stderr,
        )
        return None
