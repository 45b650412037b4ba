"""What NVIDIA's management library (NVML, through nvidia-ml-py) tells about each card."""

from dataclasses import dataclass
from typing import Any

from fuel_gpu.probes.identity import normal_pci_address, normal_uuid


@dataclass(frozen=True, slots=True)
class PcieLink:
    """A card's PCI Express link: generation and lanes, at best in this slot and right now.

    An idle link trains down to generation 1 by itself; its width does not change.
    """

    max_generation: int
    max_width: int
    generation: int
    width: int

    def __str__(self) -> str:
        """Write ``PCIe 4 x16``, and what it is now where that differs."""
        best = f"PCIe {self.max_generation} x{self.max_width}"
        if (self.generation, self.width) == (self.max_generation, self.max_width):
            return best
        return f"{best}, now {self.generation} x{self.width}"


@dataclass(frozen=True, slots=True)
class Board:
    """One card as NVML knows it; None for what this card or driver does not tell."""

    name: str
    pci_address: str | None
    uuid: str | None
    memory_bytes: int | None
    compute_capability: tuple[int, int] | None
    link: PcieLink | None
    nvlinks: int
    mig: bool


@dataclass(frozen=True, slots=True)
class Boards:
    """All cards that NVML lists, and the driver's version.

    Parameters
    ----------
    cuda_version
        The CUDA version that the driver supports at most, 1000 major + 10 minor; 0 unknown.
    error
        NVML's error code if it could not start (`pynvml.NVML_ERROR_...`), else None.
    error_text
        The same in words.
    lost
        Cards that are there but do not answer, in words.
    """

    boards: tuple[Board, ...] = ()
    driver_version: str = ""
    cuda_version: int = 0
    error: int | None = None
    error_text: str = ""
    lost: tuple[str, ...] = ()


def read_boards(nvml: Any) -> Boards:
    """Ask NVML for all cards.

    Parameters
    ----------
    nvml
        The module ``pynvml``, or one with its functions.
    """
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return Boards(error=error.value, error_text=str(error))
    try:
        driver_version = nvml.nvmlSystemGetDriverVersion()
        cuda_version = nvml.nvmlSystemGetCudaDriverVersion()
        boards, lost = [], []
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                boards.append(_read_board(nvml, nvml.nvmlDeviceGetHandleByIndex(index)))
            except nvml.NVMLError as error:
                lost.append(f"card {index} does not answer ({error})")
        return Boards(tuple(boards), driver_version, cuda_version, lost=tuple(lost))
    except nvml.NVMLError as error:
        return Boards(error=error.value, error_text=str(error))
    finally:
        nvml.nvmlShutdown()


def _read_board(nvml: Any, handle: Any) -> Board:
    def ask(function: str, *arguments: Any) -> Any:
        """Call one of NVML's functions; None if this card or this driver does not have it."""
        try:
            return getattr(nvml, function)(handle, *arguments)
        except nvml.NVMLError as error:
            if error.value in (nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED):
                raise
            return None

    pci = ask("nvmlDeviceGetPciInfo")
    memory = ask("nvmlDeviceGetMemoryInfo")
    uuid = ask("nvmlDeviceGetUUID")
    mig = ask("nvmlDeviceGetMigMode")
    link = [
        ask(function)
        for function in (
            "nvmlDeviceGetMaxPcieLinkGeneration",
            "nvmlDeviceGetMaxPcieLinkWidth",
            "nvmlDeviceGetCurrPcieLinkGeneration",
            "nvmlDeviceGetCurrPcieLinkWidth",
        )
    ]
    return Board(
        name=nvml.nvmlDeviceGetName(handle),
        pci_address=None if pci is None else normal_pci_address(pci.busId),
        uuid=None if uuid is None else normal_uuid(uuid),
        memory_bytes=None if memory is None else memory.total,
        compute_capability=ask("nvmlDeviceGetCudaComputeCapability"),
        link=None if None in link else PcieLink(*link),
        nvlinks=sum(
            ask("nvmlDeviceGetNvLinkState", number) == nvml.NVML_FEATURE_ENABLED
            for number in range(nvml.NVML_NVLINK_MAX_LINKS)
        ),
        mig=mig is not None and mig[0] == nvml.NVML_DEVICE_MIG_ENABLE,
    )
