"""``fuel-gpu doctor``: what is wrong with this machine's devices, and what mends it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fuel_gpu.errors import TableError

if TYPE_CHECKING:
    from rich.table import Table as Grid

    from fuel_gpu.calibration.link_health import LinkHealth
    from fuel_gpu.calibration.table import Table
    from fuel_gpu.probes.finding import Finding

_STYLES = {"problem": "bold red", "warning": "yellow", "note": "dim"}


def doctor(
    table: Annotated[
        Path | None,
        typer.Option("--table", help="Judge this table; by default this machine's own."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Say what is wrong with this machine's devices, links and table, and what mends it.

    Exit status 1 if there is a problem; warnings and notes leave it 0.
    """
    from fuel_gpu.calibration.link_findings import link_findings, peer_findings
    from fuel_gpu.calibration.link_health import link_health
    from fuel_gpu.calibration.table_health import table_findings
    from fuel_gpu.probes.diagnosis import diagnose
    from fuel_gpu.probes.finding import most_severe_first
    from fuel_gpu.probes.machine import probe
    from fuel_gpu.probes.surroundings import look_around

    report, around = probe(), look_around()
    measured, unreadable = _table(table)
    links = link_health(report, around, measured)
    findings = most_severe_first(
        [
            *diagnose(report, around),
            *link_findings(links),
            *peer_findings(measured),
            *(unreadable or table_findings(measured, report)),
        ]
    )
    if as_json:
        import msgspec

        document = {"findings": findings, "links": links}
        print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    else:
        _print(findings, links)
    if any(finding.severity == "problem" for finding in findings):
        raise typer.Exit(1)


def _table(path: Path | None) -> "tuple[Table | None, list[Finding]]":
    """Read the table; one that is damaged, or named and not there, is a problem of its own."""
    from fuel_gpu.calibration.table_file import default_table_path, load_table
    from fuel_gpu.probes.finding import Finding

    if path is None and not default_table_path().exists():
        return None, []
    try:
        return load_table(path), []
    except TableError as error:
        return None, [Finding(severity="problem", subject="table", what=str(error))]


def _print(findings: "list[Finding]", links: "list[LinkHealth]") -> None:
    from rich.padding import Padding
    from rich.text import Text

    from fuel_gpu.cli.console import console

    screen = console()
    if links:
        screen.print(_links(links))
    for finding in findings:
        screen.print(
            Text.assemble(
                (f"{finding.severity}  ", _STYLES[finding.severity]),
                (finding.subject, "bold"),
                f": {finding.what}",
            )
        )
        if finding.remedy:
            remedy = Text(f"to mend it: {finding.remedy}", style="dim")
            screen.print(Padding(remedy, (0, 0, 0, 4), expand=False))
    counts = [
        f"{count} {severity}{'' if count == 1 else 's'}"
        for severity in _STYLES
        if (count := sum(finding.severity == severity for finding in findings))
    ]
    screen.print(", ".join(counts) or "nothing is wrong")


def _links(links: "list[LinkHealth]") -> "Grid":
    from rich import box
    from rich.table import Table as Grid

    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("device", "link now", "under load", "at best"):
        grid.add_column(head, no_wrap=True)
    for head in ("carries GB/s", "to the card", "from the card"):
        grid.add_column(head, justify="right", no_wrap=True)
    for link in links:
        for hop in link.hops[:-1]:
            grid.add_row("", str(hop.now), "", str(hop.best), f"{hop.usable.bytes_per_ns:.3g}")
        last = link.hops[-1]
        grid.add_row(
            link.device,
            str(last.now),
            "-" if link.loaded is None else str(link.loaded),
            str(last.best),
            f"{last.usable.bytes_per_ns:.3g}",
            *(_carried(link, to_device=way) for way in (True, False)),
        )
    return grid


def _carried(link: "LinkHealth", *, to_device: bool) -> str:
    one = link.best(to_device=to_device)
    if one is None:
        return "not measured"
    share = one.bytes_per_ns / link.gives_bytes_per_ns
    return f"{one.bytes_per_ns:.3g} ({share:.0%}, {one.memory})"
