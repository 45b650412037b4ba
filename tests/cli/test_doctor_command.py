"""``fuel-gpu doctor`` for programs and for people, and its exit status."""

import json
from pathlib import Path

import msgspec
import pytest

from fuel_gpu.calibration import table_file
from fuel_gpu.calibration.curves import line_curve
from fuel_gpu.calibration.staleness import describe_machine
from fuel_gpu.calibration.table import FORMAT_VERSION, Conditions, Point, Rate, Table, Transfer
from fuel_gpu.calibration.table_file import save_table
from fuel_gpu.cli.main import run
from fuel_gpu.probes import machine, surroundings
from fuel_gpu.probes.cuda_diagnosis import NO_CARD
from fuel_gpu.probes.pcie import Hop, Link
from fuel_gpu.probes.report import DeviceInfo, ProbeReport, Unavailable
from fuel_gpu.probes.surroundings import PciGpu, Surroundings

CPU = DeviceInfo(id="cpu:0", backend="cpu", name="Processor", memory_bytes=1, host_processor=True)
CARD = DeviceInfo(
    id="cuda:0", backend="cuda", name="Card", memory_bytes=1, pci_address="0000:01:00.0"
)
NO_GPU = ProbeReport(
    devices=(CPU,), unavailable=(Unavailable(backend="cuda", reason=NO_CARD, remedy="none [yet]"),)
)
ONE_CARD = ProbeReport(devices=(CPU, CARD))
NARROW = Surroundings(
    gpus=(
        PciGpu(
            "0000:01:00.0",
            "NVIDIA",
            "nvidia",
            (Hop("0000:01:00.0", Link(1, 4), Link(4, 16), Link(4, 16)),),
        ),
    ),
    missing_packages=frozenset({"pyopencl"}),
)


@pytest.fixture(autouse=True)
def own_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this machine's own table would lie."""
    path = tmp_path / "own" / "table.json"
    monkeypatch.setattr(table_file, "default_table_path", lambda: path)
    return path


def be(monkeypatch: pytest.MonkeyPatch, report: ProbeReport, around: Surroundings) -> None:
    monkeypatch.setattr(machine, "probe", lambda: report)
    monkeypatch.setattr(surroundings, "look_around", lambda: around)


def table() -> Table:
    return Table(
        version=FORMAT_VERSION,
        machine=describe_machine(ONE_CARD),
        created="",
        devices=ONE_CARD.devices,
        transfers=(
            Transfer(
                src="cpu:0",
                dst="cuda:0",
                memory="pinned",
                points=(Point(bytes=2**26, ns=2**23), Point(bytes=2**27, ns=2**24)),
                curve=line_curve(1, 8.0),
                provenance="measured",
            ),
        ),
        rates=tuple(
            Rate(
                device=name,
                dtype="float32",
                flops_per_ns=1.0,
                bytes_per_ns=1.0,
                launch_ns=1,
                provenance="measured",
            )
            for name in ("cpu:0", "cuda:0")
        ),
    )


def test_no_gpu_is_no_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    be(monkeypatch, NO_GPU, Surroundings())
    assert run(["doctor"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"note  cuda: {NO_CARD}",
        "    to mend it: none [yet]",
        "note  table: nothing is measured on this machine yet, so plans rest on assumptions",
        "    to mend it: fuel-gpu calibrate",
        "2 notes",
    ]


def test_a_problem_is_exit_status_1_and_comes_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], own_table: Path
) -> None:
    be(monkeypatch, ONE_CARD, NARROW)
    save_table(table(), own_table)
    assert run(["doctor", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"findings", "links"}
    assert [(f["severity"], f["subject"]) for f in document["findings"]] == [
        ("problem", "cuda:0"),
        ("note", "cuda:0"),
    ]
    assert document["findings"][0]["what"] == (
        "its link runs with 4 of 16 lanes (PCIe 1 x4 at present)"
    )
    assert document["findings"][0]["remedy"].startswith("reseat the card")
    (link,) = document["links"]
    assert link["hops"] == [
        {
            "address": "0000:01:00.0",
            "now": {"generation": 1, "width": 4},
            "device": {"generation": 4, "width": 16},
            "port": {"generation": 4, "width": 16},
        }
    ]
    assert link["gives_bytes_per_ns"] == pytest.approx(7.876923)
    assert link["carried"] == [{"to_device": True, "memory": "pinned", "bytes_per_ns": 8.0}]


def test_people_see_each_link_beside_what_it_carried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], own_table: Path
) -> None:
    be(monkeypatch, ONE_CARD, NARROW)
    save_table(table(), own_table)
    assert run(["doctor"]) == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    expected = "cuda:0 PCIe 1 x4 - PCIe 4 x16 7.88 8 (102%, pinned) not measured"
    assert expected.split() in lines
    assert lines[-1] == ["1", "problem,", "1", "note"]


def test_people_see_the_link_under_load(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], own_table: Path
) -> None:
    be(monkeypatch, ONE_CARD, NARROW)
    risen = Conditions(link_generation=4, link_width=4)
    transfers = tuple(msgspec.structs.replace(t, conditions=risen) for t in table().transfers)
    save_table(msgspec.structs.replace(table(), transfers=transfers), own_table)
    run(["doctor"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    expected = "cuda:0 PCIe 1 x4 PCIe 4 x4 PCIe 4 x16 7.88 8 (102%, pinned) not measured"
    assert expected.split() in lines


@pytest.mark.parametrize("text", [None, "{"])
def test_a_named_table_that_cannot_be_read_is_a_problem(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    text: str | None,
) -> None:
    be(monkeypatch, NO_GPU, Surroundings())
    path = tmp_path / "other.json"
    if text is not None:
        path.write_text(text)
    assert run(["doctor", "--table", str(path), "--json"]) == 1
    first = json.loads(capsys.readouterr().out)["findings"][0]
    assert (first["severity"], first["subject"]) == ("problem", "table")
    assert first["what"].startswith(f"{path}: ")


def test_nothing_wrong_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], own_table: Path
) -> None:
    be(monkeypatch, ProbeReport(devices=ONE_CARD.devices), Surroundings(system="win32"))
    save_table(table(), own_table)
    assert run(["doctor"]) == 0
    assert capsys.readouterr().out == "nothing is wrong\n"


def test_the_command_itself(capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["doctor", "--json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert status == any(finding["severity"] == "problem" for finding in findings)
    assert {finding["subject"] for finding in findings} >= {"table"}
