"""A ``fuel-gpu calibrate`` that is asked to end, or killed, leaves what was finished."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fuel_gpu.calibration.table_file import load_table


def start_calibration(folder: Path) -> subprocess.Popen[bytes]:
    """Measure a plugin's two devices, of which the second hangs; the first is in the table."""
    distribution = folder / "npu_plugin-1.0.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: npu-plugin\nVersion: 1.0\n"
    )
    (distribution / "entry_points.txt").write_text("[fuel_gpu.probes]\nnpu = npu_plugin\n")
    plugin = Path(__file__).parents[1] / "calibration"
    command = ["-m", "fuel_gpu.cli.main", "calibrate", "--device", "npu:0", "--device", "npu:1"]
    path = folder / "t.json"
    process = subprocess.Popen(
        [sys.executable, *command, "--table", str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(folder), str(plugin), *sys.path]),
            "NPU_DEVICES": "good,hang",
        },
        start_new_session=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if b"npu:1" in line:  # its measuring has begun, so the first device's has ended
            return process
    raise AssertionError("the second device was never begun")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_request_to_end_leaves_a_table_of_what_is_finished(tmp_path: Path, name: str) -> None:
    process = start_calibration(tmp_path)
    process.send_signal(getattr(signal, name))
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert b"interrupted while measuring npu:1: what is finished is kept" in errors
    assert b"Traceback" not in errors
    table = load_table(tmp_path / "t.json")
    assert [r.device for r in table.rates] == ["npu:0"]
    assert any(note.startswith("npu:1: interrupted") for note in table.notes)
    assert "npu:1: incomplete: it was not measured to the end" in table.notes


def test_a_kill_leaves_a_table_of_what_is_finished(tmp_path: Path) -> None:
    process = start_calibration(tmp_path)
    process.kill()
    process.communicate(timeout=30)
    table = load_table(tmp_path / "t.json")
    assert [r.device for r in table.rates] == ["npu:0"]
    assert "npu:1: incomplete: it was not measured to the end" in table.notes
