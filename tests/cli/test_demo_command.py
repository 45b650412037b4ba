"""`fuel-gpu demo` goes the whole path, and measures only where no current table is there."""

from pathlib import Path

import msgspec
import pytest

from fuel_gpu.calibration.staleness import describe_machine
from fuel_gpu.calibration.table import Table
from fuel_gpu.calibration.table_file import load_table, save_table
from fuel_gpu.cli import demo as demo_command
from fuel_gpu.cli import measuring
from fuel_gpu.cli.main import run
from fuel_gpu.cli.measuring import Measured
from fuel_gpu.probes import machine
from fuel_gpu.probes.report import DeviceInfo, ProbeReport, Unavailable

DESKTOP = Path(__file__).parents[2] / "examples" / "tables" / "desktop.json"


@pytest.fixture
def own_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of one's own, and a probe that finds the desktop's devices."""
    path = tmp_path / "table.json"
    monkeypatch.setattr("fuel_gpu.calibration.table_file.default_table_path", lambda: path)
    monkeypatch.setattr(machine, "probe", lambda: a_report())
    return path


def a_report() -> ProbeReport:
    missing = Unavailable(backend="opencl", reason="pyopencl is not installed")
    return ProbeReport(devices=load_table(DESKTOP).devices, unavailable=(missing,))


def of_this_machine(table: Table) -> Table:
    return msgspec.structs.replace(table, machine=describe_machine(a_report()))


def test_a_current_table_is_used_as_it_is(
    own_table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_table(of_this_machine(load_table(DESKTOP)), own_table)
    monkeypatch.setattr(measuring, "measure_and_save", None)  # not to be called
    assert run(["demo"]) == 0
    printed = capsys.readouterr().out
    assert "found cuda:0: NVIDIA GeForce RTX 4060" in printed
    assert "not found: opencl: pyopencl is not installed" in printed
    assert f"using the table that was measured before, {own_table}" in printed
    assert "ResNet-50 (batch 1): predicted 2.59 ms" in printed


@pytest.mark.parametrize("before", ["none", "stale", "damaged"])
def test_otherwise_it_measures(
    before: str,
    own_table: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if before == "stale":
        save_table(load_table(DESKTOP), own_table)  # another machine's
    elif before == "damaged":
        own_table.write_text("{")
    measured: list[tuple[Path, bool]] = []

    def measure(
        report: ProbeReport, path: Path, *, full: bool, devices: tuple[DeviceInfo, ...] | None
    ) -> Measured:
        measured.append((path, full))
        return Measured(of_this_machine(load_table(DESKTOP)), False, frozenset(), ())

    monkeypatch.setattr(measuring, "measure_and_save", measure)
    assert run(["demo"]) == 0
    assert measured == [(own_table, False)]
    assert "predicted 2.59 ms" in capsys.readouterr().out


def test_the_bundled_model_is_there() -> None:
    assert demo_command.bundled_model().name == "light_resnet50.onnx"
