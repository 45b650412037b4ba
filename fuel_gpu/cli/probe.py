"""``fuel-gpu probe``: the cards found and their doors, then what is missing and what mends it."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from fuel_gpu.probes.report import DeviceInfo, ProbeReport

_PIPED_WIDTH = 200
"""Columns when nobody's terminal limits them."""


def probe(
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    backend: Annotated[
        list[str] | None,
        typer.Option("--backend", help="Look for this backend only; may be repeated."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", help="Seconds that each backend may take.")
    ] = None,
) -> None:
    """Show the devices found, and why the missing ones are missing."""
    import msgspec

    from fuel_gpu.probes import machine

    report = machine.probe(
        backend, timeout_s=machine.DEFAULT_TIMEOUT_S if timeout is None else timeout
    )
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        _print(report)


def _print(report: "ProbeReport") -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PIPED_WIDTH)
    console.print(_device_table(report))
    if report.unavailable:
        console.print(Text("Unavailable", style="bold"))
    for line in report.unavailable:
        reason = Text.assemble((line.backend, "bold"), f": {line.reason}")
        console.print(Padding(reason, (0, 0, 0, 2), expand=False))
        if line.remedy:
            console.print(
                Padding(Text(f"to mend it: {line.remedy}", style="dim"), (0, 0, 0, 6), expand=False)
            )


def _device_table(report: "ProbeReport") -> "Table":
    from rich import box
    from rich.table import Table

    from fuel_gpu.probes.cards import cards

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Card", overflow="fold")
    table.add_column("Memory", justify="right", no_wrap=True)
    table.add_column("Device", no_wrap=True, style="bold")
    table.add_column("Driver", overflow="fold")
    table.add_column("Computes", overflow="fold")
    table.add_column("Notes", overflow="fold")
    for card in cards(report.devices):
        for position, door in enumerate(card.doors):
            first = position == 0
            table.add_row(
                card.name if first else "",
                f"{card.memory_bytes / 2**30:.1f} GiB" if first else "",
                door.id,
                door.driver,
                " ".join(door.dtypes),
                _notes(door),
            )
    return table


def _notes(device: "DeviceInfo") -> str:
    notes = []
    if device.simulated:
        notes.append("simulator, never planned on")
    if device.memory_is_lower_bound:
        notes.append("memory unknown, at least this")
    if "physical_cores" in device.details:
        notes.append(f"{device.details['physical_cores']} cores")
    if "link" in device.details:
        notes.append(device.details["link"])
    return "; ".join(notes)
