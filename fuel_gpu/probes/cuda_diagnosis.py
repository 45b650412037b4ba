"""Why there is no CUDA device, from what the machine shows, and what mends it."""

import ctypes
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fuel_gpu.probes.cuda_runtime import Runtime, version_text
from fuel_gpu.probes.nvml import Boards
from fuel_gpu.probes.report import Unavailable

_NVIDIA: Final = "0x10de"
_DISPLAY_CLASS: Final = "0x03"

# From cuda_runtime_api.h and nvml.h; both are stable interfaces.
CUDA_ERROR_INSUFFICIENT_DRIVER: Final = 35
CUDA_ERROR_NO_DEVICE: Final = 100
NVML_ERROR_NO_PERMISSION: Final = 4
NVML_ERROR_LIB_RM_VERSION_MISMATCH: Final = 18

NO_CARD: Final = "no NVIDIA card or driver is found"
NODES_CLOSED: Final = "this user may not open the NVIDIA device nodes"
"""Reasons that `fuel_gpu.probes.diagnosis` tells apart from the others."""

_INSTALL_DRIVER: Final = "install NVIDIA's driver, then restart"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the machine shows of NVIDIA hardware and its driver, libraries aside.

    Parameters
    ----------
    pci_addresses
        Cards on the PCI bus.
    driver_library
        Whether the CUDA driver's library loads.
    kernel_module
        Whether the driver's kernel module is loaded.
    device_node
        ``/dev/nvidiactl``: True if this user may open it, False if not, None if it is not there.
    visible_devices
        The variable CUDA_VISIBLE_DEVICES, None if it is not set.
    """

    pci_addresses: tuple[str, ...] = ()
    driver_library: bool = False
    kernel_module: bool = False
    device_node: bool | None = None
    visible_devices: str | None = None

    @property
    def any_hardware(self) -> bool:
        """Whether there seems to be a card."""
        return bool(self.pci_addresses) or self.kernel_module or self.device_node is not None


def gather_evidence(root: Path, environment: Mapping[str, str]) -> Evidence:
    """Look for NVIDIA hardware and its driver, without calling the driver.

    Parameters
    ----------
    root
        Where Linux' ``proc``, ``sys`` and ``dev`` are mounted.
    environment
        The process's environment variables.
    """
    node = root / "dev/nvidiactl"
    return Evidence(
        pci_addresses=tuple(
            sorted(
                device.name
                for device in (root / "sys/bus/pci/devices").glob("*")
                if _word(device / "vendor") == _NVIDIA
                and _word(device / "class").startswith(_DISPLAY_CLASS)
            )
        ),
        driver_library=_loads("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"),
        kernel_module=(root / "proc/driver/nvidia/version").exists(),
        device_node=os.access(node, os.R_OK | os.W_OK) if node.exists() else None,
        visible_devices=environment.get("CUDA_VISIBLE_DEVICES"),
    )


def diagnose(evidence: Evidence, boards: Boards, runtime: Runtime) -> Unavailable:
    """Say why CUDA lists no device: the first cause that explains all the others."""
    reason, remedy = _reason_and_remedy(evidence, boards, runtime)
    return Unavailable(backend="cuda", reason=reason, remedy=remedy)


def _reason_and_remedy(evidence: Evidence, boards: Boards, runtime: Runtime) -> tuple[str, str]:
    names = ", ".join(board.name for board in boards.boards)
    where = ", ".join(evidence.pci_addresses)
    if boards.error == NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return (
            "the NVIDIA driver's library and its kernel module are of different versions",
            "restart: the driver was updated while the old module was loaded",
        )
    if not evidence.driver_library:
        if evidence.kernel_module or evidence.device_node is not None:
            return (
                "the NVIDIA kernel module is loaded, but the driver's library libcuda.so.1 is not"
                " found",
                "in a container, pass the card in with NVIDIA's container toolkit (docker run"
                " --gpus all); else reinstall the driver",
            )
        if evidence.pci_addresses:
            return f"an NVIDIA card is here ({where}), but no driver is installed", _INSTALL_DRIVER
        return (
            NO_CARD,
            "none is needed without a card; with one, install NVIDIA's driver"
            + ("" if runtime.installed else " and pip install 'fuel-gpu[cuda12]'")
            + "; in a container, pass the card in (docker run --gpus all)",
        )
    if evidence.device_node is False or boards.error == NVML_ERROR_NO_PERMISSION:
        return (
            NODES_CLOSED,
            "let this user read and write /dev/nvidia*; often that is the group video or render",
        )
    if not runtime.installed:
        extra = "cuda13" if max(boards.cuda_version, runtime.driver_supports) >= 13000 else "cuda12"
        return (
            f"CuPy, which drives {names or 'CUDA devices'}, is not installed",
            f"pip install 'fuel-gpu[{extra}]'",
        )
    if runtime.import_error:
        return (
            f"CuPy cannot be imported: {runtime.import_error}",
            "reinstall it: pip install --force-reinstall 'fuel-gpu[cuda12]'",
        )
    if runtime.error == CUDA_ERROR_INSUFFICIENT_DRIVER and runtime.driver_supports:
        return (
            f"the NVIDIA driver {boards.driver_version} supports CUDA"
            f" {version_text(runtime.driver_supports)}, older than CuPy's runtime"
            f" {version_text(runtime.version)}",
            "update the driver"
            + (
                ", or pip install 'fuel-gpu[cuda12]' in place of cuda13"
                if runtime.version >= 13000 > runtime.driver_supports >= 12000
                else ""
            ),
        )
    if evidence.visible_devices is not None and runtime.error in (None, CUDA_ERROR_NO_DEVICE):
        return (
            f"CUDA_VISIBLE_DEVICES={evidence.visible_devices} hides {names or 'every device'}",
            "unset CUDA_VISIBLE_DEVICES, or name a device in it",
        )
    if evidence.device_node is None and evidence.any_hardware and sys.platform == "linux":
        return (
            "an NVIDIA card is here, but its device nodes /dev/nvidia* are not",
            "in a container, pass the card in (docker run --gpus all); else load the driver"
            " (nvidia-smi does so)",
        )
    if runtime.error in (None, CUDA_ERROR_NO_DEVICE, CUDA_ERROR_INSUFFICIENT_DRIVER):
        return (
            "the NVIDIA driver's library is installed, but it finds no device"
            + (f" ({boards.error_text})" if boards.error_text else ""),
            f"check that the card is plugged in and listed by nvidia-smi, or {_INSTALL_DRIVER}",
        )
    return (
        f"CUDA does not start: {runtime.error_text}",
        "check the card with nvidia-smi; a restart of the driver or the machine often mends it",
    )


def _word(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
