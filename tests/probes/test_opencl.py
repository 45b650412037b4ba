"""OpenCL's probe, over a stand-in for pyopencl, and over the drivers that are here."""

import os
import shutil
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from fuel_gpu.probes import opencl
from fuel_gpu.probes.isolation import MARK
from fuel_gpu.probes.machine import probe
from fuel_gpu.probes.report import ProbeReport

CPU, GPU = 2, 4


class Error(Exception):
    """pyopencl's error."""


class StandIn:
    """The part of pyopencl that the probe uses, over given platforms.

    A device compiles the C types in its `compiles`, and says what is in its `extensions`.
    """

    Error = Error
    device_type = SimpleNamespace(CPU=CPU, GPU=GPU, ACCELERATOR=8)

    def __init__(self, *platforms: Any) -> None:
        self.platforms = platforms

    def get_platforms(self) -> list[Any]:
        if not self.platforms:
            raise Error("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")
        return list(self.platforms)

    def Context(self, devices: list[Any]) -> Any:  # noqa: N802 - pyopencl's name
        return devices[0]

    def Program(self, context: Any, source: str) -> Any:  # noqa: N802 - pyopencl's name
        def build(*, cache_dir: bool) -> None:
            assert cache_dir is False
            if not any(f"global {c_type} *" in source for c_type in context.compiles):
                raise Error(f"BUILD_PROGRAM_FAILURE\n\nBuild on <device>:\n\n{context.log}\n")

        return SimpleNamespace(build=build)


def platform(name: str, version: str, *devices: Any) -> Any:
    return SimpleNamespace(name=name, version=version, get_devices=lambda: list(devices))


def device(name: str, kind: int = GPU, **fields: Any) -> Any:
    values: dict[str, Any] = {
        "name": name,
        "type": kind,
        "driver_version": "1.0",
        "extensions": "cl_khr_fp64 cl_khr_fp16",
        "compiles": ("float", "double", "half"),
        "log": "error: no",
        "global_mem_size": 8 << 30,
        "max_mem_alloc_size": 2 << 30,
        "host_unified_memory": kind == CPU,
        "vendor": "Vendor",
        "version": "OpenCL 3.0",
        "opencl_c_version": "OpenCL C 1.2",
        "max_compute_units": 16,
        "max_clock_frequency": 1500,
        "local_mem_size": 65536,
        "max_work_group_size": 1024,
    }
    return SimpleNamespace(**(values | fields))


def report_of(monkeypatch: pytest.MonkeyPatch, *platforms: Any) -> ProbeReport:
    monkeypatch.setitem(sys.modules, "pyopencl", StandIn(*platforms))
    return opencl.enumerate_devices()


def test_indices_stay_with_their_devices_in_whatever_order_the_loader_lists_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    platforms = [
        platform("Portable Computing Language", "PoCL 3.0", device("old PoCL", CPU)),
        platform("NVIDIA CUDA", "12.4", device("card 0"), device("card 1")),
        platform("Oclgrind", "21.10", device("Oclgrind Simulator", CPU)),
        platform("Portable Computing Language", "PoCL 3.1", device("new PoCL", CPU)),
    ]
    expected = {
        "opencl:0": "card 0",
        "opencl:1": "card 1",
        "opencl:2": "old PoCL",
        "opencl:3": "new PoCL",
        "opencl:4": "Oclgrind Simulator",
    }
    for order in (platforms, platforms[::-1]):
        report = report_of(monkeypatch, *order)
        assert {d.id: d.name for d in report.devices} == expected
        assert [opencl.find(d).name for d in report.devices] == list(expected.values())


def test_a_simulator_is_marked_and_is_no_door_of_the_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = report_of(
        monkeypatch,
        platform("Oclgrind", "21.10", device("Oclgrind Simulator", CPU)),
        platform("Portable Computing Language", "PoCL 3.1", device("cpu", CPU)),
    )
    assert [(d.simulated, d.host_processor) for d in report.devices] == [
        (False, True),
        (True, False),
    ]


def test_only_what_compiles_is_a_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_of(
        monkeypatch,
        platform(
            "Vendor",
            "1",
            device("honest"),
            device("claims too much", compiles=("float", "half")),
            device("claims less", extensions="cl_khr_fp16", compiles=("float", "double", "half")),
        ),
    )
    assert [d.dtypes for d in report.devices] == [
        ("float32", "float64", "float16"),
        ("float32", "float16"),
        ("float32", "float16"),
    ]


