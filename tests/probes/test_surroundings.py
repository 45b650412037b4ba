"""What the system shows of GPUs is read from its files, without any driver."""

import importlib.util
from pathlib import Path

import pytest

from fuel_gpu.probes.surroundings import DeviceNode, PciGpu, VendorFile, look_around


def write(root: Path, path: str, text: str = "") -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def pci_device(root: Path, address: str, vendor: str, kind: str, driver: str = "") -> None:
    folder = f"sys/bus/pci/devices/{address}"
    write(root, f"{folder}/vendor", f"{vendor}\n")
    write(root, f"{folder}/class", f"{kind}\n")
    if driver:
        target = root / "sys/bus/pci/drivers" / driver
        target.mkdir(parents=True, exist_ok=True)
        (root / folder / "driver").symlink_to(target)


def test_gpus_of_the_three_makers_are_found_on_the_bus(tmp_path: Path) -> None:
    pci_device(tmp_path, "0000:01:00.0", "0x10de", "0x030200", "nvidia")
    pci_device(tmp_path, "0000:02:00.0", "0x1002", "0x120000")
    pci_device(tmp_path, "0000:00:02.0", "0x8086", "0x030000", "i915")
    pci_device(tmp_path, "0000:01:00.1", "0x10de", "0x040300", "snd_hda_intel")  # its sound
    pci_device(tmp_path, "0000:03:00.0", "0x1a03", "0x030000", "ast")  # a server's console
    found = look_around(tmp_path, {}, system="linux").gpus
    assert found == (
        PciGpu("0000:00:02.0", "Intel", "i915"),
        PciGpu("0000:01:00.0", "NVIDIA", "nvidia"),
        PciGpu("0000:02:00.0", "AMD", None),
    )
    assert str(found[2]) == "the AMD GPU at 0000:02:00.0"


def test_nodes_come_with_who_may_open_them(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidiactl", "dri/card0", "dri/renderD128", "kfd", "null"):
        write(tmp_path, f"dev/{name}")
    (tmp_path / "dev/kfd").chmod(0o660)
    (tmp_path / "dev/dri/renderD128").chmod(0o600)
    group = (tmp_path / "dev/kfd").group()
    nodes = look_around(
        tmp_path, {}, system="linux", may_open=lambda node: node.name != "renderD128"
    ).nodes
    assert [node.path for node in nodes] == [
        "/dev/nvidia0",
        "/dev/nvidiactl",
        "/dev/dri/renderD128",
        "/dev/kfd",
    ]
    assert nodes[2:] == (
        DeviceNode("/dev/dri/renderD128", False, group, group_may_open=False),
        DeviceNode("/dev/kfd", True, group, group_may_open=True),
    )


@pytest.mark.parametrize(
    ("file", "text", "variables", "expected"),
    [
        ("proc/1/cgroup", "0::/init.scope\n", {}, False),
        (".dockerenv", "", {}, True),
        ("run/.containerenv", "", {}, True),
        ("proc/1/cgroup", "0::/system.slice/docker-abc.scope\n", {}, True),
        ("proc/1/cgroup", "1:cpu:/kubepods/pod1/abc\n", {}, True),
        ("proc/1/cgroup", "0::/\n", {"container": "podman"}, True),
    ],
)
def test_a_container_is_told_by_its_marks(
    tmp_path: Path, file: str, text: str, variables: dict[str, str], expected: bool
) -> None:
    write(tmp_path, file, text)
    assert look_around(tmp_path, variables, system="linux").in_container is expected


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ["/etc/OpenCL/vendors/a.icd", "/etc/OpenCL/vendors/b.icd"]),
        ({"OCL_ICD_VENDORS": "/opt/icd"}, ["/opt/icd/c.icd"]),
        ({"OPENCL_VENDOR_PATH": "/opt/icd"}, ["/opt/icd/c.icd"]),
        ({"OPENCL_VENDOR_PATH": "/opt/icd", "OCL_ICD_VENDORS": "c.icd"}, ["/opt/icd/c.icd"]),
        ({"OCL_ICD_VENDORS": "/opt/icd/c.icd"}, ["/opt/icd/c.icd"]),
        ({"OCL_ICD_VENDORS": "a.icd"}, ["/etc/OpenCL/vendors/a.icd"]),
        ({"OCL_ICD_VENDORS": "/nowhere"}, []),
        ({"OCL_ICD_VENDORS": "/nowhere/c.icd"}, []),
        ({"OCL_ICD_VENDORS": "libpocl.so.2"}, []),
    ],
)
def test_vendor_files_lie_where_the_loader_looks(
    tmp_path: Path, variables: dict[str, str], expected: list[str]
) -> None:
    write(tmp_path, "etc/OpenCL/vendors/a.icd", "libnvidia-opencl.so.1\n")
    write(tmp_path, "etc/OpenCL/vendors/b.icd", "/usr/lib/libpocl.so.2\n")
    write(tmp_path, "etc/OpenCL/vendors/c.txt", "libother.so\n")
    write(tmp_path, "opt/icd/c.icd", "libother.so")
    found = look_around(tmp_path, variables, system="linux").opencl_vendor_files
    assert [file.path for file in found] == expected


