"""What is wrong with a machine's table: missing, stale, or measured under bad conditions."""

import re
from collections.abc import Iterator
from typing import Final

from fuel_gpu.calibration.staleness import stale
from fuel_gpu.calibration.table import Table
from fuel_gpu.probes.finding import Finding
from fuel_gpu.probes.report import ProbeReport

_CALIBRATE: Final = "fuel-gpu calibrate"
_THROTTLED = re.compile(r"throttl", re.IGNORECASE)
_CAUSES: Final = (
    (
        re.compile(r"thermal|temperature|heat", re.IGNORECASE),
        "cool the card better (airflow, dust, fan), then",
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
    """Find the measurements whose flags or notes tell of throttling."""
    said: dict[str, dict[str, None]] = {}
    for rate in table.rates:
        for words in (*rate.flags, rate.notes):
            said.setdefault(rate.device, {})[f"{rate.dtype}, {words}"] = None
    for transfer in table.transfers:
        device = transfer.src if transfer.dst == "cpu:0" else transfer.dst
        for words in (transfer.notes, *(flag for p in transfer.points for flag in p.flags)):
            said.setdefault(device, {})[f"copies ({transfer.memory}), {words}"] = None
    for device, phrases in said.items():
        found = [phrase for phrase in phrases if _THROTTLED.search(phrase)]
        if found:
            text = "; ".join(found)
            causes = [mend for cause, mend in _CAUSES if cause.search(text)]
            yield Finding(
                severity="warning",
                subject=device,
                what=f"it was throttled while it was measured: {text}",
                remedy="; ".join([*causes, _CALIBRATE]).replace("then;", "then"),
            )


def _notes(table: Table) -> Iterator[Finding]:
    for note in table.notes:
        device, colon, words = note.partition(": ")
        known = colon and any(device == one.id for one in table.devices)
        yield Finding(
            severity="note",
            subject=device if known else "table",
            what=f"when it was measured: {words if known else note}",
        )
