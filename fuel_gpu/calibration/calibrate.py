"""Measures the devices of a report, each in a child process, and makes the table."""

import itertools
import time
from collections.abc import Callable, Collection, Iterator

from fuel_gpu.calibration.backends import CONNECTED_BACKENDS, can_measure
from fuel_gpu.calibration.effort import FULL, QUICK
from fuel_gpu.calibration.findings import Findings
from fuel_gpu.calibration.isolation import measure_in_child
from fuel_gpu.calibration.progress import (
    DeviceEnded,
    DeviceStarted,
    Event,
    Interrupted,
    Measuring,
)
from fuel_gpu.calibration.records import (
    CopyMeasured,
    Doing,
    DuplexMeasured,
    Finished,
    Note,
    RateMeasured,
    Request,
    Swept,
)
from fuel_gpu.calibration.staleness import other_machine
from fuel_gpu.calibration.table import Table
from fuel_gpu.device import Device
from fuel_gpu.errors import UsageError
from fuel_gpu.probes.report import DeviceInfo, ProbeReport

_CHECKPOINT_S = 2.0


def calibrate(
    report: ProbeReport,
    *,
    full: bool = False,
    devices: Device | str | Collection[Device | str] | None = None,
    earlier: Table | None = None,
    progress: Callable[[Event], None] | None = None,
    checkpoint: Callable[[Table], None] | None = None,
) -> Table:
    """Measure how fast the devices compute and how fast bytes get to them and back.

    Each device is measured in a child process with a time limit. One that crashes or hangs costs
    what was unfinished, and a note in the table; so does Ctrl-C, after which the table of what is
    finished is returned. Earlier figures stay until they are measured again to the end; what was
    not measured to the end and replaces none is marked as incomplete. Simulated devices are
    skipped. Of devices with the same equivalence key one is measured, and its figures are marked
    `shared` on the others.

    Parameters
    ----------
    report
        What `fuel_gpu.probes.probe` found.
    full
        Measure longer and at more sizes: about a minute a device, instead of about ten seconds.
    devices
        Only these, or their names (``cuda:0``); None for all.
    earlier
        A table of this machine whose figures stay where nothing is measured again, those of devices
        that are not found included.
    progress
        Called with each `Event`.
    checkpoint
        Called with the table so far every two seconds, and after each device and each finished
        rate, to be saved: what is finished then outlives this process.

    Returns
    -------
    Table
        Of all that was measured; its notes say what was not.

    Raises
    ------
    UsageError
        If one of `devices` is not in the report, or `earlier` is another machine's table.
    """
    _check(report, earlier)
    tell = progress or (lambda event: None)
    save = checkpoint or (lambda table: None)
    chosen = _chosen(report, devices)
    findings = Findings(report, earlier)
    pairs = list(_connected(chosen))
    findings.expect([d.id for d in chosen], [(one.id, other.id) for one, other in pairs])
    measured: dict[str, DeviceInfo] = {}
    current = ""
    for info in report.devices:
        if not info.simulated and not can_measure(info.backend):
            findings.add_note(info.id, f"nothing here measures the backend {info.backend}")
    try:
        for index, info in enumerate(chosen, start=1):
            current = info.id
            tell(DeviceStarted(info.id, info.name, index, len(chosen)))
            whole = True
            twin = measured.get(info.equivalence_key) if info.equivalence_key else None
            if twin is not None:
                findings.complete(info.id)
                findings.share(twin.id, info.id)
            elif _follow(Request(device=info, full=full), findings, tell, save):
                findings.complete(info.id)
                measured[info.equivalence_key] = info
            else:
                whole = False
                findings.give_up(info.id)
            save(findings.table())
            tell(DeviceEnded(info.id, findings.notes_of(info.id), whole))
        for info, other in pairs:
            current = info.id
            _follow(Request(device=info, peer=other, full=full), findings, tell, save)
            findings.end_pair((info.id, other.id))
            save(findings.table())
    except KeyboardInterrupt:
        findings.add_note(current, "interrupted; what was finished by then is kept")
        tell(Interrupted(current))
    return findings.table()


def measurable(report: ProbeReport) -> list[DeviceInfo]:
    """Give the devices of a report that can be measured: no simulators, known backends."""
    return [d for d in report.devices if not d.simulated and can_measure(d.backend)]


def _check(report: object, earlier: object) -> None:
    if not isinstance(report, ProbeReport):
        raise UsageError(f"report: {report!r:.60} is no probe's report: give what `probe` returned")
    if earlier is None:
        return
    if not isinstance(earlier, Table):
        raise UsageError(f"earlier: {earlier!r:.60} is no table: read one with `load_table`")
    if (other := other_machine(earlier, report)) is not None:
        raise UsageError(f"earlier: it is another machine's table: {other}")


def _chosen(report: ProbeReport, devices: object) -> list[DeviceInfo]:
    usable = measurable(report)
    if devices is None:
        return usable
    listed = [devices] if isinstance(devices, Device | str) else devices
    if not isinstance(listed, Collection):
        raise UsageError(f"devices: {devices!r:.60} is no list of devices")
    wanted = {Device.of(one, "devices") for one in listed}
    known = {d.device for d in usable}
    for device in sorted(wanted):
        if device not in known:
            raise UsageError(
                f"there is no device {device} to measure; there are "
                f"{', '.join(d.id for d in usable)}"
            )
    return [d for d in usable if d.device in wanted]


def _connected(chosen: list[DeviceInfo]) -> Iterator[tuple[DeviceInfo, DeviceInfo]]:
    for info, other in itertools.combinations(chosen, 2):
        if info.backend == other.backend and info.backend in CONNECTED_BACKENDS:
            yield info, other


def _follow(
    request: Request,
    findings: Findings,
    tell: Callable[[Event], None],
    save: Callable[[Table], None],
) -> bool:
    """Take in what a child measures; whether it measured all it was asked for."""
    name = request.device.id
    effort = FULL if request.full else QUICK
    saved = time.monotonic()
    for record in measure_in_child(request, limit_s=effort.limit_s):
        match record:
            case Doing():
                to = f" to {request.peer.id}" if request.peer else ""
                tell(Measuring(name, record.what + to, record.spent))
                if time.monotonic() > saved + _CHECKPOINT_S:
                    save(findings.table())
                    saved = time.monotonic()
            case CopyMeasured():
                findings.add_copy(record)
            case Swept():
                findings.end_sweep(record)
            case RateMeasured():
                findings.add_rate(record)
                save(findings.table())
            case DuplexMeasured():
                findings.add_duplex(record)
            case Note():
                findings.add_note(name, record.text)
            case Finished():
                return record.whole
    return False
