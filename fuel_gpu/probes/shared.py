"""One probe for several processes: the first that needs it probes, the others read its report."""

from pathlib import Path
from typing import Final

import msgspec
from filelock import FileLock

from fuel_gpu.files import replace_atomically
from fuel_gpu.probes.machine import probe
from fuel_gpu.probes.report import ProbeReport

_REPORT: Final = "report.json"


def shared_report(folder: Path) -> ProbeReport:
    """Give the report that lies in `folder`, or probe and leave it there.

    Whoever comes while another probes waits for it; if that one dies, the next one probes.

    Parameters
    ----------
    folder
        An existing folder that the processes share, and nobody else writes to.
    """
    file = folder / _REPORT
    with FileLock(folder / f"{_REPORT}.lock"):
        if file.exists():
            return msgspec.json.decode(file.read_bytes(), type=ProbeReport)
        report = probe()
        replace_atomically(file, msgspec.json.encode(report))
    return report
