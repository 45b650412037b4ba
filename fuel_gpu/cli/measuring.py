"""Measures devices and keeps the table: what `calibrate` and `demo` share."""

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from fuel_gpu.errors import CalibrationError, TableError

if TYPE_CHECKING:
    from fuel_gpu.calibration.progress import DeviceEnded, Event
    from fuel_gpu.calibration.table import Table
    from fuel_gpu.device import Device
    from fuel_gpu.probes.report import ProbeReport


@dataclass(frozen=True, slots=True)
class Measured:
    """What became of measuring.

    Parameters
    ----------
    table
        What was saved.
    interrupted
        Whether it was stopped by Ctrl-C or a request to end.
    renewed
        Ids of the devices of which anything new was measured.
    stopped
        The devices whose measuring something stopped, with the notes that say what.
    """

    table: "Table"
    interrupted: bool
    renewed: frozenset[str]
    stopped: "tuple[DeviceEnded, ...]"


def measure_and_save(
    report: "ProbeReport", path: Path, *, full: bool, devices: "Sequence[Device] | None"
) -> Measured:
    """Measure, show what is being measured, and save the table at `path`.

    The file is found writable, and held, before anything is measured. Every figure is saved as
    soon as it is finished. What is not measured again stays as an earlier table there has it.

    Raises
    ------
    CalibrationError
        If nothing could be measured; the file is as it was.
    TableError
        If the file is to be left as it is (no table, or another machine's), is held by another
        process, or cannot be written.
    """
    import msgspec

    from fuel_gpu.calibration.calibrate import calibrate
    from fuel_gpu.calibration.progress import DeviceEnded, Interrupted
    from fuel_gpu.calibration.renewal import earlier_table, new_figures
    from fuel_gpu.calibration.table_file import default_table_path, hold_table
    from fuel_gpu.calibration.table_target import checked_target
    from fuel_gpu.cli.progress import shown_progress
    from fuel_gpu.cli.termination import termination_as_interrupt
    from fuel_gpu.planner.engine_crossover import measure_crossover

    own = path == default_table_path()
    checked_target(path)
    earlier_table(path, report, own=own)  # refused before a lock is left beside it
    interrupted = False
    stopped: list[DeviceEnded] = []
    with termination_as_interrupt(), hold_table(path) as save:
        earlier, doubt = earlier_table(path, report, own=own)
        saver = _Saver(path, save, earlier, doubt)
        with shown_progress() as show:

            def progress(event: "Event") -> None:
                nonlocal interrupted
                interrupted = interrupted or isinstance(event, Interrupted)
                if isinstance(event, DeviceEnded) and not event.whole:
                    stopped.append(event)
                show(event)

            made = calibrate(
                report,
                full=full,
                devices=devices,
                earlier=earlier,
                progress=progress,
                checkpoint=saver.checkpoint,
            )
        renewed = new_figures(made, earlier)
        if not renewed:
            before = earlier.notes if earlier else ()
            why = [note for note in made.notes if note not in before]
            raise CalibrationError(
                f"nothing was measured: {'; '.join(why) or 'no device was left to measure'}"
                + (f"; {path} is as it was" if path.exists() else "")
            )
        if not interrupted and any(device.backend == "cuda" for device in made.devices):
            try:
                made = msgspec.structs.replace(made, engine_crossover=measure_crossover())
            except KeyboardInterrupt:
                interrupted = True
        saver.finish(made)
    return Measured(made, interrupted, renewed, tuple(stopped))


class _Saver:
    """Saves the table as it grows.

    Parameters
    ----------
    doubt
        Why what lies at `path` cannot be gone on with, and is set aside before it is replaced.
    """

    def __init__(
        self, path: Path, save: "Callable[[Table], Path]", earlier: "Table | None", doubt: str
    ) -> None:
        self._path, self._save, self._earlier, self._doubt = path, save, earlier, doubt
        self._warned = False

    def checkpoint(self, unfinished: "Table") -> None:
        """Save what there is by now; that it fails is told once, and costs nothing else."""
        from fuel_gpu.calibration.renewal import new_figures

        if not new_figures(unfinished, self._earlier):
            return
        try:
            self._replace(unfinished)
        except TableError as error:
            if not self._warned:
                print(f"fuel-gpu: warning: measuring goes on, but {error}", file=sys.stderr)
            self._warned = True

    def finish(self, table: "Table") -> None:
        """Save the whole; where that fails, keep it among the system's temporary files."""
        try:
            self._replace(table)
        except TableError as error:
            _rescue(table, error)

    def _replace(self, table: "Table") -> None:
        from fuel_gpu.calibration.renewal import set_aside

        if self._doubt:
            aside = set_aside(self._path)
            print(
                "fuel-gpu: the earlier table cannot be used and is replaced; it is kept as "
                f"{aside}: {self._doubt}",
                file=sys.stderr,
            )
            self._doubt = ""
        self._save(table)


def _rescue(table: "Table", error: TableError) -> NoReturn:
    from fuel_gpu.calibration.table_text import encode_table

    text = encode_table(table)
    try:
        with tempfile.NamedTemporaryFile(
            prefix="fuel-gpu-table-", suffix=".json", delete=False
        ) as file:
            file.write(text)
    except OSError as second:
        raise TableError(
            f"{error}; nor could what was measured be kept in {tempfile.gettempdir()}: "
            f"{second.strerror or second}"
        ) from None
    raise TableError(f"{error}; what was measured is kept as {file.name}") from None
