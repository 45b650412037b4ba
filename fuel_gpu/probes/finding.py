"""What is wrong with a machine, a device or a table, and what mends it."""

from collections.abc import Iterable
from typing import Literal, get_args

import msgspec

Severity = Literal["problem", "warning", "note"]
"""A problem keeps something from working, a warning makes it slow or doubtful, a note is normal."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing to know.

    Parameters
    ----------
    subject
        What it is about: a device, a backend, a card's PCI address, ``table``.
    what
        What was found.
    remedy
        The command or setting that mends it; empty where nothing needs to be done.
    """

    severity: Severity
    subject: str
    what: str
    remedy: str = ""


def most_severe_first(findings: Iterable[Finding]) -> list[Finding]:
    """Sort problems before warnings before notes, otherwise in the order given."""
    return sorted(findings, key=lambda finding: get_args(Severity).index(finding.severity))
