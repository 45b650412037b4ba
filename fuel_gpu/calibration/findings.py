"""The figures of one calibration as they come in, and the table that they make."""

from collections.abc import Iterable, Iterator, Set
from datetime import UTC, datetime
from typing import Final

import msgspec

from fuel_gpu.calibration.curves import fit_curve
from fuel_gpu.calibration.records import (
    CopyMeasured,
    DuplexMeasured,
    RateMeasured,
    Record,
    Swept,
)
from fuel_gpu.calibration.staleness import describe_machine, same_device
from fuel_gpu.calibration.table import (
    FORMAT_VERSION,
    INCOMPLETE,
    Duplex,
    Point,
    Rate,
    Table,
    Transfer,
)
from fuel_gpu.device import HOST
from fuel_gpu.probes.report import ProbeReport

_FEWEST_POINTS = 2

_NOT_ENDED: Final = f"{INCOMPLETE}: it was not measured to the end"
_ABSENT: Final = (
    "not found when this table was written last: its figures are older; if it is gone for good, "
    "delete the table and measure anew"
)


_ONLY_COPIES: Final = "none of its kernels has a rate, only copies: plans leave it out"


class Findings:
    """Collects records, and the figures of an earlier table that still hold.

    Parameters
    ----------
    report
        The devices that are here.
    earlier
        A table whose figures stay until they are measured again to the end, for each device that
        is as it was or is not found; None to begin afresh.
    """

    def __init__(self, report: ProbeReport, earlier: Table | None) -> None:
        self._machine = describe_machine(report)
        self._devices = {d.id: d for d in report.devices if not d.simulated}
        self._points: dict[tuple[str, str, str], dict[int, Point]] = {}
        self._latest: dict[tuple[str, str, str], CopyMeasured] = {}
        self._swept: set[tuple[str, str, str]] = set()
        self._rates: dict[tuple[str, str], Rate] = {}
        self._duplex: dict[tuple[tuple[str, str], str], Duplex] = {}
        self._kept_transfers: dict[tuple[str, str, str], Transfer] = {}
        self._kept_rates: dict[tuple[str, str], Rate] = {}
        self._kept_duplex: dict[tuple[tuple[str, str], str], Duplex] = {}
        self._notes: dict[str, list[str]] = {}
        self._earlier_notes: dict[str, list[str]] = {}
        self._unfinished: set[str] = set()
        self._unfinished_pairs: set[tuple[str, str]] = set()
        self._earlier = earlier
        if earlier is not None and earlier.machine.fingerprint == self._machine.fingerprint:
            self._keep(earlier)

    def add_copy(self, record: CopyMeasured) -> None:
        """Take in one size of a copy."""
        key = (record.src, record.dst, record.memory)
        self._points.setdefault(key, {})[record.point.bytes] = record.point
        self._latest[key] = record

    def end_sweep(self, record: Swept) -> None:
        """Take it that copies have been measured to the end: they replace earlier ones now."""
        self._swept.add((record.src, record.dst, record.memory))

    def add_rate(self, record: RateMeasured) -> None:
        """Take in a device's rate in one dtype; only a whole one replaces an earlier one."""
        rate = record.rate
        if not record.whole:
            rate = msgspec.structs.replace(rate, flags=(*rate.flags, INCOMPLETE))
        self._rates[rate.device, rate.dtype] = rate

    def add_duplex(self, record: DuplexMeasured) -> None:
        """Take in copies both ways at once."""
        self._duplex[record.duplex.ends, record.duplex.memory] = record.duplex

    def drop_duplex(self, ends: tuple[str, str], memory: str) -> None:
        """Forget copies both ways at once, which were found wrong."""
        self._duplex.pop((ends, memory), None)

    def add_note(self, device: str, text: str) -> None:
        """Take in what could not be measured; the same is said once."""
        notes = self._notes.setdefault(device, [])
        if text not in notes:
            notes.append(text)

    def expect(self, devices: Iterable[str], pairs: Iterable[tuple[str, str]]) -> None:
        """Say what is to be measured: until it is, the table says that it is incomplete.

        A device whose earlier figures are whole and stay until then is not.
        """
        rated = {device for device, _ in self._kept_rates}
        for device in devices:
            noted = self._earlier_notes.get(device, [])
            lasting = [text for text in noted if not text.startswith(INCOMPLETE)]
            if device not in rated or lasting != noted:
                self._unfinished.add(device)
            self._earlier_notes[device] = lasting
        copied = {(t.src, t.dst) for t in self._kept_transfers.values()}
        self._unfinished_pairs = set(pairs) - copied

    def give_up(self, device: str) -> None:
        """Take it that a device was measured as far as it goes; a note says what stopped it."""
        self._unfinished.discard(device)

    def end_pair(self, pair: tuple[str, str]) -> None:
        """Take it that copies between two devices were measured as far as they go."""
        self._unfinished_pairs.discard(pair)

    def complete(self, device: str) -> None:
        """Forget what an earlier table said of a device that has now been measured in full.

        Copies between it and other devices are measured apart, and stay until then; so do earlier
        copies where measuring them again was begun and failed.
        """
        self._unfinished.discard(device)
        self._earlier_notes.pop(device, None)
        begun = self._points.keys() - self._swept
        self._kept_transfers = {
            key: t
            for key, t in self._kept_transfers.items()
            if {t.src, t.dst} != {device, str(HOST)} or key in begun
        }
        self._kept_duplex = {
            key: d for key, d in self._kept_duplex.items() if set(d.ends) != {device, str(HOST)}
        }
        self._kept_rates = {key: r for key, r in self._kept_rates.items() if r.device != device}

    def has_whole(self, record: Record) -> bool:
        """Whether an earlier calibration measured to the end what this record would end."""
        if isinstance(record, Swept):
            kept = self._kept_transfers.get((record.src, record.dst, record.memory))
            return kept is not None and not _incomplete(kept)
        if isinstance(record, RateMeasured):
            rate = self._kept_rates.get((record.rate.device, record.rate.dtype))
            return rate is not None and INCOMPLETE not in rate.flags
        return False

    def share(self, source: str, target: str) -> None:
        """Let the figures of `source` stand for `target`, marked as shared."""
        for (device, dtype), rate in list(self._rates.items()):
            if device == source:
                self._rates[target, dtype] = msgspec.structs.replace(
                    rate, device=target, provenance="shared"
                )
        for transfer in self._measured_transfers():
            if {transfer.src, transfer.dst} == {source, str(HOST)}:
                ends = [target if end == source else end for end in (transfer.src, transfer.dst)]
                self._kept_transfers[ends[0], ends[1], transfer.memory] = msgspec.structs.replace(
                    transfer, src=ends[0], dst=ends[1], provenance="shared"
                )
        for duplex in self._duplex.values():
            if duplex.ends == (str(HOST), source):
                shared = (str(HOST), target)
                self._kept_duplex[shared, duplex.memory] = msgspec.structs.replace(
                    duplex, ends=shared, provenance="shared"
                )

    def notes_of(self, device: str) -> tuple[str, ...]:
        """What could not be measured of a device this time."""
        return tuple(self._notes.get(device, ()))

    def table(self) -> Table:
        """Make the table of all that is known by now.

        A device of which nothing was measured is left out, so that nobody plans on it; the notes
        say why.
        """
        transfers = dict(self._kept_transfers)
        for transfer in self._measured_transfers():
            key = (transfer.src, transfer.dst, transfer.memory)
            before = transfers.get(key)
            if key in self._swept or before is None or _supersedes(transfer, before):
                transfers[key] = transfer
        rates = dict(self._kept_rates)
        for rated, rate in self._rates.items():
            if INCOMPLETE not in rate.flags or _says_more(rate, rates.get(rated)):
                rates[rated] = rate
        used = {end for src, dst, _ in transfers for end in (src, dst)}
        used |= {device for device, _ in rates}
        duplex = [
            one for one in (self._kept_duplex | self._duplex).values() if set(one.ends) <= used
        ]
        return Table(
            version=FORMAT_VERSION,
            machine=self._machine,
            created=self._created(),
            devices=tuple(d for d in self._devices.values() if d.id in used),
            transfers=tuple(transfers.values()),
            rates=tuple(rates.values()),
            duplex=tuple(duplex),
            notes=tuple(dict.fromkeys(self._all_notes(used - {device for device, _ in rates}))),
            engine_crossover=self._earlier.engine_crossover if self._earlier else None,
        )

    def _created(self) -> str:
        if self._earlier is not None and not (self._rates or self._points or self._duplex):
            return self._earlier.created
        return datetime.now(UTC).isoformat(timespec="seconds")

    def _all_notes(self, unrated: Set[str]) -> Iterator[str]:
        for device in dict.fromkeys((*self._earlier_notes, *self._notes, *self._devices)):
            for text in (*self._earlier_notes.get(device, ()), *self._notes.get(device, ())):
                yield f"{device}: {text}"
            if device in self._unfinished:
                yield f"{device}: {_NOT_ENDED}"
            elif device in unrated - {str(HOST)}:  # copies start at a host that nobody measured
                yield f"{device}: {_ONLY_COPIES}"
            for src, dst in sorted(self._unfinished_pairs):
                if src == device:
                    yield f"{src}: {INCOMPLETE}: copies to {dst} were not measured to the end"

    def _keep(self, earlier: Table) -> None:
        for note in earlier.notes:
            device, _, text = note.partition(": ")
            if text not in (_ABSENT, _ONLY_COPIES):
                self._earlier_notes.setdefault(device, []).append(text)
        same = set()
        for before in earlier.devices:
            here = self._devices.get(before.id)
            if here is None:
                self._devices[before.id] = before
                self._earlier_notes.setdefault(before.id, []).append(_ABSENT)
            if here is None or same_device(before, here):
                same.add(before.id)
            else:
                self._earlier_notes[before.id] = [
                    f"{INCOMPLETE}: earlier figures, of {before.name} with driver "
                    f"{before.driver or 'none'}, were dropped"
                ]
        self._kept_transfers = {
            (t.src, t.dst, t.memory): t
            for t in earlier.transfers
            if t.src in same and t.dst in same
        }
        self._kept_duplex = {(d.ends, d.memory): d for d in earlier.duplex if set(d.ends) <= same}
        self._kept_rates = {(r.device, r.dtype): r for r in earlier.rates if r.device in same}

    def _measured_transfers(self) -> list[Transfer]:
        found = []
        for key, by_size in self._points.items():
            if len(by_size) < _FEWEST_POINTS:
                continue
            points = tuple(by_size[size] for size in sorted(by_size))
            whole = key in self._swept
            latest = self._latest[key]
            found.append(
                Transfer(
                    src=latest.src,
                    dst=latest.dst,
                    memory=latest.memory,
                    points=points,
                    curve=fit_curve([p.bytes for p in points], [p.ns for p in points]),
                    provenance="measured",
                    size_bound_bytes=latest.size_bound_bytes,
                    measured=latest.measured,
                    conditions=latest.conditions,
                    notes="" if whole else f"{INCOMPLETE}: not measured to the end",
                )
            )
        return found


def _incomplete(transfer: Transfer) -> bool:
    return transfer.notes.startswith(INCOMPLETE)


def _supersedes(transfer: Transfer, before: Transfer) -> bool:
    """Whether copies not measured to the end replace earlier ones: if neither were, with more."""
    return _incomplete(before) and _runs(transfer) >= _runs(before)


def _runs(transfer: Transfer) -> int:
    return sum(len(point.samples) for point in transfer.points)


def _says_more(rate: Rate, before: Rate | None) -> bool:
    """Whether a rate not measured to the end replaces an earlier one: as copies do."""
    if before is None:
        return True
    now, then = (len(r.flops_samples) + len(r.bytes_samples) for r in (rate, before))
    return INCOMPLETE in before.flags and now >= then
