"""Each thing that can be wrong with a machine's devices is named once, with what mends it."""

from dataclasses import replace
from typing import Any

import pytest

from fuel_gpu.probes.cuda_diagnosis import NO_CARD, NODES_CLOSED
from fuel_gpu.probes.diagnosis import diagnose
from fuel_gpu.probes.doors import undriven, vendor
from fuel_gpu.probes.finding import Finding, Severity, most_severe_first
from fuel_gpu.probes.isolation import Ending
from fuel_gpu.probes.machine import read_ending
from fuel_gpu.probes.report import DeviceInfo, ProbeReport, Unavailable
from fuel_gpu.probes.surroundings import DeviceNode, PciGpu, Surroundings, VendorFile

ALL_PACKAGES = frozenset({"cupy", "pynvml", "pyopencl", "wgpu"})
NO_LIBRARIES = Surroundings(missing_packages=ALL_PACKAGES)
NVIDIA = PciGpu("0000:01:00.0", "NVIDIA", "nvidia")
AMD = PciGpu("0000:03:00.0", "AMD", "amdgpu")
NVIDIA_NODE = DeviceNode("/dev/nvidia0", group="root", group_may_open=True)
RENDER_NODE = DeviceNode("/dev/dri/renderD128", group="render", group_may_open=True)


def device(name: str, **fields: Any) -> DeviceInfo:
    return DeviceInfo(
        id=name,
        backend=name.partition(":")[0],
        name=f"Model of {name}",
        memory_bytes=1 << 33,
        **fields,
    )


CPU = device("cpu:0", host_processor=True, unified_memory=True)
CUDA = device("cuda:0", pci_address=NVIDIA.address)
POCL = device("opencl:0", host_processor=True)


def findings(around: Surroundings, *found: DeviceInfo | Unavailable) -> list[Finding]:
    devices = tuple(one for one in found if isinstance(one, DeviceInfo))
    lines = tuple(one for one in found if isinstance(one, Unavailable))
    return diagnose(ProbeReport(devices=(CPU, *devices), unavailable=lines), around)


def line(backend: str, reason: str) -> Unavailable:
    return Unavailable(backend=backend, reason=reason, remedy="as the probe says")


def test_a_machine_without_a_gpu_is_no_problem() -> None:
    around = Surroundings(missing_packages=frozenset({"cupy", "pyopencl", "wgpu"}))
    found = findings(
        around,
        line("cuda", NO_CARD),
        line("opencl", "pyopencl cannot be imported: No module named 'pyopencl'"),
        line("vulkan", "wgpu is not installed"),
    )
    assert [(one.severity, one.subject) for one in found] == [
        ("note", "cuda"),
        ("note", "opencl"),
        ("note", "vulkan"),
    ]
    found = findings(
        Surroundings(),
        line("opencl", "there is no OpenCL driver: PLATFORM_NOT_FOUND_KHR"),
        line("vulkan", "no Vulkan driver is installed"),
    )
    assert {one.severity for one in found} == {"note"}


def test_a_machine_whose_card_works_has_nothing_to_say() -> None:
    around = Surroundings(
        gpus=(NVIDIA,),
        nodes=(NVIDIA_NODE, RENDER_NODE),
        opencl_vendor_files=(VendorFile("/etc/OpenCL/vendors/n.icd", "libnvidia-opencl.so.1"),),
    )
    by_opencl = device("opencl:0", pci_address=NVIDIA.address, details={"vendor": "NVIDIA Corp."})
    by_vulkan = device("vulkan:0", pci_address=NVIDIA.address, details={"vendor_id": 0x10DE})
    assert findings(around, CUDA, by_opencl, by_vulkan) == []


# ------------------------------------------------------------------------------ CUDA's reasons


