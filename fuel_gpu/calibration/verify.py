"""Holds a table's curves to copies of sizes that they were not fitted to, measured afresh."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from fuel_gpu.calibration.curves import CurveTimes, size_amid
from fuel_gpu.calibration.effort import FULL, QUICK, Effort
from fuel_gpu.calibration.isolation import measure_in_child
from fuel_gpu.calibration.progress import Event, Measuring
from fuel_gpu.calibration.records import CopyMeasured, Doing, Finished, Note, Record, Request
from fuel_gpu.calibration.sittings import Sittings
from fuel_gpu.calibration.staleness import same_device
from fuel_gpu.calibration.table import Point, Table
from fuel_gpu.device import HOST, Device
from fuel_gpu.probes.report import DeviceInfo, ProbeReport

ALLOWED_ERROR: Final = 0.25
_PROMISES: Final = 2.0


@dataclass(frozen=True, slots=True)
class HeldOut:
    """One size's copy, predicted and measured.

    Parameters
    ----------
    predicted_ns
        By the table's curve.
    measured
        Afresh, with its samples and interval.
    """

    src: str
    dst: str
    memory: str
    predicted_ns: int
    measured: Point

    @property
    def error(self) -> float:
        """The prediction's relative error, negative where it is too low."""
        return (self.predicted_ns - self.measured.ns) / self.measured.ns


@dataclass(frozen=True, slots=True)
class PathVerdict:
    """How far one path's curve is off, against what its fit promises.

    The curve holds if its worst error is at most twice the worst that its fit had when each point
    was left out, and it holds in any case up to `ALLOWED_ERROR`: two calibrations of one machine
    differ by as much.

    Parameters
    ----------
    sizes
        How many sizes were held out.
    promised_error
        The fit's worst error; None where it is not known.
    """

    src: str
    dst: str
    memory: str
    sizes: int
    median_error: float
    worst_error: float
    promised_error: float | None
    allowed_error: float

    @property
    def holds(self) -> bool:
        """Whether the worst error is allowed."""
        return self.worst_error <= self.allowed_error


@dataclass(frozen=True, slots=True)
class Verification:
    """All held-out sizes, and what could not be verified."""

    held_out: tuple[HeldOut, ...]
    notes: tuple[str, ...]
    paths: tuple[PathVerdict, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether there is something to judge by, and every path's curve keeps its promise."""
        return bool(self.paths) and all(path.holds for path in self.paths)


def verify(
    table: Table,
    report: ProbeReport,
    *,
    full: bool = False,
    devices: Collection[Device] | None = None,
    progress: Callable[[Event], None] | None = None,
) -> Verification:
    """Measure copies amid each two neighbouring sizes of a table, and compare them with its curves.

    Parameters
    ----------
    table
        This machine's table.
    report
        The devices that are here; those that changed since are not verified.
    full
        Measure as long as the full calibration does.
    devices
        Only these devices' copies; None for all.
    progress
        Called with each `Event`.
    """
    tell = progress or (lambda event: None)
    here = {d.id: d for d in report.devices}
    held_out: list[HeldOut] = []
    notes: list[str] = []
    for info in table.devices:
        sizes = _held_out_sizes(table, info)
        if not sizes or (devices is not None and info.device not in devices):
            continue
        if info.id not in here or not same_device(info, here[info.id]):
            notes.append(f"{info.id}: not verified: it is no longer as the table has it")
            continue
        request = Request(device=here[info.id], full=full, sizes_bytes=tuple(sizes))
        found: dict[tuple[str, str, str, int], CopyMeasured] = {}
        said: list[str] = []
        for record in _in_sittings(request, FULL if full else QUICK):
            match record:
                case Doing():
                    tell(Measuring(info.id, record.what, record.spent))
                case CopyMeasured():
                    key = (record.src, record.dst, record.memory, record.point.bytes)
                    found[key] = record
                case Note():
                    said.append(f"{info.id}: {record.text}")
        notes += dict.fromkeys(said)  # each sitting may say the same
        held_out += _compare(table, list(found.values()))
    return Verification(tuple(held_out), tuple(notes), tuple(_judge(table, held_out)))


def _in_sittings(request: Request, effort: Effort) -> Iterator[Record]:
    """Measure as often as the table was: a figure of one process would differ by its moment."""
    sittings = Sittings(request, effort, effort.sittings)
    while not sittings.over:
        whole = False
        for record in measure_in_child(sittings.request, limit_s=effort.limit_s):
            if isinstance(record, Finished):
                whole = record.whole
            elif isinstance(record, Doing):
                yield Doing(what=record.what, spent=sittings.spent(record.spent))
            else:
                yield from sittings.joined(record)
        sittings.end(whole=whole)


def _held_out_sizes(table: Table, info: DeviceInfo) -> list[int]:
    sizes: set[int] = set()
    for transfer in table.transfers:
        if {transfer.src, transfer.dst} == {info.id, str(HOST)}:
            sizes |= {p.bytes for p in transfer.points}
    amid = {size_amid(low, high) for low, high in pairwise(sorted(sizes))}
    return sorted(amid - sizes)


def _judge(table: Table, held_out: Sequence[HeldOut]) -> Iterator[PathVerdict]:
    errors: dict[tuple[str, str, str], list[float]] = {}
    for one in held_out:
        errors.setdefault((one.src, one.dst, one.memory), []).append(abs(one.error))
    promised = {(t.src, t.dst, t.memory): t.curve.worst_error for t in table.transfers}
    for path, found in errors.items():
        yield PathVerdict(
            *path,
            sizes=len(found),
            median_error=median(found),
            worst_error=max(found),
            promised_error=promised[path],
            allowed_error=max(ALLOWED_ERROR, _PROMISES * (promised[path] or 0.0)),
        )


def _compare(table: Table, found: Sequence[CopyMeasured]) -> list[HeldOut]:
    curves = {(t.src, t.dst, t.memory): CurveTimes(t.curve) for t in table.transfers}
    return [
        HeldOut(
            src=record.src,
            dst=record.dst,
            memory=record.memory,
            predicted_ns=curve.at(record.point.bytes),
            measured=record.point,
        )
        for record in sorted(found, key=lambda r: (r.src, r.dst, r.memory, r.point.bytes))
        if (curve := curves.get((record.src, record.dst, record.memory))) is not None
    ]
