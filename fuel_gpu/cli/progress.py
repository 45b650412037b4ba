"""Shows what is being measured: a bar on a terminal, a line a device elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fuel_gpu.calibration.progress import Event


@contextmanager
def shown_progress() -> Iterator[Callable[["Event"], None]]:
    """Give a function that shows a calibration's events on standard error."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from fuel_gpu.calibration.progress import (
        DeviceEnded,
        DeviceStarted,
        Interrupted,
        Measuring,
        RoundStarted,
    )
    from fuel_gpu.cli.console import console

    screen = console(stderr=True)
    bar = Progress(
        TextColumn("{task.fields[device]}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=screen,
        transient=True,
        disable=not screen.is_terminal,
    )
    task = bar.add_task("", total=1.0, device="")

    def show(event: "Event") -> None:
        match event:
            case DeviceStarted():
                screen.print(
                    f"measuring {event.device} ({event.name}), {event.index} of {event.count}"
                )
            case RoundStarted():
                screen.print(f"measuring again in fresh processes, {event.index} of {event.count}")
            case Measuring():
                bar.update(task, device=event.device, completed=event.spent, description=event.what)
            case DeviceEnded():
                for note in event.notes:
                    screen.print(f"  {event.device}: {note}")
            case Interrupted():
                screen.print(
                    f"interrupted while measuring {event.device}: what is finished is kept, "
                    "the rest was not measured"
                )

    with bar:
        yield show
