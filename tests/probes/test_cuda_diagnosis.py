"""Each way to be without CUDA is named, with what mends it; the deepest cause is told first."""

import os
from pathlib import Path

import pytest

from fuel_gpu.probes.cuda_diagnosis import Evidence, diagnose, gather_evidence
from fuel_gpu.probes.cuda_runtime import Runtime
from fuel_gpu.probes.nvml import Board, Boards

H200 = Board("NVIDIA H200", "0000:18:00.0", None, None, (9, 0), None, 0, False)
DRIVER = Boards((H200,), "550.54.15", 12040)
RUNS = Evidence(
    pci_addresses=("0000:18:00.0",), driver_library=True, kernel_module=True, device_node=True
)
NO_DEVICE = Runtime(
    installed=True, version=12090, driver_supports=12040, error=100, error_text="no device"
)


@pytest.mark.parametrize(
    ("evidence", "boards", "runtime", "reason", "remedy"),
    [
        pytest.param(
            Evidence(),
            Boards(),
            Runtime(installed=False),
            "no NVIDIA card or driver is found",
            "none is needed without a card; with one, install NVIDIA's driver and pip install"
            " 'fuel-gpu[cuda12]'; in a container, pass the card in (docker run --gpus all)",
            id="nothing",
        ),
        pytest.param(
            Evidence(pci_addresses=("0000:18:00.0",)),
            Boards(error=12),
            Runtime(installed=True),
            "an NVIDIA card is here (0000:18:00.0), but no driver is installed",
            "install NVIDIA's driver, then restart",
            id="no driver",
        ),
        pytest.param(
            Evidence(kernel_module=True),
            Boards(error=12),
            Runtime(installed=True),
            "the NVIDIA kernel module is loaded, but the driver's library libcuda.so.1 is not"
            " found",
            "in a container, pass the card in with NVIDIA's container toolkit (docker run --gpus"
            " all); else reinstall the driver",
            id="container without the driver",
        ),
        pytest.param(
            Evidence(driver_library=True, kernel_module=True, device_node=False),
            Boards(error=4),
            NO_DEVICE,
            "this user may not open the NVIDIA device nodes",
            "let this user read and write /dev/nvidia*; often that is the group video or render",
            id="no permission",
        ),
        pytest.param(
            RUNS,
            Boards(error=18),
            NO_DEVICE,
            "the NVIDIA driver's library and its kernel module are of different versions",
            "restart: the driver was updated while the old module was loaded",
            id="updated under way",
        ),
        pytest.param(
            RUNS,
            DRIVER,
            Runtime(installed=False),
            "CuPy, which drives NVIDIA H200, is not installed",
            "pip install 'fuel-gpu[cuda12]'",
            id="library not installed",
        ),
        pytest.param(
            RUNS,
            Boards((H200,), "580.65", 13000),
            Runtime(installed=False),
            "CuPy, which drives NVIDIA H200, is not installed",
            "pip install 'fuel-gpu[cuda13]'",
            id="library not installed, newer driver",
        ),
        pytest.param(
            RUNS,
            DRIVER,
            Runtime(installed=True, import_error="ImportError: libnvrtc.so.12"),
            "CuPy cannot be imported: ImportError: libnvrtc.so.12",
            "reinstall it: pip install --force-reinstall 'fuel-gpu[cuda12]'",
            id="library broken",
        ),
        pytest.param(
            RUNS,
            Boards((H200,), "470.82", 11040),
            Runtime(installed=True, version=12090, driver_supports=11040, error=35),
            "the NVIDIA driver 470.82 supports CUDA 11.4, older than CuPy's runtime 12.9",
            "update the driver",
            id="driver older than the runtime",
        ),
        pytest.param(
            RUNS,
            DRIVER,
            Runtime(installed=True, version=13000, driver_supports=12040, error=35),
            "the NVIDIA driver 550.54.15 supports CUDA 12.4, older than CuPy's runtime 13.0",
            "update the driver, or pip install 'fuel-gpu[cuda12]' in place of cuda13",
            id="driver a generation older",
        ),
        pytest.param(
            Evidence(("0000:18:00.0",), True, True, True, visible_devices=""),
            DRIVER,
            NO_DEVICE,
            "CUDA_VISIBLE_DEVICES= hides NVIDIA H200",
            "unset CUDA_VISIBLE_DEVICES, or name a device in it",
            id="hidden",
        ),
        pytest.param(
            Evidence(driver_library=True),
            Boards(error=9, error_text="Driver Not Loaded"),
            NO_DEVICE,
            "the NVIDIA driver's library is installed, but it finds no device (Driver Not Loaded)",
            "check that the card is plugged in and listed by nvidia-smi, or install NVIDIA's"
            " driver, then restart",
            id="library without a card",
        ),
        pytest.param(
            RUNS,
            DRIVER,
            Runtime(installed=True, version=12090, driver_supports=12040, error=999,
                    error_text="cudaErrorUnknown"),
            "CUDA does not start: cudaErrorUnknown",
            "check the card with nvidia-smi; a restart of the driver or the machine often mends it",
            id="something else",
        ),
    ],
)  # fmt: skip
def test_reason_and_remedy(
    evidence: Evidence, boards: Boards, runtime: Runtime, reason: str, remedy: str
) -> None:
    line = diagnose(evidence, boards, runtime)
    assert (line.backend, line.reason, line.remedy) == ("cuda", reason, remedy)


def test_evidence_is_read_from_the_bus_the_module_and_the_nodes(tmp_path: Path) -> None:
    for address, vendor, kind in (
        ("0000:18:00.0", "0x10de", "0x030200"),
        ("0000:18:00.1", "0x10de", "0x040300"),  # the card's sound device
        ("0000:00:02.0", "0x8086", "0x030000"),
    ):
        folder = tmp_path / "sys/bus/pci/devices" / address
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "class").write_text(f"{kind}\n")
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").touch()
    node = tmp_path / "dev/nvidiactl"
    node.parent.mkdir()
    node.touch(0o600)
    evidence = gather_evidence(tmp_path, {"CUDA_VISIBLE_DEVICES": "0"})
    assert evidence.pci_addresses == ("0000:18:00.0",)
    assert evidence.kernel_module
    assert evidence.device_node is True
    assert evidence.visible_devices == "0"
    if os.getuid() != 0:  # the superuser may open anything
        node.chmod(0o000)
        assert gather_evidence(tmp_path, {}).device_node is False


def test_a_machine_without_any_of_it(tmp_path: Path) -> None:
    evidence = gather_evidence(tmp_path, {})
    assert (evidence.pci_addresses, evidence.kernel_module) == ((), False)
    assert evidence.device_node is None
    assert evidence.visible_devices is None
