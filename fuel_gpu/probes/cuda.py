"""NVIDIA cards: those that CUDA's runtime can use, with what the driver knows of each."""

import importlib
import importlib.util
import os
from pathlib import Path
from typing import Any, Final

from fuel_gpu.probes.cuda_diagnosis import Evidence, diagnose, gather_evidence
from fuel_gpu.probes.cuda_runtime import Ordinal, Runtime, start_runtime, version_text
from fuel_gpu.probes.identity import equivalence_key
from fuel_gpu.probes.nvml import Board, Boards, read_boards
from fuel_gpu.probes.report import DeviceInfo, ProbeReport, Unavailable

backend: Final = "cuda"

_DTYPES: Final = (
    ("float32", (1, 0)),
    ("float64", (1, 3)),
    ("float16", (5, 3)),
    ("bfloat16", (8, 0)),
    ("tf32", (8, 0)),
    ("int8", (6, 1)),
)
"""Compute dtypes, and the compute capability from which cards compute in them.

Source: the table of arithmetic throughput in NVIDIA's CUDA C++ Programming Guide.
"""


def enumerate_devices() -> ProbeReport:
    """List the CUDA devices; an index is the ordinal of CUDA's runtime and of CuPy."""
    evidence = gather_evidence(Path("/"), os.environ)
    boards = None
    if importlib.util.find_spec("pynvml") is not None:
        boards = read_boards(importlib.import_module("pynvml"))
    return combine(evidence, boards, start_runtime(driver_present=evidence.driver_library))


def combine(evidence: Evidence, boards: Boards | None, runtime: Runtime) -> ProbeReport:
    """Match the runtime's devices with NVML's cards, and explain what is missing.

    Parameters
    ----------
    evidence
        What the machine shows of NVIDIA hardware.
    boards
        NVML's answer; None if nvidia-ml-py is not installed.
    runtime
        The answer of CUDA's runtime.
    """
    known = boards or Boards()
    board_of = [_board_of(ordinal, known) for ordinal in runtime.ordinals]
    devices = tuple(
        _describe(index, ordinal, board, runtime, boards)
        for index, (ordinal, board) in enumerate(zip(runtime.ordinals, board_of, strict=True))
    )
    unavailable = [_lost(words) for words in known.lost]
    if devices:
        unavailable += [
            _unlisted(board, evidence) for board in known.boards if board not in board_of
        ]
    else:
        unavailable.append(diagnose(evidence, known, runtime))
    return ProbeReport(devices=devices, unavailable=tuple(unavailable))


def _board_of(ordinal: Ordinal, boards: Boards) -> Board | None:
    for board in boards.boards:
        if ordinal.pci_address is not None and ordinal.pci_address == board.pci_address:
            return board
    return next((b for b in boards.boards if b.uuid is not None and b.uuid == ordinal.uuid), None)


def _describe(
    index: int, ordinal: Ordinal, board: Board | None, runtime: Runtime, boards: Boards | None
) -> DeviceInfo:
    cuda = f"CUDA {version_text(runtime.version)}"
    driver = f"NVIDIA {boards.driver_version}, {cuda}" if boards and board else cuda
    details: dict[str, Any] = {
        "compute_capability": ".".join(map(str, ordinal.compute_capability)),
        "multiprocessors": ordinal.multiprocessors,
        "cuda_runtime": version_text(runtime.version),
        "cuda_driver_supports": version_text(runtime.driver_supports),
    }
    link = ""
    if board is None:
        details["unknown"] = (
            "link and driver version: pip install nvidia-ml-py"
            if boards is None
            else f"link and driver version: NVML says {boards.error_text or 'nothing of it'}"
        )
    else:
        details["nvml_memory_bytes"] = board.memory_bytes
        details["nvlinks"] = board.nvlinks
        details["mig"] = board.mig
        link = f"{board.nvlinks} NVLinks"
        if board.link is not None:
            details["pcie_max_generation"] = board.link.max_generation
            details["pcie_max_width"] = board.link.max_width
            details["pcie_generation"] = board.link.generation
            details["pcie_width"] = board.link.width
            details["link"] = str(board.link)
            link = f"PCIe {board.link.max_generation} x{board.link.width}, {link}"
    return DeviceInfo(
        id=f"{backend}:{index}",
        backend=backend,
        name=board.name if board else ordinal.name,
        memory_bytes=ordinal.memory_bytes,
        dtypes=tuple(name for name, since in _DTYPES if ordinal.compute_capability >= since),
        driver=driver,
        pci_address=ordinal.pci_address or (board.pci_address if board else None),
        uuid=board.uuid if board and board.uuid else ordinal.uuid,
        equivalence_key=equivalence_key(
            backend, f"{ordinal.name}, {ordinal.memory_bytes} bytes", driver, link
        )
        if board
        else "",
        unified_memory=ordinal.integrated,
        details=details,
    )


def _lost(words: str) -> Unavailable:
    return Unavailable(
        backend=backend,
        reason=f"NVIDIA {words}",
        remedy="restart the machine; if it stays lost, check its power and seat",
    )


def _unlisted(board: Board, evidence: Evidence) -> Unavailable:
    name = f"{board.name} ({board.pci_address})"
    if evidence.visible_devices is not None:
        return Unavailable(
            backend=backend,
            reason=f"{name} is hidden by CUDA_VISIBLE_DEVICES={evidence.visible_devices}",
            remedy="unset CUDA_VISIBLE_DEVICES to use it",
        )
    if board.mig:
        return Unavailable(
            backend=backend,
            reason=f"{name} is split into MIG instances, and CUDA lists none of them",
            remedy="create a compute instance (nvidia-smi mig -cgi … -C), or name one in"
            " CUDA_VISIBLE_DEVICES",
        )
    return Unavailable(
        backend=backend,
        reason=f"{name} is listed by the driver but not by CUDA's runtime",
        remedy="check its compute mode (nvidia-smi -c 0 allows compute) and this user's access to"
        " /dev/nvidia*",
    )
