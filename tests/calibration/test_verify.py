"""Verification: sizes that no curve was fitted to, measured afresh and compared."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import pytest

import fuel_gpu.calibration.verify as verification
from fuel_gpu.calibration.curves import fit_curve
from fuel_gpu.calibration.effort import QUICK
from fuel_gpu.calibration.progress import Event, Measuring
from fuel_gpu.calibration.records import CopyMeasured, Doing, Finished, Note, Record, Request
from fuel_gpu.calibration.staleness import describe_machine
from fuel_gpu.calibration.table import FORMAT_VERSION, Point, Table, Transfer
from fuel_gpu.calibration.verify import HeldOut, verify
from fuel_gpu.device import Device
from fuel_gpu.probes.report import DeviceInfo, ProbeReport

CPU = DeviceInfo(id="cpu:0", backend="cpu", name="a processor", memory_bytes=2**34)
CARD = DeviceInfo(id="cuda:0", backend="cuda", name="a card", memory_bytes=2**33, driver="1")
REPORT = ProbeReport(devices=(CPU, CARD))
SIZES = (4096, 8192, 16384)


def table() -> Table:
    times = [1000 + size for size in SIZES]
    return Table(
        version=FORMAT_VERSION,
        machine=describe_machine(REPORT),
        created="",
        devices=REPORT.devices,
        transfers=tuple(
            Transfer(
                src=src,
                dst=dst,
                points=tuple(Point(bytes=b, ns=ns) for b, ns in zip(SIZES, times, strict=True)),
                curve=fit_curve(SIZES, times),
                provenance="measured",
            )
            for src, dst in (("cpu:0", "cuda:0"), ("cuda:0", "cpu:0"))
        ),
        rates=(),
    )


def copy(src: str, dst: str, size: int, ns: int, memory: str = "pageable") -> CopyMeasured:
    return CopyMeasured(
        src=src,
        dst=dst,
        memory=memory,
        size_bound_bytes=2**28,
        point=Point(bytes=size, ns=ns, samples=(ns,)),
        measured="",
    )


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    noted: list[Request] = []

    def fake(request: Request, *, limit_s: float) -> Iterator[Record]:
        noted.append(request)
        yield Doing(what="copies, pageable, 5.656 KiB", spent=0.1)
        yield copy("cpu:0", "cuda:0", 5792, 9_999)
        yield copy("cpu:0", "cuda:0", 5792, 1000 + 5792)  # a later record replaces it
        yield copy("cuda:0", "cpu:0", 11584, 2 * (1000 + 11584))
        yield copy("cpu:0", "cuda:0", 5792, 5, memory="pinned")  # of which there is no curve
        yield Note(text="something")
        yield Finished()

    monkeypatch.setattr(verification, "measure_in_child", fake)
    monkeypatch.setattr(verification, "QUICK", replace(QUICK, sittings=2))
    return noted


def test_sizes_amid_the_tables_own_are_measured_and_compared(requests: list[Request]) -> None:
    events: list[Event] = []
    found = verify(table(), REPORT, progress=events.append)
    assert [r.sizes_bytes for r in requests] == [(5792, 11584)] * 2
    assert requests[0].agenda is None
    assert requests[1].agenda is not None  # the same sizes again, in another process
    assert requests[1].agenda.copy_sizes_bytes["pageable"] == (5792, 11584)
    assert [(h.src, h.measured.bytes, h.predicted_ns) for h in found.held_out] == [
        ("cpu:0", 5792, 6792),
        ("cuda:0", 11584, 12584),
    ]
    assert [h.error for h in found.held_out] == [0.0, -0.5]
    assert found.notes == ("cuda:0: something",)
    # the fit is exact, so a quarter is allowed; half is not
    assert [(p.src, p.worst_error) for p in found.paths] == [("cpu:0", 0.0), ("cuda:0", 0.5)]
    assert [p.promised_error for p in found.paths] == pytest.approx([0.0, 0.0], abs=1e-3)
    assert [(p.sizes, p.allowed_error, p.holds) for p in found.paths] == [
        (1, 0.25, True),
        (1, 0.25, False),
    ]
    assert not found.holds
    # of the two sittings the first has three quarters of the time
    measuring = [e for e in events if isinstance(e, Measuring)]
    assert {e.what for e in measuring} == {"copies, pageable, 5.656 KiB"}
    assert [e.spent for e in measuring] == pytest.approx([0.075, 0.775])


def test_a_device_that_changed_is_not_verified(requests: list[Request]) -> None:
    newer = msgspec.structs.replace(CARD, driver="2")
    for report in (ProbeReport(devices=(CPU, newer)), ProbeReport(devices=(CPU,))):
        found = verify(table(), report)
        assert found.held_out == ()
        assert found.notes == ("cuda:0: not verified: it is no longer as the table has it",)
    assert requests == []


@pytest.mark.parametrize(
    ("promised", "worst", "holds"),
    [(None, 0.25, True), (None, 0.26, False), (0.3, 0.6, True), (0.3, 0.61, False)],
)
def test_twice_what_the_fit_promises_is_allowed(
    promised: float | None, worst: float, holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (out, back) = table().transfers
    curve = msgspec.structs.replace(out.curve, worst_error=promised)
    promising = msgspec.structs.replace(out, curve=curve)
    measured_ns = 6792  # what the curve says of 5792 bytes; the prediction is then changed
    point = Point(bytes=5792, ns=measured_ns)
    one = HeldOut(
        src="cpu:0",
        dst="cuda:0",
        memory="pageable",
        predicted_ns=round(measured_ns * (1 + worst)),
        measured=point,
    )
    monkeypatch.setattr(verification, "measure_in_child", lambda *_, **__: iter(()))
    monkeypatch.setattr(verification, "_compare", lambda table, found: [one])
    found = verify(msgspec.structs.replace(table(), transfers=(promising, back)), REPORT)
    assert (found.paths[0].holds, found.holds) == (holds, holds)


def test_only_the_devices_asked_for_are_verified(requests: list[Request]) -> None:
    found = verify(table(), REPORT, devices=[Device("cpu")])
    assert (found.held_out, found.holds, requests) == ((), False, [])