@pytest.mark.parametrize(
    "reason",
    [
        "an NVIDIA card is here (0000:01:00.0), but no driver is installed",
        "the NVIDIA driver 470.1 supports CUDA 11.4, older than CuPy's runtime 12.9",
        "CuPy, which drives CUDA devices, is not installed",
    ],
)
def test_a_card_that_nothing_drives_is_a_problem_and_one_with_another_door_a_warning(
    reason: str,
) -> None:
    around = Surroundings(gpus=(NVIDIA,), nodes=(NVIDIA_NODE,), missing_packages=ALL_PACKAGES)
    assert findings(around, line("cuda", reason)) == [
        Finding(severity="problem", subject="cuda", what=reason, remedy="as the probe says")
    ]
    by_vulkan = device("vulkan:0", pci_address=NVIDIA.address)
    assert [one.severity for one in findings(around, by_vulkan, line("cuda", reason))] == [
        "warning"
    ]


def test_a_driver_without_a_card_on_the_bus_is_a_problem_too() -> None:
    found = findings(Surroundings(), line("cuda", "CUDA does not start: error 999"))
    assert [one.severity for one in found] == ["problem"]


def test_hidden_cards_are_what_somebody_asked_for() -> None:
    around = Surroundings(gpus=(NVIDIA, replace(NVIDIA, address="0000:02:00.0")))
    hides = "CUDA_VISIBLE_DEVICES=-1 hides every device"
    assert [one.severity for one in findings(around, line("cuda", hides))] == ["warning"]
    hidden = "Some Card (0000:02:00.0) is hidden by CUDA_VISIBLE_DEVICES=0"
    found = findings(around, CUDA, line("cuda", hidden))
    assert ("note", hidden) in [(one.severity, one.what) for one in found]


@pytest.mark.parametrize("backend", ["cuda", "opencl", "npu"])
def test_a_backend_whose_probe_broke_is_a_problem(backend: str) -> None:
    (broken,) = read_ending(backend, Ending(None, "crashed with SIGSEGV")).unavailable
    (garbage,) = read_ending(backend, Ending(b"\x00")).unavailable
    found = findings(Surroundings(), broken, garbage)
    assert [(one.severity, one.what) for one in found] == [
        ("problem", broken.reason),
        ("problem", garbage.reason),
    ]


def test_what_a_plugin_lacks_is_a_warning() -> None:
    assert [one.severity for one in findings(Surroundings(), line("npu", "no firmware"))] == [
        "warning"
    ]


# --------------------------------------------------------------------------- cards on the bus


def test_a_container_without_the_cards_nodes_is_told_how_to_get_them() -> None:
    around = Surroundings(gpus=(NVIDIA, AMD), in_container=True, missing_packages=ALL_PACKAGES)
    no_driver = line("cuda", "an NVIDIA card is here (0000:01:00.0), but no driver is installed")
    assert findings(around, no_driver) == [
        Finding(
            severity="problem",
            subject="0000:01:00.0",
            what="the NVIDIA GPU at 0000:01:00.0 is here, but this container was given no device"
            " node of it",
            remedy="start the container with docker run --gpus all (with NVIDIA's container"
            " toolkit on the host)",
        ),
        Finding(
            severity="problem",
            subject="0000:03:00.0",
            what="the AMD GPU at 0000:03:00.0 is here, but this container was given no device"
            " node of it",
            remedy="start the container with docker run --device /dev/dri, and --device /dev/kfd"
            " for ROCm",
        ),
    ]


def test_a_kernel_driver_that_keeps_a_card_is_named() -> None:
    nouveau, reserved = (
        replace(NVIDIA, kernel_driver="nouveau"),
        replace(AMD, kernel_driver="vfio-pci"),
    )
    bare = replace(AMD, address="0000:04:00.0", kernel_driver=None)
    around = Surroundings(gpus=(nouveau, reserved, bare), missing_packages=ALL_PACKAGES)
    no_driver = line("cuda", "an NVIDIA card is here (0000:01:00.0), but no driver is installed")
    found = findings(around, no_driver)
    assert [(one.severity, one.subject) for one in found] == [
        ("problem", "0000:01:00.0"),
        ("note", "0000:03:00.0"),
        ("problem", "0000:04:00.0"),
    ]
    assert "run by nouveau" in found[0].what
    assert "reserved for a virtual machine" in found[1].what
    assert found[2].remedy.startswith("sudo modprobe amdgpu")


