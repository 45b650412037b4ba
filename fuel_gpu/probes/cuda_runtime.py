"""What CUDA's runtime, through CuPy, says of each device that it can use."""

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any

from fuel_gpu.probes.identity import normal_pci_address, normal_uuid


@dataclass(frozen=True, slots=True)
class Ordinal:
    """One device as CUDA's runtime numbers it."""

    name: str
    pci_address: str | None
    uuid: str | None
    memory_bytes: int
    compute_capability: tuple[int, int]
    multiprocessors: int
    integrated: bool


@dataclass(frozen=True, slots=True)
class Runtime:
    """What came of asking CUDA's runtime for its devices.

    Parameters
    ----------
    installed
        Whether CuPy is.
    ordinals
        Its devices, in order.
    import_error
        What went wrong when CuPy was imported.
    version, driver_supports
        CUDA versions of the runtime and, at most, of the driver: 1000 major + 10 minor; 0 unknown.
    error
        The runtime's error code when asked for devices (`cudaError_t`), None if it answered.
    error_text
        The same in words.
    """

    installed: bool
    ordinals: tuple[Ordinal, ...] = ()
    import_error: str = ""
    version: int = 0
    driver_supports: int = 0
    error: int | None = None
    error_text: str = ""


def start_runtime(*, driver_present: bool) -> Runtime:
    """Import CuPy and ask its runtime for the devices; without a driver that cannot succeed."""
    if importlib.util.find_spec("cupy") is None:
        return Runtime(installed=False)
    if not driver_present:
        return Runtime(installed=True)
    try:
        runtime = importlib.import_module("cupy").cuda.runtime
    except Exception as error:  # a broken CuPy raises much more than ImportError
        return Runtime(installed=True, import_error=f"{type(error).__name__}: {error}")
    return read_runtime(runtime)


def read_runtime(runtime: Any) -> Runtime:
    """Ask CUDA's runtime for its devices.

    Parameters
    ----------
    runtime
        The module ``cupy.cuda.runtime``, or one with its functions.
    """
    try:
        version, driver_supports = runtime.runtimeGetVersion(), runtime.driverGetVersion()
    except runtime.CUDARuntimeError as error:
        return Runtime(installed=True, error=error.status, error_text=str(error))
    try:
        ordinals = tuple(
            _read_ordinal(runtime, ordinal) for ordinal in range(runtime.getDeviceCount())
        )
    except runtime.CUDARuntimeError as error:
        return Runtime(
            installed=True,
            version=version,
            driver_supports=driver_supports,
            error=error.status,
            error_text=str(error),
        )
    return Runtime(
        installed=True, ordinals=ordinals, version=version, driver_supports=driver_supports
    )


def version_text(version: int) -> str:
    """Write a CUDA version number, 12040, as ``12.4``."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _read_ordinal(runtime: Any, ordinal: int) -> Ordinal:
    properties = runtime.getDeviceProperties(ordinal)
    uuid = properties.get("uuid")
    return Ordinal(
        name=properties["name"].decode(errors="replace"),
        pci_address=normal_pci_address(runtime.deviceGetPCIBusId(ordinal)),
        uuid=None if uuid is None else normal_uuid(bytes(uuid)),
        memory_bytes=properties["totalGlobalMem"],
        compute_capability=(properties["major"], properties["minor"]),
        multiprocessors=properties["multiProcessorCount"],
        integrated=bool(properties["integrated"]),
    )
