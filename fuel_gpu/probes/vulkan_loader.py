"""What the Vulkan loader knows of its devices and wgpu does not pass on: UUID, PCI address, memory.

Structures and numbers are those of ``vulkan_core.h``, whose binary interface does not change.
"""

import ctypes
import sys
from ctypes import POINTER, Structure, byref, c_char, c_uint8, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, Final

from fuel_gpu.probes.identity import normal_uuid, pci_address

_VK_SUCCESS: Final = 0
_API_VERSION_1_1: Final = (1 << 22) | (1 << 12)
_STRUCTURE_INSTANCE_CREATE_INFO: Final = 1
_STRUCTURE_PROPERTIES_2: Final = 1000059001
_STRUCTURE_ID_PROPERTIES: Final = 1000071004
_STRUCTURE_PCI_BUS_INFO: Final = 1000212000
_HEAP_DEVICE_LOCAL: Final = 1


class _ApplicationInfo(Structure):
    _fields_ = (
        ("type", c_uint32),
        ("next", c_void_p),
        ("application_name", c_void_p),
        ("application_version", c_uint32),
        ("engine_name", c_void_p),
        ("engine_version", c_uint32),
        ("api_version", c_uint32),
    )


class _InstanceCreateInfo(Structure):
    _fields_ = (
        ("type", c_uint32),
        ("next", c_void_p),
        ("flags", c_uint32),
        ("application_info", POINTER(_ApplicationInfo)),
        ("layer_count", c_uint32),
        ("layers", c_void_p),
        ("extension_count", c_uint32),
        ("extensions", c_void_p),
    )


class _Properties2(Structure):
    _fields_ = (
        ("type", c_uint32),
        ("next", c_void_p),
        ("api_version", c_uint32),
        ("driver_version", c_uint32),
        ("vendor_id", c_uint32),
        ("device_id", c_uint32),
        ("device_type", c_uint32),
        ("device_name", c_char * 256),
        ("pipeline_cache_uuid", c_uint8 * 16),
        ("limits_and_sparse_properties", c_uint64 * 66),
    )


class _IdProperties(Structure):
    _fields_ = (
        ("type", c_uint32),
        ("next", c_void_p),
        ("device_uuid", c_uint8 * 16),
        ("driver_uuid", c_uint8 * 16),
        ("device_luid", c_uint8 * 8),
        ("device_node_mask", c_uint32),
        ("device_luid_valid", c_uint32),
    )


class _PciBusInfo(Structure):
    _fields_ = (
        ("type", c_uint32),
        ("next", c_void_p),
        ("domain", c_uint32),
        ("bus", c_uint32),
        ("device", c_uint32),
        ("function", c_uint32),
    )


class _Heap(Structure):
    _fields_ = (("size", c_uint64), ("flags", c_uint32))


class _MemoryProperties(Structure):
    _fields_ = (
        ("type_count", c_uint32),
        ("types", (c_uint32 * 2) * 32),
        ("heap_count", c_uint32),
        ("heaps", _Heap * 16),
    )


class _ExtensionProperties(Structure):
    _fields_ = (("name", c_char * 256), ("version", c_uint32))


@dataclass(frozen=True, slots=True)
class PhysicalDevice:
    """A device as the Vulkan loader lists it; `local_memory_bytes` sums its own heaps."""

    vendor_id: int
    device_id: int
    name: str
    uuid: str | None
    pci_address: str | None
    local_memory_bytes: int


def physical_devices() -> tuple[PhysicalDevice, ...]:
    """List the loader's devices in its order; none if there is no loader or it does not start."""
    try:
        loader = ctypes.CDLL("vulkan-1.dll" if sys.platform == "win32" else "libvulkan.so.1")
    except OSError:
        return ()
    application = _ApplicationInfo(api_version=_API_VERSION_1_1)
    create_info = _InstanceCreateInfo(
        type=_STRUCTURE_INSTANCE_CREATE_INFO, application_info=ctypes.pointer(application)
    )
    instance = c_void_p()
    if loader.vkCreateInstance(byref(create_info), None, byref(instance)) != _VK_SUCCESS:
        return ()
    try:
        count = c_uint32()
        loader.vkEnumeratePhysicalDevices(instance, byref(count), None)
        handles = (c_void_p * count.value)()
        loader.vkEnumeratePhysicalDevices(instance, byref(count), handles)
        return tuple(_read(loader, c_void_p(handle)) for handle in handles[: count.value])
    finally:
        loader.vkDestroyInstance(instance, None)


def _read(loader: Any, handle: c_void_p) -> PhysicalDevice:
    pci = _PciBusInfo(type=_STRUCTURE_PCI_BUS_INFO)
    has_pci = b"VK_EXT_pci_bus_info" in _extensions(loader, handle)
    identity = _IdProperties(
        type=_STRUCTURE_ID_PROPERTIES, next=ctypes.addressof(pci) if has_pci else None
    )
    properties = _Properties2(type=_STRUCTURE_PROPERTIES_2, next=ctypes.addressof(identity))
    loader.vkGetPhysicalDeviceProperties2(handle, byref(properties))
    memory = _MemoryProperties()
    loader.vkGetPhysicalDeviceMemoryProperties(handle, byref(memory))
    return PhysicalDevice(
        vendor_id=properties.vendor_id,
        device_id=properties.device_id,
        name=properties.device_name.decode(errors="replace"),
        uuid=normal_uuid(bytes(identity.device_uuid)),
        pci_address=pci_address(pci.domain, pci.bus, pci.device, pci.function) if has_pci else None,
        local_memory_bytes=sum(
            heap.size
            for heap in memory.heaps[: memory.heap_count]
            if heap.flags & _HEAP_DEVICE_LOCAL
        ),
    )


def _extensions(loader: Any, handle: c_void_p) -> set[bytes]:
    count = c_uint32()
    loader.vkEnumerateDeviceExtensionProperties(handle, None, byref(count), None)
    extensions = (_ExtensionProperties * count.value)()
    loader.vkEnumerateDeviceExtensionProperties(handle, None, byref(count), extensions)
    return {extension.name for extension in extensions}
