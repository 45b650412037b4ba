"""What is wrong with the devices of a machine, from the probe's report and what lies around it."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from fuel_gpu.probes.cuda_diagnosis import NO_CARD, NODES_CLOSED
from fuel_gpu.probes.doors import undriven
from fuel_gpu.probes.finding import Finding, Severity
from fuel_gpu.probes.loader_diagnosis import diagnose_loaders
from fuel_gpu.probes.registry import BUILT_IN
from fuel_gpu.probes.report import DeviceInfo, ProbeReport, Unavailable
from fuel_gpu.probes.surroundings import DeviceNode, PciGpu, Surroundings

_PACKAGE_OF: Final = {"cuda": "cupy", "opencl": "pyopencl", "vulkan": "wgpu"}
_NODES_OF: Final = {"NVIDIA": "/dev/nvidia", "AMD": "/dev/dri/renderD", "Intel": "/dev/dri/renderD"}
_PASS_IN: Final = {
    "NVIDIA": "docker run --gpus all (with NVIDIA's container toolkit on the host)",
    "AMD": "docker run --device /dev/dri, and --device /dev/kfd for ROCm",
    "Intel": "docker run --device /dev/dri",
}
_BROKEN: Final = "its probe "
"""How the probe begins the reason of a backend that crashed, hung, raised or rambled."""

_DEFECTS: Final = ("cannot be imported", "cannot be used", "cannot compile")
_KERNEL_DRIVER_OF: Final = {"AMD": "amdgpu", "Intel": "i915 (or xe)"}


def diagnose(report: ProbeReport, around: Surroundings) -> list[Finding]:
    """Say what is wrong with a machine's devices, each cause once.

    Parameters
    ----------
    report
        What the probe found.
    around
        What the system shows.

    Returns
    -------
    list of Finding
        Cards first, then device nodes, backends, loaders' files and devices.
    """
    idle = undriven(around.gpus, report.devices)
    without_nodes = [gpu for gpu in idle if around.in_container and not _has_node(gpu, around)]
    withheld = [gpu for gpu in idle if gpu not in without_nodes and _withheld(gpu) is not None]
    explained = [*without_nodes, *withheld]
    return [
        *(_not_passed_in(gpu) for gpu in without_nodes),
        *(finding for gpu in withheld if (finding := _withheld(gpu)) is not None),
        *_closed_nodes(report, around, idle),
        *_lines(report, around, idle, explained),
        *diagnose_loaders(report, around, idle),
        *(finding for device in report.devices for finding in _of_cuda(device)),
    ]


def _has_node(gpu: PciGpu, around: Surroundings) -> bool:
    return any(node.path.startswith(_NODES_OF[gpu.vendor]) for node in around.nodes)


def _not_passed_in(gpu: PciGpu) -> Finding:
    return Finding(
        severity="problem",
        subject=gpu.address,
        what=f"{gpu} is here, but this container was given no device node of it",
        remedy=f"start the container with {_PASS_IN[gpu.vendor]}",
    )


def _withheld(gpu: PciGpu) -> Finding | None:
    """Say which kernel driver keeps a card from being used, or that none has it."""
    if gpu.kernel_driver == "vfio-pci":
        return Finding(
            severity="note",
            subject=gpu.address,
            what=f"{gpu} is reserved for a virtual machine (its kernel driver is vfio-pci)",
        )
    if gpu.vendor == "NVIDIA" and gpu.kernel_driver == "nouveau":
        return Finding(
            severity="problem",
            subject=gpu.address,
            what=f"{gpu} is run by nouveau, with which CUDA does not work",
            remedy="install NVIDIA's driver, which takes nouveau's place, then restart",
        )
    if gpu.vendor in _KERNEL_DRIVER_OF and gpu.kernel_driver is None:
        module = _KERNEL_DRIVER_OF[gpu.vendor]
        return Finding(
            severity="problem",
            subject=gpu.address,
            what=f"no kernel driver has {gpu}",
            remedy=f"sudo modprobe {module}; if that fails, a newer kernel or firmware package",
        )
    return None


def _closed_nodes(
    report: ProbeReport, around: Surroundings, idle: list[PciGpu]
) -> Iterator[Finding]:
    """Name the nodes that this user may not open: a problem where a card is unused for it."""
    closed = [node for node in around.nodes if not node.may_open]
    unused = {gpu.vendor for gpu in idle}
    has_cuda = any(device.backend == "cuda" for device in report.devices)
    for is_nvidia, group in groupby(closed, lambda node: node.path.startswith("/dev/nvidia")):
        nodes = list(group)
        hinders = not has_cuda if is_nvidia else bool(unused - {"NVIDIA"})
        yield Finding(
            severity="problem" if hinders else "note",
            subject="cuda" if is_nvidia else "vulkan, opencl",
            what=f"this user may not open {', '.join(node.path for node in nodes)}"
            + ("" if hinders else ", which keeps no card from being used"),
            remedy=_open_node(nodes[0], around.in_container) if hinders else "",
        )


def _open_node(node: DeviceNode, in_container: bool) -> str:
    if node.group_may_open and node.group != "root":
        if in_container:
            return f"start the container with --group-add {node.group}"
        return f"sudo usermod -aG {node.group} $USER, then log in again"
    return (
        f"sudo setfacl -m u:$USER:rw {node.path} mends it until the next start; a udev rule that"
        " sets GROUP and MODE mends it for good"
    )


def _lines(
    report: ProbeReport, around: Surroundings, idle: list[PciGpu], explained: list[PciGpu]
) -> Iterator[Finding]:
    """Weigh the reasons that the probe gave; those that a finding explains better are left out."""
    nvidia = [gpu for gpu in idle if gpu.vendor == "NVIDIA"]
    nvidia_explained = bool(nvidia) and all(gpu in explained for gpu in nvidia)
    closed = any(not n.may_open and n.path.startswith("/dev/nvidia") for n in around.nodes)
    for line in report.unavailable:
        broken = line.reason.startswith(_BROKEN)
        if line.backend == "cuda" and not broken:
            if nvidia_explained or (closed and line.reason == NODES_CLOSED):
                continue
        elif "cannot compile" in line.reason and (other := _works(line.backend, report)):
            yield Finding(
                severity="note",
                subject=line.backend,
                what=line.reason,
                remedy=f"none is needed while {other} works",
            )
            continue
        yield Finding(
            severity=_severity(line, around, idle, report),
            subject=line.backend,
            what=line.reason,
            remedy=line.remedy,
        )


def _works(backend: str, report: ProbeReport) -> str | None:
    """Name a device of a backend, simulators aside."""
    found = (d.id for d in report.devices if d.backend == backend and not d.simulated)
    return next(found, None)


def _severity(
    line: Unavailable, around: Surroundings, idle: list[PciGpu], report: ProbeReport
) -> Severity:
    if line.reason.startswith(_BROKEN):
        return "problem"
    if line.backend not in BUILT_IN:
        return "warning"
    if line.backend == "cuda":
        return _cuda_severity(line, around, idle, report)
    if _PACKAGE_OF.get(line.backend) in around.missing_packages:
        return "warning" if idle else "note"
    if any(words in line.reason for words in _DEFECTS):
        return "problem"
    if any(gpu.vendor != "NVIDIA" for gpu in idle):
        return "problem"
    return "warning" if around.gpus else "note"


def _cuda_severity(
    line: Unavailable, around: Surroundings, idle: list[PciGpu], report: ProbeReport
) -> Severity:
    if line.reason == NO_CARD:
        return "note"
    if "CUDA_VISIBLE_DEVICES=" in line.reason:
        return "note" if _works("cuda", report) else "warning"
    on_bus = [gpu for gpu in around.gpus if gpu.vendor == "NVIDIA"]
    driven = bool(on_bus) and not any(gpu in idle for gpu in on_bus)
    return "warning" if driven else "problem"


def _of_cuda(device: DeviceInfo) -> Iterator[Finding]:
    """Say what the probe of a CUDA device could not learn, and whether its driver is old."""
    if device.backend != "cuda":
        return
    if unknown := device.details.get("unknown"):
        what, _, remedy = str(unknown).partition(": pip ")
        yield Finding(
            severity="note",
            subject=device.id,
            what=f"unknown of it: {what}",
            remedy=f"pip {remedy}" if remedy else "",
        )
    runtime = str(device.details.get("cuda_runtime", ""))
    supports = str(device.details.get("cuda_driver_supports", ""))
    if _version(supports) < _version(runtime):
        yield Finding(
            severity="note",
            subject=device.id,
            what=f"the driver supports CUDA {supports}, older than CuPy's runtime {runtime}: both"
            " work together, but kernels that are shipped as PTX of the newer one do not load",
            remedy="update the driver",
        )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())
