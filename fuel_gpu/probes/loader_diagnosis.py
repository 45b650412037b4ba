"""Why a card is not found through OpenCL or Vulkan: the files and settings of their loaders."""

from collections.abc import Iterator
from typing import Final

from fuel_gpu.probes.doors import vendor
from fuel_gpu.probes.finding import Finding, Severity
from fuel_gpu.probes.report import ProbeReport
from fuel_gpu.probes.selection import is_gpu
from fuel_gpu.probes.surroundings import OPENCL_VENDORS, PciGpu, Surroundings

_OPENCL_LIBRARIES: Final = {
    "NVIDIA": ("nvidia-opencl",),
    "AMD": ("amdocl", "rusticl", "mesaopencl"),
    "Intel": ("igdrcl", "rusticl", "mesaopencl", "beignet"),
}
"""Parts of the names of the libraries that drive each vendor's cards."""

_OPENCL_PACKAGES: Final = {
    "NVIDIA": f"echo libnvidia-opencl.so.1 | sudo tee {OPENCL_VENDORS}/nvidia.icd, or reinstall"
    " NVIDIA's driver with its OpenCL library",
    "AMD": "install ROCm's OpenCL (rocm-opencl) or Mesa's (apt install mesa-opencl-icd)",
    "Intel": "apt install intel-opencl-icd",
}


def diagnose_loaders(
    report: ProbeReport, around: Surroundings, idle: list[PciGpu]
) -> Iterator[Finding]:
    """Say what is wrong with the files by which drivers make themselves known.

    Parameters
    ----------
    report
        What the probe found.
    around
        What the system shows; of others than Linux it shows no such files.
    idle
        The cards that nothing drives.
    """
    if around.system != "linux":
        return
    if "pyopencl" not in around.missing_packages:
        yield from _opencl(report, around, idle)
    if "wgpu" not in around.missing_packages:
        yield from _vulkan(report, around)


def _opencl(report: ProbeReport, around: Surroundings, idle: list[PciGpu]) -> Iterator[Finding]:
    for file in around.opencl_vendor_files:
        if not file.there:
            yield Finding(
                severity="warning",
                subject="opencl",
                what=f"{file.path} names {file.library}, which is not there",
                remedy=f"reinstall that driver, or remove {file.path}",
            )
    setting = next(
        (n for n in ("OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH") if n in around.variables), ""
    )
    if setting and not around.opencl_vendor_files:
        found = any(device.backend == "opencl" for device in report.devices)
        yield Finding(
            severity="warning" if found else "problem",
            subject="opencl",
            what=f"{setting}={around.variables[setting]} names no OpenCL vendor file",
            remedy=f"unset {setting}, or let it name {OPENCL_VENDORS}",
        )
        return
    doors = [device for device in report.devices if is_gpu(device)]
    driven = {vendor(door) for door in doors}
    by_opencl = {vendor(door) for door in doors if door.backend == "opencl"}
    ready = {gpu.vendor for gpu in idle if gpu.vendor != "NVIDIA" and gpu.kernel_driver}
    for name in _OPENCL_LIBRARIES:
        if name in driven | ready and name not in by_opencl:
            yield _no_opencl(name, around, severity="warning" if name in driven else "problem")


def _no_opencl(name: str, around: Surroundings, severity: Severity) -> Finding:
    """Say why a vendor's card, whose driver works otherwise, has no OpenCL device."""
    naming = [
        file.path
        for file in around.opencl_vendor_files
        if any(part in file.library.lower() for part in _OPENCL_LIBRARIES[name])
    ]
    if naming:
        return Finding(
            severity=severity,
            subject="opencl",
            what=f"{', '.join(naming)} names a driver for the {name} GPU, but it gives no device",
            remedy="clinfo tells more; Mesa's rusticl wants RUSTICL_ENABLE=radeonsi for AMD's"
            " cards and =iris for Intel's",
        )
    return Finding(
        severity=severity,
        subject="opencl",
        what=f"no OpenCL vendor file in {OPENCL_VENDORS} names a driver for the {name} GPU",
        remedy=_OPENCL_PACKAGES[name],
    )


def _vulkan(report: ProbeReport, around: Surroundings) -> Iterator[Finding]:
    backends = {device.backend for device in report.devices if is_gpu(device)}
    found = any(device.backend == "vulkan" for device in report.devices)
    setting = next(
        (n for n in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES") if n in around.variables), ""
    )
    if setting and not found and not around.vulkan_manifests:
        yield Finding(
            severity="problem",
            subject="vulkan",
            what=f"{setting}={around.variables[setting]} names no driver's manifest",
            remedy=f"unset {setting}, or let it name one of the files in /usr/share/vulkan/icd.d",
        )
    elif not found and around.vulkan_manifests:
        yield Finding(
            severity="note",
            subject="vulkan",
            what="manifests of Vulkan drivers are here, but none of them gives a device: "
            + ", ".join(around.vulkan_manifests),
        )
    capabilities = around.variables.get("NVIDIA_DRIVER_CAPABILITIES", "all")
    left_out = not {"all", "graphics"} & set(capabilities.split(","))
    if left_out and around.in_container and "cuda" in backends and "vulkan" not in backends:
        yield Finding(
            severity="note",
            subject="vulkan",
            what=f"NVIDIA_DRIVER_CAPABILITIES={capabilities} leaves out the Vulkan driver",
            remedy="add graphics to it when the container is started",
        )