def test_an_explained_card_does_not_hide_what_is_wrong_with_another() -> None:
    reserved = replace(NVIDIA, address="0000:02:00.0", kernel_driver="vfio-pci")
    around = Surroundings(gpus=(NVIDIA, reserved), missing_packages=ALL_PACKAGES)
    old = line("cuda", "the NVIDIA driver 470.1 supports CUDA 11.4, older than CuPy's runtime 12.9")
    assert [(one.severity, one.subject) for one in findings(around, old)] == [
        ("note", "0000:02:00.0"),
        ("problem", "cuda"),
    ]


@pytest.mark.parametrize(
    ("one", "name"),
    [
        (CUDA, "NVIDIA"),
        (device("vulkan:0", details={"vendor_id": 0x1002}), "AMD"),
        (device("vulkan:0", details={"vendor_id": 0x10005}), None),
        (device("opencl:0", details={"vendor": "Intel(R) Corporation"}), "Intel"),
        (device("opencl:0", details={"vendor": "Advanced Micro Devices, Inc."}), "AMD"),
        (device("metal:0"), None),
    ],
)
def test_a_devices_vendor_is_told_by_its_backend(one: DeviceInfo, name: str | None) -> None:
    assert vendor(one) == name


def test_a_card_is_driven_by_a_door_with_its_address_or_one_that_tells_none() -> None:
    second = replace(NVIDIA, address="0000:02:00.0")
    gpus = [NVIDIA, second, AMD]
    assert undriven(gpus, [CPU, CUDA]) == [second, AMD]
    assert undriven(gpus, [CUDA, device("vulkan:0", details={"vendor_id": 0x1002})]) == [second]
    assert undriven(gpus, [device("cuda:0")]) == [AMD]
    llvmpipe = device("vulkan:0", host_processor=True, details={"vendor_id": 0x1002})
    assert undriven(gpus, [llvmpipe]) == gpus


# ------------------------------------------------------------------------------- device nodes


@pytest.mark.parametrize(
    ("node", "in_container", "remedy"),
    [
        (RENDER_NODE, False, "sudo usermod -aG render $USER, then log in again"),
        (RENDER_NODE, True, "start the container with --group-add render"),
        (
            replace(RENDER_NODE, group="109"),
            True,
            "start the container with --group-add 109",
        ),
        (
            replace(RENDER_NODE, group="root", group_may_open=False),
            False,
            "sudo setfacl -m u:$USER:rw /dev/dri/renderD128 mends it until the next start; a udev"
            " rule that sets GROUP and MODE mends it for good",
        ),
    ],
)
def test_a_node_that_may_not_be_opened_comes_with_the_command(
    node: DeviceNode, in_container: bool, remedy: str
) -> None:
    closed = replace(node, may_open=False)
    around = Surroundings(
        gpus=(AMD,), nodes=(closed,), in_container=in_container, missing_packages=ALL_PACKAGES
    )
    assert findings(around) == [
        Finding(
            severity="problem",
            subject="vulkan, opencl",
            what="this user may not open /dev/dri/renderD128",
            remedy=remedy,
        )
    ]


def test_nvidias_closed_nodes_take_the_place_of_the_probes_line() -> None:
    closed = replace(NVIDIA_NODE, may_open=False, group="video")
    around = Surroundings(gpus=(NVIDIA,), nodes=(closed,), missing_packages=ALL_PACKAGES)
    assert findings(around, line("cuda", NODES_CLOSED)) == [
        Finding(
            severity="problem",
            subject="cuda",
            what="this user may not open /dev/nvidia0",
            remedy="sudo usermod -aG video $USER, then log in again",
        )
    ]


