"""What is wrong with a machine's table: missing, stale, or measured under bad conditions."""

import re
from collections.abc import Iterator
from typing import Final

from fuel_gpu.calibration.staleness import stale
from fuel_gpu.calibration.table import INCOMPLETE, Conditions, Table
from fuel_gpu.device import HOST
from fuel_gpu.probes.finding import Finding
from fuel_gpu.probes.report import ProbeReport

_CALIBRATE: Final = "fuel-gpu calibrate"
_CAUSES: Final = (
    (
        re.compile(r"thermal|temperature|heat", re.IGNORECASE),
        "cool the card better (airflow, dust, fan), then",
    ),
    (
        re.compile(r"control group", re.IGNORECASE),
        "raise this container's CPU quota, then",
    ),
    (
        re.compile(r"power", re.IGNORECASE),
        "nvidia-smi -q -d POWER shows the limit and nvidia-smi -pl raises it where the card"
        " allows; check its power cables; then",
    ),
)


def table_findings(table: Table | None, report: ProbeReport) -> list[Finding]:
    """Say what is wrong with a table.

    Parameters
    ----------
    table
        The table; None if there is none yet.
    report
        The devices that are here now.
    """
    if table is None:
        return [
            Finding(
                severity="note",
                subject="table",
                what="nothing is measured on this machine yet, so plans rest on assumptions",
                remedy=_CALIBRATE,
            )
        ]
    return [
        *(
            Finding(severity="warning", subject="table", what=f"stale: {words}", remedy=_CALIBRATE)
            for words in stale(table, report)
        ),
        *_throttled(table),
        *_notes(table),
    ]


def _throttled(table: Table) -> Iterator[Finding]:
    """Find the measurements under whose conditions the device held back its clocks."""
    said: dict[str, dict[str, None]] = {}
    for device, what, conditions in measured_under(table):
        if conditions is not None and conditions.throttled:
            phrase = f"{what} ({', '.join(conditions.throttled)})"
            said.setdefault(device, {})[phrase] = None
    for device, phrases in said.items():
        text = "; ".join(phrases)
        causes = [mend for cause, mend in _CAUSES if cause.search(text)]
        yield Finding(
            severity="warning",
            subject=device,
            what=f"it was throttled while it was measured: {text}",
            remedy="; ".join([*causes, _CALIBRATE]).replace("then;", "then"),
        )


def measured_under(table: Table) -> Iterator[tuple[str, str, Conditions | None]]:
    """Give each figure's device, what it is, and its conditions."""
    for rate in table.rates:
        yield rate.device, f"{rate.dtype} compute", rate.flops_conditions
        yield rate.device, f"{rate.dtype} memory", rate.bytes_conditions
        yield rate.device, "launches", rate.launch_conditions
    for transfer in table.transfers:
        device = transfer.src if transfer.dst == str(HOST) else transfer.dst
        yield device, f"{transfer.memory} copies", transfer.conditions
    for duplex in table.duplex:
        yield duplex.ends[1], f"{duplex.memory} copies both ways at once", duplex.conditions


def _notes(table: Table) -> Iterator[Finding]:
    for note in table.notes:
        device, colon, words = note.partition(": ")
        if words.startswith(INCOMPLETE):  # said as stale
            continue
        known = colon and any(device == one.id for one in table.devices)
        yield Finding(
            severity="note",
            subject=device if known else "table",
            what=f"when it was measured: {words if known else note}",
        )
