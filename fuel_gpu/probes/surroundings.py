"""What the system shows of GPUs apart from their drivers: PCI devices, nodes, files, settings."""

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fuel_gpu.probes import pcie

_VENDORS: Final = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}
_GPU_CLASSES: Final = ("0x03", "0x12")
"""Display controllers and processing accelerators, from the PCI ID database."""

_NODES: Final = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "dri/renderD*", "kfd")
_PACKAGES: Final = ("cupy", "pynvml", "pyopencl", "wgpu")
_CONTAINER_FILES: Final = (".dockerenv", "run/.containerenv")
_CONTAINER_WORDS: Final = ("docker", "kubepods", "containerd", "libpod", "/lxc")
_VARIABLES: Final = (
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "OCL_ICD_FILENAMES",
    "OCL_ICD_VENDORS",
    "OPENCL_VENDOR_PATH",
    "VK_DRIVER_FILES",
    "VK_ICD_FILENAMES",
)

OPENCL_VENDORS: Final = "/etc/OpenCL/vendors"
_MANIFEST_FOLDERS: Final = ("etc/vulkan", "usr/local/share/vulkan", "usr/share/vulkan")


@dataclass(frozen=True, slots=True)
class PciGpu:
    """A GPU on the PCI bus.

    Parameters
    ----------
    kernel_driver
        The kernel driver that has it, such as ``nvidia`` or ``amdgpu``; None if none has.
    hops
        The links that lead to it, the slot's first.
    """

    address: str
    vendor: str
    kernel_driver: str | None = None
    hops: tuple[pcie.Hop, ...] = ()

    def __str__(self) -> str:
        return f"the {self.vendor} GPU at {self.address}"


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A file through which a user's process reaches a GPU.

    Parameters
    ----------
    may_open
        Whether this user may read and write it.
    group
        The group that owns it, by name, or by number where it has no name here.
    group_may_open
        Whether that group may read and write it.
    """

    path: str
    may_open: bool = True
    group: str = "root"
    group_may_open: bool = False


@dataclass(frozen=True, slots=True)
class VendorFile:
    """A file that names an OpenCL driver's library.

    Parameters
    ----------
    library
        Its path or its name.
    there
        Whether it exists; True if only its name is given, which the dynamic loader looks up.
    """

    path: str
    library: str
    there: bool = True


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the system shows.

    Parameters
    ----------
    in_container
        Whether this seems to be a container.
    opencl_vendor_files, vulkan_manifests
        The files by which drivers make themselves known to the loaders, where these look for them.
    variables
        The environment variables that are set and change what is found.
    missing_packages
        Python packages that drive GPUs and are not installed.
    """

    gpus: tuple[PciGpu, ...] = ()
    nodes: tuple[DeviceNode, ...] = ()
    in_container: bool = False
    opencl_vendor_files: tuple[VendorFile, ...] = ()
    vulkan_manifests: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    missing_packages: frozenset[str] = frozenset()
    system: str = "linux"


def look_around(
    root: Path = Path("/"),
    environment: Mapping[str, str] = os.environ,
    *,
    system: str = sys.platform,
    may_open: Callable[[Path], bool] = lambda node: os.access(node, os.R_OK | os.W_OK),
) -> Surroundings:
    """Look at the system, without loading or calling any driver.

    Parameters
    ----------
    root
        Where Linux' ``dev``, ``etc``, ``proc``, ``sys`` and ``usr`` are mounted.
    environment
        The process's environment variables.
    system
        As `sys.platform`; of others than ``linux`` only variables and packages are looked at.
    may_open
        Whether this user may read and write a file.
    """
    variables = {name: environment[name] for name in _VARIABLES if environment.get(name)}
    missing = frozenset(name for name in _PACKAGES if importlib.util.find_spec(name) is None)
    if system != "linux":
        return Surroundings(variables=variables, missing_packages=missing, system=system)
    return Surroundings(
        gpus=tuple(_gpus(root)),
        nodes=tuple(_nodes(root, may_open)),
        in_container=_in_container(root, environment),
        opencl_vendor_files=tuple(_opencl_vendor_files(root, variables)),
        vulkan_manifests=tuple(_vulkan_manifests(root, variables)),
        variables=variables,
        missing_packages=missing,
        system=system,
    )


def _gpus(root: Path) -> Iterator[PciGpu]:
    for folder in sorted((root / "sys/bus/pci/devices").glob("*")):
        vendor = _VENDORS.get(_read(folder / "vendor"))
        if vendor is not None and _read(folder / "class").startswith(_GPU_CLASSES):
            driver = folder / "driver"
            yield PciGpu(
                address=folder.name,
                vendor=vendor,
                kernel_driver=driver.resolve().name if driver.exists() else None,
                hops=pcie.hops(folder.name, root),
            )


def _nodes(root: Path, may_open: Callable[[Path], bool]) -> Iterator[DeviceNode]:
    for pattern in _NODES:
        for node in sorted((root / "dev").glob(pattern)):
            facts = node.stat()
            try:
                group = node.group()
            except KeyError:
                group = str(facts.st_gid)
            yield DeviceNode(
                path=_shown(node, root),
                may_open=may_open(node),
                group=group,
                group_may_open=facts.st_mode & 0o060 == 0o060,
            )


def _in_container(root: Path, environment: Mapping[str, str]) -> bool:
    if any((root / name).exists() for name in _CONTAINER_FILES) or environment.get("container"):
        return True
    return any(word in _read(root / "proc/1/cgroup") for word in _CONTAINER_WORDS)


def _opencl_vendor_files(root: Path, variables: Mapping[str, str]) -> Iterator[VendorFile]:
    """List what the loader reads: see ocl-icd's libOpenCL(7)."""
    folder = variables.get("OPENCL_VENDOR_PATH", OPENCL_VENDORS)
    setting = variables.get("OCL_ICD_VENDORS", folder)
    place = _under(root, setting)
    if place.is_dir():
        files = sorted(place.glob("*.icd"))
    elif setting.endswith(".icd"):
        files = [_under(root, folder) / setting if "/" not in setting else place]
    else:
        files = []  # the setting is a driver's library itself, or nothing
    for file in files:
        library = next(iter(_read(file).splitlines()), "").strip()
        if library:
            there = "/" not in library or _under(root, library).exists()
            yield VendorFile(_shown(file, root), library, there)


def _vulkan_manifests(root: Path, variables: Mapping[str, str]) -> Iterator[str]:
    """List what the loader reads: see its document LoaderDriverInterface."""
    setting = variables.get("VK_DRIVER_FILES") or variables.get("VK_ICD_FILENAMES")
    places = [_under(root, part) for part in setting.split(os.pathsep)] if setting else []
    for place in places or [root / folder / "icd.d" for folder in _MANIFEST_FOLDERS]:
        files = sorted(place.glob("*.json")) if place.is_dir() else [place]
        yield from (_shown(file, root) for file in files if file.is_file())


def _under(root: Path, path: str) -> Path:
    return root / path.lstrip("/") if path.startswith("/") else Path(path)


def _shown(path: Path, root: Path) -> str:
    """Write a path as it is seen without the root that stands before it."""
    return f"/{path.relative_to(root)}" if path.is_relative_to(root) else str(path)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
