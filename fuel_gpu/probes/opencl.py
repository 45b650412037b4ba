"""OpenCL through pyopencl: every device of every platform that can compile a kernel."""

import contextlib
import ctypes
import struct
from dataclasses import dataclass
from typing import Any, Final

import psutil

from fuel_gpu.probes.identity import equivalence_key, normal_uuid, pci_address
from fuel_gpu.probes.report import DeviceInfo, ProbeReport, Unavailable

backend: Final = "opencl"

_OPTIONAL_TYPES: Final = (("float64", "cl_khr_fp64", "double"), ("float16", "cl_khr_fp16", "half"))
"""Dtypes beside float32: the extension that announces each, and its name in OpenCL C."""

# From the extensions cl_khr_device_uuid and cl_khr_pci_bus_info, which pyopencl does not know.
_CL_DEVICE_UUID: Final = 0x106A
_CL_DEVICE_PCI_BUS_INFO: Final = 0x410F


@dataclass(frozen=True, slots=True)
class _Place:
    """A device and where it stands among all; sorting by `order` keeps indices stable."""

    order: tuple[bool, bool, str, str, int]
    platform: Any
    device: Any


def enumerate_devices() -> ProbeReport:
    """List every OpenCL device that compiles a kernel: hardware, then processors, simulators last.

    Platforms are sorted by name and version, not taken as the loader happens to find their files,
    so that an index stays with its device.
    """
    try:
        import pyopencl as cl
    except ImportError as error:
        return _nothing(f"pyopencl cannot be imported: {error}", "pip install 'fuel-gpu[opencl]'")
    try:
        places, unavailable = _places(cl)
    except cl.Error as error:
        return _nothing(
            f"there is no OpenCL driver: {_one_line(error)}",
            "pip install 'fuel-gpu[opencl]' brings one for the CPU; a GPU's comes with its driver"
            " and a file in /etc/OpenCL/vendors",
        )
    devices: list[DeviceInfo] = []
    for place in places:
        dtypes, failure = _compilable_dtypes(cl, place.device)
        if failure:
            unavailable.append(_cannot_compile(place, failure))
        else:
            devices.append(_describe(cl, place, dtypes, len(devices)))
    return ProbeReport(devices=tuple(devices), unavailable=tuple(unavailable))


def find(device: DeviceInfo) -> Any:
    """Give pyopencl's object for a device of a report.

    Raises
    ------
    LookupError
        If that device is no longer there.
    """
    import pyopencl as cl

    for place in _places(cl)[0]:
        if (
            _name(place.device) == device.name
            and place.platform.version.strip() == device.details["platform_version"]
            and place.order[-1] == device.details["position"]
        ):
            return place.device
    raise LookupError(f"{device.id} ({device.name}) is no longer there; probe again")


def _places(cl: Any) -> tuple[list[_Place], list[Unavailable]]:
    places: list[_Place] = []
    empty: list[Unavailable] = []
    for platform in cl.get_platforms():
        simulated = "oclgrind" in platform.name.lower()
        try:
            devices, why = platform.get_devices(), ""
        except cl.Error as error:
            devices, why = [], f": {_one_line(error)}"
        if not devices:
            empty.append(
                Unavailable(
                    backend=backend,
                    reason=f"the platform {platform.name} lists no device{why}",
                    remedy="check that this user may open the device's node (to open"
                    " /dev/dri/renderD*, join the group render)",
                )
            )
        for position, device in enumerate(devices):
            is_cpu = bool(device.type & cl.device_type.CPU)
            order = (simulated, is_cpu, platform.name, platform.version.strip(), position)
            places.append(_Place(order, platform, device))
    return sorted(places, key=lambda place: place.order), empty


def _compilable_dtypes(cl: Any, device: Any) -> tuple[tuple[str, ...], str]:
    """Compile a line of each dtype that the device announces; also why not even float32 does."""
    try:
        context = cl.Context([device])
        _compile(cl, context, "float", "")
    except cl.Error as error:
        return (), _one_line(error)
    dtypes = ["float32"]
    for dtype, extension, c_type in _OPTIONAL_TYPES:
        if extension in device.extensions.split():
            with contextlib.suppress(cl.Error):
                _compile(cl, context, c_type, extension)
                dtypes.append(dtype)
    return tuple(dtypes), ""


def _compile(cl: Any, context: Any, c_type: str, extension: str) -> None:
    pragma = f"#pragma OPENCL EXTENSION {extension} : enable\n" if extension else ""
    source = f"kernel void twice(global {c_type} *x) {{ x[get_global_id(0)] *= ({c_type})2; }}"
    cl.Program(context, pragma + source).build(cache_dir=False)


