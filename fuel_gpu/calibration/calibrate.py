"""Measures the devices of a report in turn, each sitting in a child process: the table."""

import itertools
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from fuel_gpu.calibration.backends import CONNECTED_BACKENDS, can_measure
from fuel_gpu.calibration.effort import FULL, QUICK, Effort
from fuel_gpu.calibration.findings import Findings
from fuel_gpu.calibration.isolation import measure_in_child
from fuel_gpu.calibration.progress import (
    DeviceEnded,
    DeviceStarted,
    Event,
    Interrupted,
    Measuring,
    RoundStarted,
)
from fuel_gpu.calibration.records import (
    CopyMeasured,
    Doing,
    DuplexMeasured,
    Finished,
    Note,
    OthersBusy,
    RateMeasured,
    Record,
    Request,
    Swept,
    Wrong,
)
from fuel_gpu.calibration.sittings import Sittings
from fuel_gpu.calibration.staleness import other_machine
from fuel_gpu.calibration.table import Table
from fuel_gpu.device import HOST, Device
from fuel_gpu.errors import UsageError
from fuel_gpu.probes.report import DeviceInfo, ProbeReport

_CHECKPOINT_S = 2.0
_EARLIER_STAY = "earlier figures stay where there are any, as it was not measured to the end"


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

    Each device is measured in several sittings, the devices taking turns; a sitting is a child
    process with a time limit. One that crashes or hangs ends its device's measuring and costs
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
        Measure longer, more often and at more sizes: more than a minute a device, instead of
        ten to forty seconds.
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
    chosen = _chosen(report, devices)
    findings = Findings(report, earlier)
    pairs = list(_connected(chosen))
    findings.expect([d.id for d in chosen], [(one.id, other.id) for one, other in pairs])
    for info in report.devices:
        if not info.simulated and not can_measure(info.backend):
            findings.add_note(info.id, f"nothing here measures the backend {info.backend}")
    run = _Run(findings, FULL if full else QUICK, len(chosen), tell, checkpoint or (lambda table: None))
    try:
        _measure_devices(run, chosen, full=full)
        for info, other in pairs:
            request = Request(device=info, peer=other, full=full)
            _take_turns(run, [Sittings(request, run.effort, count=1)])
    except KeyboardInterrupt:
        findings.add_note(run.current, "interrupted; what was finished by then is kept")
        tell(Interrupted(run.current))
    return findings.table()


def _measure_devices(run: "_Run", chosen: list[DeviceInfo], *, full: bool) -> None:
    """Measure devices in turn, of twins one; another of them if that one fails."""
    measured: dict[str, str] = {}
    waiting = chosen
    while waiting:
        leaders = [
            info
            for index, info in enumerate(waiting)
            if not info.equivalence_key
            or info.equivalence_key not in {d.equivalence_key for d in waiting[:index]}
        ]
        group = [
            Sittings(Request(device=info, full=full), run.effort, run.effort.sittings)
            for info in leaders
        ]
        _take_turns(run, group)
        measured |= {
            one.device.equivalence_key: one.device.id
            for one in group
            if one.device.equivalence_key and not one.failed
        }
        waiting = [info for info in waiting if info not in leaders]
        for info in waiting:
            if (twin := measured.get(info.equivalence_key)) is not None:
                run.start(info)
                run.findings.complete(info.id)
                run.findings.share(twin, info.id)
                run.end(info, whole=True)
        waiting = [info for info in waiting if info.equivalence_key not in measured]


def _take_turns(run: "_Run", group: list[Sittings]) -> None:
    """Let each have its next sitting, round after round, until all are over.

    So a device's sittings meet different moments of the machine.
    """
    for turn in itertools.count(1):
        still = [one for one in group if not one.over]
        if not still:
            return
        if turn > 1:
            run.tell(RoundStarted(turn, run.effort.sittings))
        for one in still:
            if turn == 1 and one.request.peer is None:
                run.start(one.device)
            one.end(whole=_follow(one, run))
            if one.over:
                _close(one, run)


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


@dataclass(slots=True)
class _Run:
    """One calibration: where its figures go, whom it tells, where it is saved."""

    findings: Findings
    effort: Effort
    devices: int
    tell: Callable[[Event], None]
    checkpoint: Callable[[Table], None]
    current: str = ""
    started: int = 0
    shares: dict[str, float] = field(default_factory=dict)
    saved: float = field(default_factory=time.monotonic)

    def start(self, info: DeviceInfo) -> None:
        """Say that a device's turn has come for the first time."""
        self.current = info.id
        self.started += 1
        self.tell(DeviceStarted(info.id, info.name, self.started, self.devices))

    def end(self, info: DeviceInfo, *, whole: bool) -> None:
        """Save, and say that a device is over."""
        self.shares[info.id] = 1.0
        self.save()
        self.tell(DeviceEnded(info.id, self.findings.notes_of(info.id), whole))

    def spent(self) -> float:
        """Which share of the time of all devices is spent; pairs come after it."""
        return min(1.0, sum(self.shares.values()) / self.devices)

    def save(self) -> None:
        """Save what there is by now."""
        self.checkpoint(self.findings.table())
        self.saved = time.monotonic()


def _follow(sittings: Sittings, run: _Run) -> bool:
    """Take in what one sitting's child measures; whether it measured all it was asked for."""
    request = sittings.request
    run.current = request.device.id
    for record in measure_in_child(request, limit_s=run.effort.limit_s):
        if isinstance(record, Finished):
            return record.whole
        if isinstance(record, Doing) and request.peer is None:
            run.shares[run.current] = sittings.spent(record.spent)
        for joined in sittings.joined(record):
            _take_in(joined, request, run)
    return False


def _close(sittings: Sittings, run: _Run) -> None:
    """Let what was measured by now count as measured to the end.

    Of a device whose sittings ended early, what an earlier calibration measured to the end stays.
    """
    request = sittings.request
    for record in sittings.closing():
        if sittings.failed and run.findings.has_whole(record):
            run.findings.add_note(request.device.id, _EARLIER_STAY)
        else:
            _take_in(record, request, run)
    if request.peer is not None:
        run.findings.end_pair((request.device.id, request.peer.id))
        run.save()
        return
    if sittings.failed:
        run.findings.give_up(request.device.id)
    else:
        run.findings.complete(request.device.id)
    run.end(request.device, whole=not sittings.failed)


def _take_in(record: Record, request: Request, run: _Run) -> None:
    findings, name = run.findings, request.device.id
    match record:
        case Doing():
            to = f" to {request.peer.id}" if request.peer else ""
            run.tell(Measuring(name, record.what + to, run.spent()))
            if time.monotonic() > run.saved + _CHECKPOINT_S:
                run.save()
        case CopyMeasured():
            findings.add_copy(record)
        case Swept():
            findings.end_sweep(record)
        case RateMeasured():
            findings.add_rate(record)
            run.save()
        case DuplexMeasured():
            findings.add_duplex(record)
        case Wrong(quantity="duplex"):
            ends = (name, request.peer.id) if request.peer else (str(HOST), name)
            findings.drop_duplex(ends, record.of)
        case Note():
            findings.add_note(name, record.text)
        case Wrong() | OthersBusy() | Finished():
            pass  # joined into the figures and notes
