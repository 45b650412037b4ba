"""The GPU check's own parts: programs that run, and a comparison that can fail."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fuel_gpu.arrays.engine import NUMPY
from fuel_gpu.probes.report import ProbeReport, Unavailable

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu_check.py"


@pytest.fixture(scope="module")
def gpu_check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpu_check", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gpu_check"] = module
    spec.loader.exec_module(module)
    return module


def test_every_program_runs_and_equals_itself(gpu_check: ModuleType) -> None:
    small = [
        gpu_check.Work("mask", lambda: gpu_check.points(200), gpu_check.mask),
        gpu_check.Work("retain", lambda: gpu_check.candidates(20, 8), gpu_check.retain),
        gpu_check.Work("cap", lambda: gpu_check.frontier(100), gpu_check.cap),
        gpu_check.Work("place", lambda: gpu_check.chain(30, 3), gpu_check.place),
    ]
    results = gpu_check.compared(small, replace(NUMPY, name="stand-in"))
    assert [result["work"] for result in results] == ["mask", "retain", "cap", "place"]
    assert all(result["numpy_ms"] > 0 and result["stand-in_ms"] > 0 for result in results)


def test_other_bits_are_an_error_that_names_the_program(gpu_check: ModuleType) -> None:
    def differing(_arrays: dict[str, Any], engine: Any) -> Any:
        return np.array([engine.name == "numpy"])

    work = gpu_check.Work("wrong", dict, differing)
    with pytest.raises(RuntimeError, match="wrong: numpy and stand-in give different results"):
        gpu_check.compared([work], replace(NUMPY, name="stand-in"))


def test_the_frontier_is_one(gpu_check: ModuleType) -> None:
    assert gpu_check.mask(gpu_check.frontier(500), NUMPY).all()
    assert gpu_check.cap(gpu_check.frontier(500), NUMPY).sum() == 32


def test_without_a_card_it_says_why(
    gpu_check: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = Unavailable(backend="cuda", reason="no NVIDIA card or driver is found")
    report = ProbeReport(devices=(), unavailable=(lacking,))
    monkeypatch.setattr(gpu_check.fg, "probe", lambda: report)
    monkeypatch.setattr(sys, "argv", ["gpu_check.py"])
    assert gpu_check.main() == 1
    assert "no NVIDIA card" in capsys.readouterr().err
