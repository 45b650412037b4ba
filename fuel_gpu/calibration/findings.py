"""The figures of one calibration as they come in, and the table that they make."""

from datetime import UTC, datetime

import msgspec

from fuel_gpu.calibration.curves import fit_curve
from fuel_gpu.calibration.records import CopyMeasured, DuplexMeasured, RateMeasured
from fuel_gpu.calibration.staleness import describe_machine, same_device
from fuel_gpu.calibration.table import FORMAT_VERSION, Duplex, Point, Rate, Table, Transfer
from fuel_gpu.device import HOST
from fuel_gpu.probes.report import DeviceInfo, ProbeReport

_FEWEST_POINTS = 2


class Findings:
    """Collects records, and the figures of an earlier table that still hold.

    Parameters
    ----------
    report
        The devices that are here.
    earlier
        A table whose figures stay until they are measured again, for each device that is as it
        was; None to begin afresh.
    """

    def __init__(self, report: ProbeReport, earlier: Table | None) -> None:
        self._machine = describe_machine(report)
        self._here = {d.id: d for d in report.devices if not d.simulated}
        self._points: dict[tuple[str, str, str], dict[int, Point]] = {}
        self._latest: dict[tuple[str, str, str], CopyMeasured] = {}
        self._rates: dict[tuple[str, str], Rate] = {}
        self._duplex: dict[tuple[tuple[str, str], str], Duplex] = {}
        self._kept_transfers: dict[tuple[str, str, str], Transfer] = {}
        self._kept_rates: dict[tuple[str, str], Rate] = {}
        self._kept_duplex: dict[tuple[tuple[str, str], str], Duplex] = {}
        self._notes: dict[str, list[str]] = {}
        if earlier is not None and earlier.machine.fingerprint == self._machine.fingerprint:
            self._keep(earlier)

    def add_copy(self, record: CopyMeasured) -> None:
        """Take in one size of a copy."""
        key = (record.src, record.dst, record.memory)
        self._points.setdefault(key, {})[record.point.bytes] = record.point
        self._latest[key] = record

    def add_rate(self, record: RateMeasured) -> None:
        """Take in a device's rate in one dtype."""
        self._rates[record.rate.device, record.rate.dtype] = record.rate

    def add_duplex(self, record: DuplexMeasured) -> None:
        """Take in copies both ways at once."""
        self._duplex[record.duplex.ends, record.duplex.memory] = record.duplex

    def add_note(self, device: str, text: str) -> None:
        """Take in what could not be measured."""
        self._notes.setdefault(device, []).append(text)

    def begin(self, device: str) -> None:
        """Forget what an earlier calibration noted of a device: it is measured again."""
        self._notes[device] = []

    def complete(self, device: str) -> None:
        """Forget what an earlier table said of a device that has now been measured in full.

        Copies between it and other devices are measured apart, and stay until then.
        """
        self._kept_transfers = {
            key: t
            for key, t in self._kept_transfers.items()
            if {t.src, t.dst} != {device, str(HOST)}
        }
        self._kept_duplex = {
            key: d for key, d in self._kept_duplex.items() if set(d.ends) != {device, str(HOST)}
        }
        self._kept_rates = {key: r for key, r in self._kept_rates.items() if r.device != device}

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
        """What could not be measured of a device."""
        return tuple(self._notes.get(device, ()))

    def table(self) -> Table:
        """Make the table of all that is known by now.

        A device of which nothing was measured is left out, so that nobody plans on it; the notes
        say why.
        """
        transfers = dict(self._kept_transfers)
        transfers |= {(t.src, t.dst, t.memory): t for t in self._measured_transfers()}
        rates = self._kept_rates | self._rates
        used = {end for src, dst, _ in transfers for end in (src, dst)}
        used |= {device for device, _ in rates}
        duplex = [
            one for one in (self._kept_duplex | self._duplex).values() if set(one.ends) <= used
        ]
        return Table(
            version=FORMAT_VERSION,
            machine=self._machine,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            devices=tuple(d for d in self._here.values() if d.id in used),
            transfers=tuple(transfers.values()),
            rates=tuple(rates.values()),
            duplex=tuple(duplex),
            notes=tuple(
                f"{device}: {text}" for device, all_ in self._notes.items() for text in all_
            ),
        )

    def _keep(self, earlier: Table) -> None:
        before = {d.id: d for d in earlier.devices}
        same = {name for name, d in self._here.items() if _unchanged(before.get(name), d)}
        self._kept_transfers = {
            (t.src, t.dst, t.memory): t
            for t in earlier.transfers
            if t.src in same and t.dst in same
        }
        self._kept_duplex = {(d.ends, d.memory): d for d in earlier.duplex if set(d.ends) <= same}
        self._kept_rates = {(r.device, r.dtype): r for r in earlier.rates if r.device in same}
        for note in earlier.notes:
            device, _, text = note.partition(": ")
            if device in same:
                self.add_note(device, text)

    def _measured_transfers(self) -> list[Transfer]:
        found = []
        for key, by_size in self._points.items():
            if len(by_size) < _FEWEST_POINTS:
                continue
            points = tuple(by_size[size] for size in sorted(by_size))
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
                )
            )
        return found


def _unchanged(before: DeviceInfo | None, now: DeviceInfo) -> bool:
    return before is not None and same_device(before, now)
