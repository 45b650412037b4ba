"""A card that OpenCL or Vulkan does not find, for want of a loader's file or by a setting."""

from dataclasses import replace
from typing import Any

import pytest

from fuel_gpu.probes.finding import Finding
from fuel_gpu.probes.loader_diagnosis import diagnose_loaders
from fuel_gpu.probes.report import DeviceInfo, ProbeReport
from fuel_gpu.probes.surroundings import PciGpu, Surroundings, VendorFile

AMD = PciGpu("0000:03:00.0", "AMD", "amdgpu")
POCL_FILE = VendorFile("/etc/OpenCL/vendors/pocl.icd", "libpocl.so.2")


def device(name: str, **fields: Any) -> DeviceInfo:
    return DeviceInfo(
        id=name, backend=name.partition(":")[0], name="Some Card", memory_bytes=1 << 33, **fields
    )


CUDA = device("cuda:0")
POCL = device("opencl:0", host_processor=True)


def findings(
    around: Surroundings, *devices: DeviceInfo, idle: tuple[PciGpu, ...] = ()
) -> list[Finding]:
    return list(diagnose_loaders(ProbeReport(devices=devices), around, list(idle)))


def test_a_card_that_no_vendor_file_names_is_told_how_to_get_one() -> None:
    around = Surroundings(opencl_vendor_files=(POCL_FILE,))
    assert findings(around, CUDA, POCL) == [
        Finding(
            severity="warning",
            subject="opencl",
            what="no OpenCL vendor file in /etc/OpenCL/vendors names a driver for the NVIDIA GPU",
            remedy="echo libnvidia-opencl.so.1 | sudo tee /etc/OpenCL/vendors/nvidia.icd, or"
            " reinstall NVIDIA's driver with its OpenCL library",
        )
    ]
    (found,) = findings(around, idle=(AMD,))
    assert (found.severity, "the AMD GPU" in found.what) == ("problem", True)


def test_a_card_that_opencl_drives_or_whose_kernel_driver_is_missing_needs_no_file() -> None:
    by_opencl = device("opencl:0", details={"vendor": "NVIDIA Corporation", "type": "gpu"})
    assert findings(Surroundings(), CUDA, by_opencl) == []
    assert findings(Surroundings(), idle=(replace(AMD, kernel_driver=None),)) == []
    assert findings(Surroundings(missing_packages=frozenset({"pyopencl"})), CUDA) == []
    assert findings(Surroundings(system="win32"), CUDA) == []


def test_a_vendor_file_whose_driver_gives_no_device_is_named() -> None:
    rusticl = VendorFile("/etc/OpenCL/vendors/rusticl.icd", "libRusticlOpenCL.so.1")
    (found,) = findings(Surroundings(opencl_vendor_files=(rusticl,)), idle=(AMD,))
    assert found.what == (
        "/etc/OpenCL/vendors/rusticl.icd names a driver for the AMD GPU, but it gives no device"
    )
    assert "RUSTICL_ENABLE=radeonsi" in found.remedy


def test_a_vendor_file_that_names_a_missing_library_is_named() -> None:
    gone = VendorFile("/etc/OpenCL/vendors/old.icd", "/opt/old/libold.so", there=False)
    assert findings(Surroundings(opencl_vendor_files=(gone, POCL_FILE)), POCL) == [
        Finding(
            severity="warning",
            subject="opencl",
            what="/etc/OpenCL/vendors/old.icd names /opt/old/libold.so, which is not there",
            remedy="reinstall that driver, or remove /etc/OpenCL/vendors/old.icd",
        )
    ]


@pytest.mark.parametrize(
    ("devices", "severity"), [((), "problem"), ((POCL,), "warning"), ((CUDA,), "problem")]
)
def test_a_setting_that_names_no_vendor_file_is_the_cause_of_all(
    devices: tuple[DeviceInfo, ...], severity: str
) -> None:
    around = Surroundings(variables={"OCL_ICD_VENDORS": "/nowhere"})
    (found,) = findings(around, *devices)
    assert (found.severity, found.what, found.remedy) == (
        severity,
        "OCL_ICD_VENDORS=/nowhere names no OpenCL vendor file",
        "unset OCL_ICD_VENDORS, or let it name /etc/OpenCL/vendors",
    )


def test_a_setting_that_names_no_manifest_is_a_problem() -> None:
    variables = {"VK_DRIVER_FILES": "/nowhere.json"}
    (found,) = findings(Surroundings(variables=variables))
    assert (found.severity, found.subject) == ("problem", "vulkan")
    assert found.what == "VK_DRIVER_FILES=/nowhere.json names no driver's manifest"
    assert found.remedy.startswith("unset VK_DRIVER_FILES")


def test_manifests_that_give_no_device_are_a_note() -> None:
    around = Surroundings(vulkan_manifests=("/usr/share/vulkan/icd.d/radeon_icd.json",))
    (found,) = findings(around)
    assert (found.severity, found.subject) == ("note", "vulkan")
    assert found.what.endswith("/usr/share/vulkan/icd.d/radeon_icd.json")
    assert findings(around, device("vulkan:0", host_processor=True)) == []


@pytest.mark.parametrize(
    ("capabilities", "in_container", "told"),
    [
        ("compute,utility", True, True),
        ("compute,graphics", True, False),
        ("all", True, False),
        ("compute,utility", False, False),
    ],
)
def test_a_container_whose_driver_lacks_graphics_has_no_vulkan(
    capabilities: str, in_container: bool, told: bool
) -> None:
    around = Surroundings(
        variables={"NVIDIA_DRIVER_CAPABILITIES": capabilities},
        in_container=in_container,
        missing_packages=frozenset({"pyopencl"}),
    )
    expected = Finding(
        severity="note",
        subject="vulkan",
        what=f"NVIDIA_DRIVER_CAPABILITIES={capabilities} leaves out the Vulkan driver",
        remedy="add graphics to it when the container is started",
    )
    assert findings(around, CUDA) == ([expected] if told else [])
