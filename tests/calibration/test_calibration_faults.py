"""Whatever a driver does while it is opened or measured: one note, and all else is measured."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import npu_plugin
import psutil
import pytest

import fuel_gpu.calibration.calibrate as calibration
import fuel_gpu.calibration.isolation as isolation
from fuel_gpu.calibration.calibrate import calibrate
from fuel_gpu.calibration.effort import QUICK
from fuel_gpu.calibration.table import Table
from fuel_gpu.calibration.table_file import load_table
from fuel_gpu.probes.report import DeviceInfo, ProbeReport

CPU = DeviceInfo(id="cpu:0", backend="cpu", name="a processor", memory_bytes=2**34)
MIB = 2**20

WHAT_IS_SAID = {
    "crash": "crashed with SIGSEGV",
    "hang": "did not finish within 6 s and was stopped",
    "stick": "did not finish within 6 s and was stopped",
    "exit": "exited with status 3 before it reported",
    "flood": "printed more than 1 MiB and was stopped",
    "fill memory": "took more than 256 MiB of memory and was stopped",
}


@pytest.fixture(scope="module")
def plugin_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("plugin")
    npu_plugin.install(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield folder


@pytest.fixture
def tight_limits(plugin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "QUICK", replace(QUICK, limit_s=6.0, sittings=2))
    monkeypatch.setattr(isolation, "MAX_OUTPUT_BYTES", MIB)
    monkeypatch.setattr(isolation, "host_memory_bytes", lambda: 512 * MIB)


def measured(*behaviours: str) -> Table:
    npus = [npu_plugin.describe(i, behaviour) for i, behaviour in enumerate(behaviours)]
    return calibrate(ProbeReport(devices=(CPU, *npus)), devices=[npu.device for npu in npus])


def notes_of(table: Table, device: str) -> list[str]:
    return [
        note.removeprefix(f"{device}: ")
        for note in table.notes
        if note.startswith(device) and "cores busy meanwhile" not in note
    ]


@pytest.mark.usefixtures("tight_limits")
def test_each_fault_in_opening_is_one_note_and_the_last_device_is_measured() -> None:
    table = measured(*(f"{fault} when opened" for fault in WHAT_IS_SAID), "good")
    for index, said in enumerate(WHAT_IS_SAID.values()):
        (note,) = notes_of(table, f"npu:{index}")
        assert note.startswith(f"its measuring process {said}")
    good = f"npu:{len(WHAT_IS_SAID)}"
    assert [d.id for d in table.devices] == ["cpu:0", good]
    assert [(r.device, r.bytes_per_ns is None) for r in table.rates] == [(good, False)]
    assert notes_of(table, good) == []


@pytest.mark.usefixtures("tight_limits")
def test_each_fault_in_measuring_keeps_what_was_finished() -> None:
    table = measured(*WHAT_IS_SAID)
    for index, said in enumerate(WHAT_IS_SAID.values()):
        note = notes_of(table, f"npu:{index}")[0]
        assert note.startswith(f"its measuring process {said}")
        assert note.endswith("while measuring matrix product, float32")
    assert len(table.transfers) == 2 * len(WHAT_IS_SAID)
    assert all(len(t.points) == 16 for t in table.transfers)
    assert table.rates == ()


@pytest.mark.usefixtures("tight_limits")
def test_an_exception_costs_its_figure_and_garbage_nothing() -> None:
    table = measured("raise", "chatty")
    assert notes_of(table, "npu:0") == ["float32, plain: RuntimeError: the firmware is missing"]
    assert notes_of(table, "npu:1") == []
    rates = {r.device: (r.flops_per_ns is None, r.bytes_per_ns is None) for r in table.rates}
    assert rates == {"npu:0": (True, False), "npu:1": (False, False)}


CALIBRATE = """
import sys
from pathlib import Path
import npu_plugin
from dataclasses import replace
import fuel_gpu.calibration.calibrate as calibration
from fuel_gpu.calibration.table_file import save_table
from fuel_gpu.probes.report import DeviceInfo, ProbeReport

calibration.QUICK = replace(calibration.QUICK, sittings=2)
cpu = DeviceInfo(id="cpu:0", backend="cpu", name="a processor", memory_bytes=2**34)
npus = [npu_plugin.describe(0, "good"), npu_plugin.describe(1, sys.argv[2])]
calibration.calibrate(
    ProbeReport(devices=(cpu, *npus)),
    devices=[npu.device for npu in npus],
    progress=lambda event: print(event, flush=True),
    checkpoint=lambda table: save_table(table, Path(sys.argv[1])),
)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs signals")
@pytest.mark.parametrize("fault", ["hang", "stick"])
def test_a_killed_parent_leaves_its_table_and_no_child(
    plugin_folder: Path, tmp_path: Path, fault: str
) -> None:
    path = tmp_path / "table.json"
    parent = subprocess.Popen(
        [sys.executable, "-c", CALIBRATE, str(path), fault],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert parent.stdout is not None
    for line in parent.stdout:
        if "npu:1" in line and "matrix product" in line:
            break
    time.sleep(0.2)  # it hangs by now
    children = psutil.Process(parent.pid).children(recursive=True)
    assert len(children) == 1
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert psutil.wait_procs(children, timeout=20)[1] == []
    table = load_table(path)
    assert [(r.device, r.bytes_per_ns is None) for r in table.rates] == [("npu:0", False)]
    assert {"npu:0"} <= {t.dst for t in table.transfers}