def test_a_vendor_file_tells_whether_its_library_is_there(tmp_path: Path) -> None:
    write(tmp_path, "etc/OpenCL/vendors/a.icd", "libnvidia-opencl.so.1\n")
    write(tmp_path, "etc/OpenCL/vendors/b.icd", "/usr/lib/libpocl.so.2\n")
    write(tmp_path, "etc/OpenCL/vendors/c.icd", "/opt/gone.so\n")
    write(tmp_path, "etc/OpenCL/vendors/d.icd", "")
    write(tmp_path, "usr/lib/libpocl.so.2")
    assert look_around(tmp_path, {}, system="linux").opencl_vendor_files == (
        VendorFile("/etc/OpenCL/vendors/a.icd", "libnvidia-opencl.so.1"),
        VendorFile("/etc/OpenCL/vendors/b.icd", "/usr/lib/libpocl.so.2"),
        VendorFile("/etc/OpenCL/vendors/c.icd", "/opt/gone.so", there=False),
    )


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ["/etc/vulkan/icd.d/b.json", "/usr/share/vulkan/icd.d/a.json"]),
        ({"VK_DRIVER_FILES": "/usr/share/vulkan/icd.d"}, ["/usr/share/vulkan/icd.d/a.json"]),
        ({"VK_ICD_FILENAMES": "/opt/c.json:/opt/gone.json"}, ["/opt/c.json"]),
        ({"VK_DRIVER_FILES": "/gone.json", "VK_ICD_FILENAMES": "/opt/c.json"}, []),
    ],
)
def test_manifests_lie_where_the_loader_looks(
    tmp_path: Path, variables: dict[str, str], expected: list[str]
) -> None:
    for file in ("usr/share/vulkan/icd.d/a.json", "etc/vulkan/icd.d/b.json", "opt/c.json"):
        write(tmp_path, file, "{}")
    assert list(look_around(tmp_path, variables, system="linux").vulkan_manifests) == expected


def test_only_variables_that_matter_are_kept(tmp_path: Path) -> None:
    variables = {"CUDA_VISIBLE_DEVICES": "0", "HOME": "/home/me", "OCL_ICD_VENDORS": ""}
    assert look_around(tmp_path, variables, system="linux").variables == {
        "CUDA_VISIBLE_DEVICES": "0"
    }


def test_elsewhere_than_on_linux_no_files_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, ".dockerenv")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = look_around(tmp_path, {}, system="win32")
    assert not found.in_container
    assert found.missing_packages == {"cupy", "pynvml", "pyopencl", "wgpu"}
    assert found.system == "win32"


def test_this_machine_can_be_looked_at() -> None:
    found = look_around()
    assert all(node.path.startswith("/dev/") for node in found.nodes)
