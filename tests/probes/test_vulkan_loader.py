"""What is asked of the Vulkan loader itself."""

import ctypes

import pytest

from fuel_gpu.probes import vulkan_loader
from fuel_gpu.probes.vulkan_loader import physical_devices


@pytest.mark.parametrize(
    ("structure", "size", "offsets"),
    [
        # VkPhysicalDeviceProperties is 824 bytes: limits begin at 296, and 16 go before it here.
        (vulkan_loader._Properties2, 840, {"device_name": 36, "limits_and_sparse_properties": 312}),
        (vulkan_loader._IdProperties, 64, {"device_uuid": 16, "device_luid_valid": 60}),
        (vulkan_loader._PciBusInfo, 32, {"domain": 16, "function": 28}),
        (vulkan_loader._MemoryProperties, 520, {"heap_count": 260, "heaps": 264}),
        (vulkan_loader._InstanceCreateInfo, 64, {"application_info": 24, "extensions": 56}),
    ],
)
def test_structures_lie_in_memory_as_the_header_lays_them(
    structure: type[ctypes.Structure], size: int, offsets: dict[str, int]
) -> None:
    assert ctypes.sizeof(structure) == size
    assert {name: getattr(structure, name).offset for name in offsets} == offsets


@pytest.mark.vulkan
def test_the_devices_of_this_machine() -> None:
    devices = physical_devices()
    assert devices
    for device in devices:
        assert device.name
        assert device.vendor_id
        assert device.local_memory_bytes > 0


def test_no_loader_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert physical_devices() == ()
