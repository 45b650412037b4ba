"""wgpu's adapters as devices: which are taken, in what order, and with what memory."""

import importlib.util
from typing import Any

import pytest

from fuel_gpu.probes import vulkan
from fuel_gpu.probes.machine import probe
from fuel_gpu.probes.vulkan import Adapter, choose, describe
from fuel_gpu.probes.vulkan_loader import PhysicalDevice

GIB, MIB = 2**30, 2**20
HOST_BYTES = 16 * GIB


def adapter(
    name: str,
    kind: str = "DiscreteGPU",
    backend_type: str = "Vulkan",
    ids: tuple[int, int] = (0x10DE, 0x2335),
    features: tuple[str, ...] = (),
) -> Adapter:
    info: dict[str, Any] = {
        "vendor": "NVIDIA",
        "device": name,
        "description": "550.54.15",
        "vendor_id": ids[0],
        "device_id": ids[1],
        "adapter_type": kind,
        "backend_type": backend_type,
    }
    limits = {
        "max-buffer-size": 2 * GIB,
        "max-storage-buffer-binding-size": 128 * MIB,
        "max-compute-invocations-per-workgroup": 1024,
        "max-compute-workgroup-storage-size": 32768,
    }
    return Adapter(info, frozenset(features), limits)


LLVMPIPE = adapter("llvmpipe", "CPU", ids=(0x10005, 0))
LLVMPIPE_BY_OPENGL = adapter("llvmpipe", "CPU", "OpenGL", ids=(0x10005, 0))


def loader_device(name: str, uuid: str, ids: tuple[int, int] = (0x10DE, 0x2335)) -> PhysicalDevice:
    return PhysicalDevice(*ids, name, uuid, f"0000:{uuid}:00.0", 141 * GIB)


def test_vulkan_is_taken_over_its_opengl_double_and_hardware_before_software() -> None:
    report = describe([LLVMPIPE, LLVMPIPE_BY_OPENGL, adapter("H200")], (), HOST_BYTES)
    assert [(d.id, d.name) for d in report.devices] == [
        ("vulkan:0", "H200"),
        ("vulkan:1", "llvmpipe"),
    ]


def test_direct3d_is_taken_only_where_vulkan_does_not_drive_the_card() -> None:
    both = [adapter("card", backend_type="D3D12"), adapter("card")]
    assert [a.backend for a in choose(both)] == ["vulkan"]
    assert [a.backend for a in choose(both[:1])] == ["d3d12"]


def test_metal_devices_are_named_metal() -> None:
    report = describe([adapter("Apple M3", "IntegratedGPU", "Metal", ids=(0, 0))], (), HOST_BYTES)
    (device,) = report.devices
    assert (device.id, device.memory_bytes) == ("metal:0", HOST_BYTES)
    assert device.unified_memory
    assert not device.host_processor


def test_two_cards_of_one_model_take_the_loaders_identities_in_its_order() -> None:
    report = describe(
        [adapter("H200"), LLVMPIPE, adapter("H200")],
        [
            loader_device("llvmpipe", "ff", ids=(0x10005, 0)),
            loader_device("H200", "18"),
            loader_device("H200", "2a"),
        ],
        HOST_BYTES,
    )
    assert [(d.id, d.uuid, d.pci_address) for d in report.devices] == [
        ("vulkan:0", "18", "0000:18:00.0"),
        ("vulkan:1", "2a", "0000:2a:00.0"),
        ("vulkan:2", "ff", "0000:ff:00.0"),
    ]


def test_memory_is_the_cards_the_hosts_or_a_lower_bound() -> None:
    known = describe([adapter("H200")], [loader_device("H200", "18")], HOST_BYTES).devices[0]
    assert (known.memory_bytes, known.memory_is_lower_bound) == (141 * GIB, False)
    unknown = describe([adapter("H200")], (), HOST_BYTES).devices[0]
    assert (unknown.memory_bytes, unknown.memory_is_lower_bound) == (2 * GIB, True)
    software = describe([LLVMPIPE], (), HOST_BYTES).devices[0]
    assert (software.memory_bytes, software.memory_is_lower_bound) == (HOST_BYTES, False)
    assert software.host_processor
    assert software.unified_memory


def test_dtypes_are_the_shaders_types() -> None:
    features = ("shader-f16", "shader-f64", "timestamp-query")
    (device,) = describe([adapter("x", features=features)], (), HOST_BYTES).devices
    assert device.dtypes == ("float32", "float16", "float64")
    assert "timestamp-query" in device.details["features"]
    assert device.details["largest_binding_bytes"] == 128 * MIB


def test_no_adapter_is_a_line_and_says_what_opengl_has() -> None:
    report = describe([LLVMPIPE_BY_OPENGL], (), HOST_BYTES)
    assert report.devices == ()
    (line,) = report.unavailable
    assert "llvmpipe is there through OpenGL only" in line.reason
    assert "mesa-vulkan-drivers" in line.remedy


def test_a_missing_library_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (line,) = vulkan.enumerate_devices().unavailable
    assert (line.reason, line.remedy) == (
        "wgpu is not installed",
        "pip install 'fuel-gpu[vulkan]'",
    )


@pytest.mark.vulkan
def test_the_adapters_of_this_machine(capfd: pytest.CaptureFixture[str]) -> None:
    report = probe(["vulkan"], timeout_s=120.0)
    assert capfd.readouterr() == ("", "")  # wgpu complains of XDG_RUNTIME_DIR, but not to the user
    for index, device in enumerate(report.devices):
        assert device.id == f"vulkan:{index}"
        assert device.dtypes[0] == "float32"
        assert device.driver
        assert vulkan.find(device).info["device"] == device.name
