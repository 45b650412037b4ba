"""``fuel-gpu probe`` for programs and for people."""

import json
import re

import pytest

from fuel_gpu.cli import probe as command
from fuel_gpu.cli.main import run
from fuel_gpu.probes import machine
from fuel_gpu.probes.report import DeviceInfo, ProbeReport, Unavailable

UUID = "8f6d2c1e-0a4b-4c7d-9e21-aa00bb11cc22"
REPORT = ProbeReport(
    devices=(
        DeviceInfo(
            id="cpu:0",
            backend="cpu",
            name="Some Processor",
            memory_bytes=64 << 30,
            dtypes=("float32", "float64"),
            driver="NumPy 2.4.6",
            host_processor=True,
            unified_memory=True,
            details={"physical_cores": 8},
        ),
        DeviceInfo(
            id="cuda:0",
            backend="cuda",
            name="NVIDIA H200",
            memory_bytes=139 << 30,
            uuid=UUID,
            driver="NVIDIA 550.54.15, CUDA 12.9",
            details={"link": "PCIe 5 x16, now 1 x16"},
        ),
        DeviceInfo(
            id="opencl:0",
            backend="opencl",
            name="pthread",
            memory_bytes=48 << 30,
            driver="PoCL 3.1",
            host_processor=True,
            unified_memory=True,
        ),
        DeviceInfo(
            id="opencl:1",
            backend="opencl",
            name="Oclgrind Simulator",
            memory_bytes=128 << 30,
            driver="Oclgrind 21.10",
            simulated=True,
        ),
        DeviceInfo(id="vulkan:0", backend="vulkan", name="H200", memory_bytes=139 << 30, uuid=UUID),
    ),
    unavailable=(
        Unavailable(backend="metal", reason="it is not here", remedy="buy one [of those]"),
    ),
)


@pytest.fixture
def known_machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Let the probe give `REPORT`, and keep what it was asked."""
    asked: dict[str, object] = {}

    def probe(backends: list[str] | None, *, timeout_s: float) -> ProbeReport:
        asked.update(backends=backends, timeout_s=timeout_s)
        return REPORT

    monkeypatch.setattr(machine, "probe", probe)
    return asked


@pytest.mark.usefixtures("known_machine")
def test_json_is_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["probe", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report) == {"devices", "unavailable"}
    assert [device["id"] for device in report["devices"]] == [d.id for d in REPORT.devices]
    assert report["devices"][1]["backend"] == "cuda"
    assert report["devices"][1]["name"] == "NVIDIA H200"
    assert report["devices"][1]["memory_bytes"] == 139 << 30
    assert report["unavailable"] == [
        {"backend": "metal", "reason": "it is not here", "remedy": "buy one [of those]"}
    ]


@pytest.mark.usefixtures("known_machine")
def test_people_see_cards_with_their_doors_and_memory_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["probe"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines if re.search(r"\w:\d", line)]
    assert rows[:5] == [
        ["Some Processor", "64.0 GiB", "cpu:0", "NumPy 2.4.6", "float32 float64", "8 cores"],
        ["opencl:0", "PoCL 3.1", "float32"],
        [
            "NVIDIA H200",
            "139.0 GiB",
            "cuda:0",
            "NVIDIA 550.54.15, CUDA 12.9",
            "float32",
            "PCIe 5 x16, now 1 x16",
        ],
        ["vulkan:0", "float32"],
        [
            "Oclgrind Simulator",
            "128.0 GiB",
            "opencl:1",
            "Oclgrind 21.10",
            "float32",
            "simulator, never planned on",
        ],
    ]
    assert "  metal: it is not here" in lines
    assert "      to mend it: buy one [of those]" in lines


@pytest.mark.usefixtures("known_machine")
def test_no_id_is_cut_in_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(command, "_PIPED_WIDTH", 60)
    assert run(["probe"]) == 0
    out = capsys.readouterr().out
    assert all(device.id in out for device in REPORT.devices)
    assert "…" not in out


def test_options_reach_the_probe(known_machine: dict[str, object]) -> None:
    assert run(["probe", "--backend", "cpu", "--backend", "opencl", "--timeout", "3"]) == 0
    assert known_machine == {"backends": ["cpu", "opencl"], "timeout_s": 3.0}
    assert run(["probe"]) == 0
    assert known_machine == {"backends": None, "timeout_s": machine.DEFAULT_TIMEOUT_S}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--backend", "npu"], "'npu' is not a backend; known are cpu, cuda, opencl"),
        (["--timeout", "-1"], "(timeout) is -1.0: give seconds, above 0 and at most 86400"),
        (["--timeout", "nan"], "(timeout) is nan"),
        (["--timeout", "1e300"], "(timeout) is 1e+300"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["probe", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_the_command_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["probe", "--json", "--backend", "cpu"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [device["id"] for device in report["devices"]] == ["cpu:0"]
