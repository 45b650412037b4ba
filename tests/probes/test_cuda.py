"""The runtime's ordinals and NVML's cards are matched, and what is missing is told."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from fuel_gpu.probes.cuda import combine
from fuel_gpu.probes.cuda_diagnosis import Evidence
from fuel_gpu.probes.cuda_runtime import Ordinal, Runtime
from fuel_gpu.probes.isolation import MARK
from fuel_gpu.probes.nvml import Board, Boards, PcieLink
from fuel_gpu.probes.report import ProbeReport

GIB = 2**30
EVIDENCE = Evidence(driver_library=True, kernel_module=True, device_node=True)
FULL_LINK = PcieLink(4, 16, 1, 16)


def board(pci: str, link: PcieLink = FULL_LINK, *, mig: bool = False) -> Board:
    return Board("NVIDIA A100-PCIE-40GB", pci, f"uuid of {pci}", 40 * GIB, (8, 0), link, 0, mig)


def ordinal(pci: str, capability: tuple[int, int] = (8, 0)) -> Ordinal:
    return Ordinal("NVIDIA A100-PCIE-40GB", pci, None, 39 * GIB, capability, 108, False)


def runtime(*ordinals: Ordinal) -> Runtime:
    return Runtime(installed=True, ordinals=ordinals, version=12090, driver_supports=12080)


def test_an_index_is_the_runtimes_ordinal_whatever_nvmls_order() -> None:
    boards = Boards((board("0000:01:00.0"), board("0000:02:00.0")), "550.54.15", 12080)
    report = combine(EVIDENCE, boards, runtime(ordinal("0000:02:00.0"), ordinal("0000:01:00.0")))
    assert [(d.id, d.pci_address, d.uuid) for d in report.devices] == [
        ("cuda:0", "0000:02:00.0", "uuid of 0000:02:00.0"),
        ("cuda:1", "0000:01:00.0", "uuid of 0000:01:00.0"),
    ]
    assert report.unavailable == ()


def test_what_a_device_is_told_to_be() -> None:
    boards = Boards((board("0000:01:00.0"),), "550.54.15", 12080)
    (device,) = combine(EVIDENCE, boards, runtime(ordinal("0000:01:00.0"))).devices
    assert device.memory_bytes == 39 * GIB  # what CUDA can give, not what NVML says is soldered on
    assert device.driver == "NVIDIA 550.54.15, CUDA 12.9"
    assert device.details["link"] == "PCIe 4 x16, now 1 x16"
    assert device.details["compute_capability"] == "8.0"
    assert not device.unified_memory


@pytest.mark.parametrize(
    ("capability", "dtypes"),
    [
        ((5, 2), {"float32", "float64"}),
        ((6, 0), {"float32", "float64", "float16"}),
        ((7, 5), {"float32", "float64", "float16", "int8"}),
        ((8, 0), {"float32", "float64", "float16", "int8", "bfloat16", "tf32"}),
        ((12, 0), {"float32", "float64", "float16", "int8", "bfloat16", "tf32"}),
    ],
)
def test_dtypes_come_with_the_compute_capability(
    capability: tuple[int, int], dtypes: set[str]
) -> None:
    (device,) = combine(EVIDENCE, None, runtime(ordinal("0000:01:00.0", capability))).devices
    assert set(device.dtypes) == dtypes


def test_cards_share_measurements_only_behind_the_same_link() -> None:
    boards = Boards(
        (
            board("0000:01:00.0"),
            board("0000:02:00.0", PcieLink(4, 16, 4, 16)),  # busy where the first is idle
            board("0000:03:00.0", PcieLink(4, 16, 4, 4)),  # trained down to four lanes
        ),
        "550.54.15",
        12080,
    )
    report = combine(EVIDENCE, boards, runtime(*(ordinal(f"0000:0{n}:00.0") for n in (1, 2, 3))))
    first, second, narrow = (device.equivalence_key for device in report.devices)
    assert first == second != narrow
    assert first


def test_without_nvml_the_device_is_there_and_its_link_unknown() -> None:
    (device,) = combine(EVIDENCE, None, runtime(ordinal("0000:01:00.0"))).devices
    assert device.driver == "CUDA 12.9"
    assert device.equivalence_key == ""  # an unknown link is equal to no other
    assert "pip install nvidia-ml-py" in device.details["unknown"]


@pytest.mark.parametrize(
    ("evidence", "missing", "reason"),
    [
        (
            replace(EVIDENCE, visible_devices="0"),
            board("0000:02:00.0"),
            "NVIDIA A100-PCIE-40GB (0000:02:00.0) is hidden by CUDA_VISIBLE_DEVICES=0",
        ),
        (
            EVIDENCE,
            board("0000:02:00.0", mig=True),
            "NVIDIA A100-PCIE-40GB (0000:02:00.0) is split into MIG instances, and CUDA lists none"
            " of them",
        ),
        (
            EVIDENCE,
            board("0000:02:00.0"),
            "NVIDIA A100-PCIE-40GB (0000:02:00.0) is listed by the driver but not by CUDA's"
            " runtime",
        ),
    ],
)
def test_a_card_that_cuda_does_not_list_is_a_line(
    evidence: Evidence, missing: Board, reason: str
) -> None:
    boards = Boards((board("0000:01:00.0"), missing), "550.54.15", 12080)
    report = combine(evidence, boards, runtime(ordinal("0000:01:00.0")))
    assert [device.id for device in report.devices] == ["cuda:0"]
    assert [line.reason for line in report.unavailable] == [reason]
    assert report.unavailable[0].remedy


def test_a_lost_card_is_a_line_beside_the_others() -> None:
    boards = Boards(
        (board("0000:01:00.0"),), "550.54.15", 12080, lost=("card 1 does not answer (GPU is lost)",)
    )
    report = combine(EVIDENCE, boards, runtime(ordinal("0000:01:00.0")))
    assert len(report.devices) == 1
    assert report.unavailable[0].reason == "NVIDIA card 1 does not answer (GPU is lost)"


@pytest.mark.skipif(sys.platform != "linux", reason="the stand-in is an ELF library")
def test_cupy_itself_over_an_old_driver_is_told_so(tmp_path: Path) -> None:
    pytest.importorskip("cupy", reason="pip install 'fuel-gpu[cuda12]'")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("a C compiler builds the stand-in for libcuda.so.1")
    (tmp_path / "cuda.c").write_text(
        "int cuInit(unsigned flags) { (void)flags; return 100; }\n"
        "int cuDriverGetVersion(int *version) { *version = 11040; return 0; }\n"
    )
    library = tmp_path / "libcuda.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "cuda.c"], check=True)
    output = subprocess.run(
        [sys.executable, "-m", "fuel_gpu.probes.child", "cuda", "60"],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    report = msgspec.json.decode(output.rpartition(MARK)[2], type=ProbeReport)
    assert report.devices == ()
    assert "supports CUDA 11.4, older than CuPy's runtime 1" in report.unavailable[0].reason
