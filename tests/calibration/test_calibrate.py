"""The whole calibration: devices in children, faults as notes, figures that survive."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import npu_plugin
import pytest

import fuel_gpu.calibration.calibrate as calibration
from fuel_gpu.calibration.calibrate import calibrate, measurable
from fuel_gpu.calibration.effort import QUICK
from fuel_gpu.calibration.progress import (
    DeviceEnded,
    DeviceStarted,
    Event,
    Interrupted,
    Measuring,
    RoundStarted,
)
from fuel_gpu.calibration.rates import device_rates
from fuel_gpu.calibration.sittings import Sittings
from fuel_gpu.calibration.table import Table
from fuel_gpu.calibration.transfers import TableTransfers
from fuel_gpu.device import HOST, Device
from fuel_gpu.errors import UsageError
from fuel_gpu.probes.report import DeviceInfo, ProbeReport

CPU = DeviceInfo(id="cpu:0", backend="cpu", name="a processor", memory_bytes=2**34)
NPU = Device("npu")


@pytest.fixture(autouse=True, scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("plugin")
    npu_plugin.install(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setattr(calibration, "QUICK", replace(QUICK, sittings=2))
        yield


@dataclass
class Run:
    """One calibration with all that it told."""

    table: Table
    events: list[Event] = field(default_factory=list)
    checkpoints: list[Table] = field(default_factory=list)


@pytest.fixture(scope="module")
def good(plugin: None) -> Run:
    events: list[Event] = []
    checkpoints: list[Table] = []
    table = calibrate(
        report("good"), devices=[NPU], progress=events.append, checkpoint=checkpoints.append
    )
    return Run(table, events, checkpoints)


def report(*behaviours: str, key: str = "") -> ProbeReport:
    npus = [npu_plugin.describe(i, b, key) for i, b in enumerate(behaviours)]
    return ProbeReport(devices=(CPU, *npus))


def measure_npus(behaviours: ProbeReport) -> Table:
    npus = [d.device for d in behaviours.devices if d.backend == "npu"]
    return calibrate(behaviours, devices=npus)


def notes(table: Table) -> list[str]:
    """Give the notes, but for complaints about whatever else runs beside the tests."""
    return [note for note in table.notes if "cores busy meanwhile" not in note]


def test_a_plugins_device_is_measured_like_any_other(good: Run) -> None:
    table = good.table
    rates = device_rates(table, NPU)["float32"]
    assert rates.flops_per_ns == pytest.approx(64.0, rel=1e-6)
    assert rates.provenance == "measured"
    transfers = TableTransfers(table)
    assert transfers.estimate_transfer_ns(HOST, NPU, 2**20) == 1000 + 2**20
    assert transfers.estimate_transfer_ns(NPU, HOST, 2**20) == 2000 + 2**20
    assert str(transfers.provenance_of(HOST, NPU)) == "measured, direct"
    # the processor was not asked for, but the copies start there: it is in the table
    assert [d.id for d in table.devices] == ["cpu:0", "npu:0"]
    assert {t.size_bound_bytes for t in table.transfers} == {2**27}  # an eighth of a GiB
    assert notes(table) == []


def test_a_crash_keeps_what_was_finished_and_the_other_devices() -> None:
    table = measure_npus(report("crash", "good"))
    assert notes(table) == [
        "npu:0: its measuring process crashed with SIGSEGV while measuring matrix product, float32",
        "npu:0: none of its kernels has a rate, only copies: plans leave it out",
    ]
    assert {(t.src, t.dst) for t in table.transfers} == {
        ("cpu:0", "npu:0"),
        ("npu:0", "cpu:0"),
        ("cpu:0", "npu:1"),
        ("npu:1", "cpu:0"),
    }
    assert [r.device for r in table.rates] == ["npu:1"]


def test_devices_take_turns_and_each_sitting_is_a_fresh_process() -> None:
    events: list[Event] = []
    behaviours = report("good", "tells its process")
    table = calibrate(behaviours, devices=["npu:0", "npu:1"], progress=events.append)
    turns = [
        e.device if isinstance(e, Measuring) else f"round {e.index}"
        for e in events
        if isinstance(e, RoundStarted)
        or (isinstance(e, Measuring) and e.what == "launch overhead")
    ]
    assert turns == ["npu:0", "npu:1", "round 2", "npu:0", "npu:1"]
    launches = {r.device: set(r.launch_samples) for r in table.rates}
    assert launches["npu:0"] == {500}
    assert len(launches["npu:1"]) == 2  # its launch takes as many nanoseconds as its process' id


def test_a_crash_in_a_later_sitting_keeps_what_the_first_one_found(tmp_path: Path) -> None:
    table = measure_npus(report(f"crash later:{tmp_path / 'seen'}"))
    assert notes(table) == [
        "npu:0: its measuring process crashed with SIGSEGV while measuring matrix product, float32"
    ]
    (rate,) = table.rates
    assert rate.flops_per_ns == pytest.approx(64.0, rel=1e-6)
    assert rate.bytes_per_ns is not None
    assert "incomplete" not in rate.flags


def test_a_crash_in_a_later_sitting_leaves_earlier_figures_whole(
    good: Run, tmp_path: Path
) -> None:
    behaviours = report(f"crash later:{tmp_path / 'seen'}")
    named = msgspec.structs.replace(good.table, devices=behaviours.devices)  # as the same device
    table = calibrate(behaviours, devices=["npu:0"], earlier=named)
    assert table.rates == good.table.rates
    assert table.transfers == good.table.transfers
    assert notes(table) == [
        "npu:0: its measuring process crashed with SIGSEGV while measuring matrix product, float32",
        "npu:0: earlier figures stay where there are any, as it was not measured to the end",
    ]


def test_a_result_that_is_wrong_in_a_later_sitting_is_withdrawn(tmp_path: Path) -> None:
    table = measure_npus(report(f"wrong later:{tmp_path / 'seen'}"))
    assert notes(table) == [
        "npu:0: matrix product, float32: wrong result after many runs, left out",
    ]
    (rate,) = table.rates
    assert rate.flops_per_ns is None
    assert rate.flops_samples == ()
    assert rate.bytes_per_ns is not None


def test_a_device_that_cannot_be_opened_is_a_note() -> None:
    table = measure_npus(report("raise when opened"))
    assert notes(table) == ["npu:0: measuring stopped: RuntimeError: the firmware is missing"]
    assert table.devices == ()


def test_what_a_driver_prints_is_not_taken_for_a_record() -> None:
    table = measure_npus(report("chatty"))
    assert notes(table) == []
    assert device_rates(table, NPU)["float32"].provenance == "measured"


def test_twins_are_measured_once_and_marked_as_shared() -> None:
    started: list[Event] = []
    behaviours = report("good", "good", key="the same")
    table = calibrate(behaviours, devices=[NPU, Device("npu", 1)], progress=started.append)
    provenances = {r.device: r.provenance for r in table.rates}
    assert provenances == {"npu:0": "measured", "npu:1": "shared"}
    assert {e.device for e in started if isinstance(e, Measuring)} == {"npu:0"}
    assert str(TableTransfers(table).provenance_of(HOST, Device("npu", 1))) == "shared, direct"


def test_a_twin_of_a_failed_device_is_measured_itself() -> None:
    behaviours = report("crash", "good", key="the same")
    table = measure_npus(behaviours)
    assert {r.device: r.provenance for r in table.rates} == {"npu:1": "measured"}


def test_simulators_are_skipped_and_unknown_backends_noted() -> None:
    simulator = DeviceInfo(
        id="opencl:0", backend="opencl", name="Oclgrind", memory_bytes=1, simulated=True
    )
    exotic = DeviceInfo(id="tpu:0", backend="tpu", name="exotic", memory_bytes=1)
    behaviours = ProbeReport(devices=(CPU, simulator, exotic))
    assert measurable(behaviours) == [CPU]
    table = calibrate(behaviours, devices=[])
    assert notes(table) == ["tpu:0: nothing here measures the backend tpu"]


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no device npu:7 to measure; there are cpu:0, npu:0"):
        calibrate(report("good"), devices=[Device("npu", 7)])


def test_progress_tells_what_is_being_measured(good: Run) -> None:
    assert good.events[0] == DeviceStarted("npu:0", "good", 1, 1)
    measuring = [e for e in good.events if isinstance(e, Measuring)]
    whats = [e.what for e in measuring]
    assert whats[0] == "launch overhead"
    assert "copies, pageable, 128 MiB" in whats
    assert whats[-1] == "streaming, float32"
    assert all(0 <= e.spent <= 1 for e in measuring)
    assert isinstance(good.events[-1], DeviceEnded)


def test_ctrl_c_keeps_what_is_finished_and_says_so() -> None:
    events: list[Event] = []

    def interrupt(event: Event) -> None:
        events.append(event)
        if isinstance(event, Measuring) and event.what.startswith("matrix product"):
            raise KeyboardInterrupt

    table = calibrate(report("good", "good"), devices=[NPU, Device("npu", 1)], progress=interrupt)
    assert events[-1] == Interrupted("npu:0")
    assert len(table.transfers) == 2
    assert table.rates == ()
    assert notes(table) == [
        "npu:0: interrupted; what was finished by then is kept",
        "npu:0: incomplete: it was not measured to the end",
        "npu:1: incomplete: it was not measured to the end",
    ]


def test_each_finished_rate_is_a_checkpoint(good: Run) -> None:
    with_rates = [t for t in good.checkpoints if t.rates]
    assert with_rates[0].rates[0].bytes_per_ns is None  # the product's, before the streaming's
    assert with_rates[0].rates[0].flags[-1] == "incomplete"
    assert "npu:0: incomplete: it was not measured to the end" in with_rates[0].notes
    assert with_rates[-1].rates == good.table.rates
    assert [len(t.transfers) for t in with_rates] == [2] * len(with_rates)


def test_copies_are_saved_while_they_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_CHECKPOINT_S", 0.0)
    tables: list[Table] = []
    calibrate(report("crash"), devices=[NPU], checkpoint=tables.append)
    points = [len(t.transfers[0].points) for t in tables if t.transfers]
    assert points[0] == 2  # as soon as two sizes make a curve
    assert points == sorted(points)
    assert points[-1] == 16  # 4 KiB to 128 MiB


def test_earlier_figures_of_other_devices_stay(good: Run) -> None:
    second = calibrate(
        report("good", "raise when opened"), devices=[Device("npu", 1)], earlier=good.table
    )
    assert second.rates == good.table.rates
    assert second.transfers == good.table.transfers
    assert notes(second) == ["npu:1: measuring stopped: RuntimeError: the firmware is missing"]


def test_an_interrupt_leaves_the_earlier_figures_whole(good: Run) -> None:
    def interrupt(event: Event) -> None:
        if isinstance(event, Measuring) and event.what.startswith("streaming"):
            raise KeyboardInterrupt

    second = calibrate(report("good"), devices=["npu:0"], earlier=good.table, progress=interrupt)
    (rate,) = second.rates
    assert rate == good.table.rates[0]  # though its product was measured again
    assert [t.notes for t in second.transfers] == ["", ""]
    assert notes(second) == ["npu:0: interrupted; what was finished by then is kept"]


def test_a_run_that_measures_nothing_leaves_the_date(good: Run) -> None:
    dated = msgspec.structs.replace(good.table, created="2001-01-01T00:00:00+00:00")
    for devices in ([], ["npu:1"]):
        second = calibrate(report("good", "raise when opened"), devices=devices, earlier=dated)
        assert second.created == dated.created


@pytest.mark.parametrize("devices", [NPU, "npu:0", "npu", [NPU], ["npu:0"], ("npu",), {NPU}])
def test_devices_go_by_value_or_name(devices: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    def follow(sittings: Sittings, _: object) -> bool:
        asked.append(sittings.device.id)
        return False

    monkeypatch.setattr(calibration, "_follow", follow)
    calibrate(report("good"), devices=devices)
    assert asked == ["npu:0"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"report": None}, "report: None is no probe's report"),
        ({"devices": 5}, "devices: 5 is no list of devices"),
        ({"devices": [5]}, "devices: 5 is no device"),
        ({"devices": "a card"}, "devices: 'a card' is not a device"),
        ({"earlier": {}}, "earlier: {} is no table"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        calibrate(**{"report": report("good"), **arguments})


def test_another_machines_table_is_not_gone_on_with(good: Run) -> None:
    here = ProbeReport(devices=(msgspec.structs.replace(CPU, name="another"),))
    with pytest.raises(
        UsageError, match="another machine's table: the table is of a processor, 16"
    ):
        calibrate(here, earlier=good.table)