def _cannot_compile(place: _Place, failure: str) -> Unavailable:
    if "unknown target CPU" in failure:
        return Unavailable(
            backend=backend,
            reason=f"{_name(place.device)} ({_driver(place)}) cannot compile: its compiler is older"
            " than this processor (unknown target CPU)",
            remedy="install a newer PoCL, such as the system's package (apt install"
            " pocl-opencl-icd)",
        )
    return Unavailable(
        backend=backend,
        reason=f"{_name(place.device)} ({_driver(place)}) cannot compile a kernel: {failure}",
        remedy="update or reinstall this OpenCL driver",
    )


def _describe(cl: Any, place: _Place, dtypes: tuple[str, ...], index: int) -> DeviceInfo:
    device, platform = place.device, place.platform
    simulated, is_cpu = place.order[:2]
    name, driver = _name(device), _driver(place)
    return DeviceInfo(
        id=f"{backend}:{index}",
        backend=backend,
        name=name,
        memory_bytes=device.global_mem_size,
        largest_allocation_bytes=device.max_mem_alloc_size,
        dtypes=dtypes,
        driver=driver,
        pci_address=_pci_address(cl, device),
        uuid=_uuid(device),
        equivalence_key=equivalence_key(
            backend, name, driver, f"{device.max_compute_units} compute units"
        ),
        unified_memory=bool(device.host_unified_memory),
        host_processor=is_cpu and not simulated,
        simulated=simulated,
        details={
            "type": _type(cl, device),
            "vendor": device.vendor,
            "platform": platform.name,
            "platform_version": platform.version.strip(),
            "position": place.order[-1],
            "version": device.version.strip(),
            "opencl_c_version": device.opencl_c_version.strip(),
            "compute_units": device.max_compute_units,
            "clock_mhz": device.max_clock_frequency,
            "local_memory_bytes": device.local_mem_size,
            "max_work_group_size": device.max_work_group_size,
        },
    )


def _name(device: Any) -> str:
    return " ".join(device.name.split())


def _driver(place: _Place) -> str:
    return f"{place.platform.name} {place.device.driver_version}"


def _type(cl: Any, device: Any) -> str:
    for name in ("CPU", "GPU", "ACCELERATOR"):
        if device.type & getattr(cl.device_type, name):
            return name.lower()
    return "custom"


def _pci_address(cl: Any, device: Any) -> str | None:
    if "cl_khr_pci_bus_info" in device.extensions.split():
        raw = _raw_info(device, _CL_DEVICE_PCI_BUS_INFO, 16)
        if raw is not None:
            return pci_address(*struct.unpack("=4I", raw))
    with contextlib.suppress(cl.Error, AttributeError):
        slot = device.pci_slot_id_nv
        return pci_address(device.pci_domain_id_nv, device.pci_bus_id_nv, slot >> 3, slot & 7)
    with contextlib.suppress(cl.Error, AttributeError):
        topology = device.topology_amd
        return pci_address(0, topology.bus, topology.device, topology.function)
    return None


def _uuid(device: Any) -> str | None:
    if "cl_khr_device_uuid" not in device.extensions.split():
        return None
    raw = _raw_info(device, _CL_DEVICE_UUID, 16)
    return None if raw is None else normal_uuid(raw)


def _raw_info(device: Any, parameter: int, size: int) -> bytes | None:
    """Ask the OpenCL loader that pyopencl has loaded for a parameter that pyopencl lacks."""
    with contextlib.suppress(psutil.Error, OSError, AttributeError):
        paths = {mapping.path for mapping in psutil.Process().memory_maps(grouped=True)}
        for path in sorted(path for path in paths if "libOpenCL" in path):
            answer = ctypes.create_string_buffer(size)
            get_device_info = ctypes.CDLL(path).clGetDeviceInfo
            get_device_info.argtypes = [
                ctypes.c_void_p,
                ctypes.c_uint32,
                ctypes.c_size_t,
                ctypes.c_void_p,
                ctypes.c_void_p,
            ]
            if get_device_info(device.int_ptr, parameter, size, answer, None) == 0:
                return answer.raw
    return None


def _nothing(reason: str, remedy: str) -> ProbeReport:
    line = Unavailable(backend=backend, reason=reason, remedy=remedy)
    return ProbeReport(devices=(), unavailable=(line,))


def _one_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("error:")), lines[0] if lines else "")