def test_a_device_that_cannot_compile_is_a_line_and_takes_no_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = report_of(
        monkeypatch,
        platform(
            "Portable Computing Language",
            "PoCL 3.0",
            device("new cpu", CPU, compiles=(), log="error: unknown target CPU 'generic'"),
        ),
        platform("Vendor", "1", device("broken", compiles=(), log="error: no space left")),
        platform("Portable Computing Language", "PoCL 3.1", device("good", CPU)),
    )
    assert [(d.id, d.name) for d in report.devices] == [("opencl:0", "good")]
    assert opencl.find(report.devices[0]).name == "good"
    assert [line.reason for line in report.unavailable] == [
        "broken (Vendor 1.0) cannot compile a kernel: error: no space left",
        "new cpu (Portable Computing Language 1.0) cannot compile: its compiler is older than this"
        " processor (unknown target CPU)",
    ]
    assert all(line.remedy for line in report.unavailable)


def test_no_driver_and_a_driver_without_devices_are_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    (none,) = report_of(monkeypatch).unavailable
    assert none.reason == (
        "there is no OpenCL driver: clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR"
    )
    assert "pip install 'fuel-gpu[opencl]'" in none.remedy
    (empty,) = report_of(monkeypatch, platform("Intel OpenCL", "3.0")).unavailable
    assert empty.reason == "the platform Intel OpenCL lists no device"
    assert "group render" in empty.remedy


def test_a_missing_library_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    (line,) = opencl.enumerate_devices().unavailable
    assert line.reason.startswith("pyopencl cannot be imported")
    assert line.remedy == "pip install 'fuel-gpu[opencl]'"


def test_a_card_is_tied_by_nvidias_and_by_amds_own_way_of_telling_its_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = report_of(
        monkeypatch,
        platform(
            "Some",
            "1",
            device("nvidia", pci_domain_id_nv=0, pci_bus_id_nv=0x3B, pci_slot_id_nv=0),
            device("amd", topology_amd=SimpleNamespace(bus=3, device=0, function=0)),
            device("silent"),
        ),
    )
    assert [d.pci_address for d in report.devices] == ["0000:3b:00.0", "0000:03:00.0", None]


def test_a_device_that_is_gone_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    (there,) = report_of(monkeypatch, platform("Vendor", "1", device("card"))).devices
    report_of(monkeypatch, platform("Vendor", "2", device("card")))
    with pytest.raises(LookupError, match=r"opencl:0 \(card\) is no longer there"):
        opencl.find(there)


@pytest.mark.opencl
def test_the_drivers_of_this_machine() -> None:
    import pyopencl as cl

    report = probe(["opencl"], timeout_s=120.0)
    listed = sum(len(p.get_devices()) for p in cl.get_platforms())
    refused = [line for line in report.unavailable if "cannot compile" in line.reason]
    assert len(report.devices) + len(refused) == listed
    for info in report.devices:
        found = opencl.find(info)
        assert " ".join(found.name.split()) == info.name
        assert found.max_compute_units == info.details["compute_units"]
        assert info.dtypes[0] == "float32"


@pytest.mark.opencl
@pytest.mark.skipif(sys.platform != "linux", reason="the loader is looked up as Linux maps it")
def test_the_loader_answers_what_pyopencl_cannot_ask() -> None:
    import pyopencl as cl

    device_type = 0x1000  # CL_DEVICE_TYPE, which pyopencl can ask too
    for found in (d for p in cl.get_platforms() for d in p.get_devices()):
        raw = opencl._raw_info(found, device_type, 8)
        assert raw is not None
        assert int.from_bytes(raw, sys.byteorder) == found.type
        assert opencl._raw_info(found, 0xFFFF, 16) is None


@pytest.mark.skipif(shutil.which("oclgrind") is None, reason="apt install oclgrind")
def test_oclgrind_itself_is_a_simulator() -> None:
    pytest.importorskip("pyopencl", reason="pip install 'fuel-gpu[opencl]'")
    output = subprocess.run(
        ["oclgrind", sys.executable, "-m", "fuel_gpu.probes.child", "opencl", "60"],
        env=os.environ,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    report = msgspec.json.decode(output.rpartition(MARK)[2], type=ProbeReport)
    assert {d.name for d in report.devices if d.simulated} == {"Oclgrind Simulator"}