def test_closed_nodes_that_no_card_needs_are_a_note() -> None:
    closed = (
        replace(NVIDIA_NODE, path="/dev/nvidia1", may_open=False),
        replace(RENDER_NODE, may_open=False),
    )
    around = Surroundings(gpus=(NVIDIA,), nodes=closed, missing_packages=ALL_PACKAGES)
    found = findings(around, CUDA)
    assert [(one.severity, one.remedy) for one in found] == [("note", ""), ("note", "")]


# -------------------------------------------------------------------------- OpenCL and Vulkan

OLD_POCL = "pthread (PoCL 3.0) cannot compile: its compiler is older than this processor"


def test_a_pocl_that_cannot_compile_is_a_problem_unless_another_works() -> None:
    assert findings(Surroundings(), line("opencl", OLD_POCL)) == [
        Finding(severity="problem", subject="opencl", what=OLD_POCL, remedy="as the probe says")
    ]
    assert findings(Surroundings(), POCL, line("opencl", OLD_POCL)) == [
        Finding(
            severity="note",
            subject="opencl",
            what=OLD_POCL,
            remedy="none is needed while opencl:0 works",
        )
    ]
    oclgrind = device("opencl:0", simulated=True)
    assert [f.severity for f in findings(Surroundings(), oclgrind, line("opencl", OLD_POCL))] == [
        "problem"
    ]


@pytest.mark.parametrize(
    ("backend", "reason"),
    [
        ("opencl", "pyopencl cannot be imported: libOpenCL.so.1: no such file"),
        ("vulkan", "wgpu cannot be used: RuntimeError"),
    ],
)
def test_a_library_that_is_installed_and_broken_is_a_problem(backend: str, reason: str) -> None:
    assert [one.severity for one in findings(Surroundings(), line(backend, reason))] == ["problem"]


@pytest.mark.parametrize(
    ("gpus", "devices", "severity"),
    [((), (), "note"), ((AMD,), (), "problem"), ((NVIDIA,), (CUDA,), "warning")],
)
def test_a_missing_vulkan_driver_weighs_what_the_card_loses(
    gpus: tuple[PciGpu, ...], devices: tuple[DeviceInfo, ...], severity: str
) -> None:
    around = Surroundings(gpus=gpus, missing_packages=frozenset({"pyopencl"}))
    found = findings(around, *devices, line("vulkan", "no Vulkan driver is installed"))
    assert [one.severity for one in found] == [severity]


def test_a_package_that_would_open_an_idle_card_is_a_warning() -> None:
    around = Surroundings(gpus=(AMD,), missing_packages=ALL_PACKAGES)
    found = findings(around, line("vulkan", "wgpu is not installed"))
    assert [one.severity for one in found] == ["warning"]


# ------------------------------------------------------------------------------ CUDA's devices


def test_a_driver_older_than_the_runtime_that_works_all_the_same_is_a_note() -> None:
    versions = {"cuda_runtime": "12.10", "cuda_driver_supports": "12.9"}
    (found,) = findings(NO_LIBRARIES, device("cuda:0", details=versions))
    assert (found.severity, found.subject) == ("note", "cuda:0")
    assert "the driver supports CUDA 12.9, older than CuPy's runtime 12.10" in found.what
    versions = {"cuda_runtime": "12.9", "cuda_driver_supports": "12.10"}
    assert findings(NO_LIBRARIES, device("cuda:0", details=versions)) == []


def test_what_nvml_would_have_told_is_a_note() -> None:
    details = {"unknown": "link and driver version: pip install nvidia-ml-py"}
    (found,) = findings(NO_LIBRARIES, device("cuda:0", details=details))
    assert found == Finding(
        severity="note",
        subject="cuda:0",
        what="unknown of it: link and driver version",
        remedy="pip install nvidia-ml-py",
    )


def test_problems_come_first() -> None:
    given: list[tuple[Severity, str]] = [
        ("note", "a"),
        ("problem", "b"),
        ("warning", "c"),
        ("problem", "d"),
    ]
    found = most_severe_first(
        Finding(severity=severity, subject=subject, what="") for severity, subject in given
    )
    assert [one.subject for one in found] == ["b", "d", "c", "a"]
