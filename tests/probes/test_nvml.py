"""NVIDIA's own Python package, over a stand-in for its library, gives the cards as they are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from fuel_gpu.probes.nvml import Board, Boards, PcieLink

GIB = 2**30
SOURCE = Path(__file__).with_name("nvml_stand_in.c")
READ = """
import sys, msgspec, pynvml
from fuel_gpu.probes.nvml import read_boards
sys.stdout.buffer.write(msgspec.json.encode(read_boards(pynvml)))
"""


@pytest.fixture(scope="module")
def library_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the stand-in into a folder of its own."""
    pytest.importorskip("pynvml", reason="pip install nvidia-ml-py")
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("a C compiler on Linux builds the stand-in for libnvidia-ml.so.1")
    folder = tmp_path_factory.mktemp("nvml")
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, SOURCE], check=True
    )
    return folder


def boards_of(folder: Path, **environment: str) -> Boards:
    output = subprocess.run(
        [sys.executable, "-c", READ],
        env={**os.environ, "LD_LIBRARY_PATH": str(folder), **environment},
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    return msgspec.json.decode(output, type=Boards)


def test_the_cards_and_what_each_tells(library_folder: Path) -> None:
    boards = boards_of(library_folder)
    assert boards.driver_version == "550.54.15"
    assert boards.cuda_version == 12040
    assert boards.boards == (
        Board(
            name="NVIDIA A100-PCIE-40GB",
            pci_address="0000:3b:00.0",
            uuid="11111111-2222-3333-4444-555555555555",
            memory_bytes=40 * GIB,
            compute_capability=(8, 0),
            link=PcieLink(max_generation=4, max_width=16, generation=1, width=16),
            nvlinks=0,
            mig=False,
        ),
        Board(
            name="NVIDIA A100-SXM4-80GB",
            pci_address="0000:af:00.0",
            uuid="66666666-7777-8888-9999-aaaaaaaaaaaa",
            memory_bytes=80 * GIB,
            compute_capability=(8, 0),
            link=PcieLink(max_generation=4, max_width=16, generation=4, width=4),
            nvlinks=4,
            mig=True,
        ),
    )
    assert boards.lost == ("card 2 does not answer (GPU is lost)",)
    assert boards.error is None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (4, "Insufficient Permissions"),
        (9, "Driver Not Loaded"),
        (18, "RM has detected an NVML/RM version mismatch."),
    ],
)
def test_a_library_that_does_not_start_says_why(
    library_folder: Path, code: int, words: str
) -> None:
    boards = boards_of(library_folder, NVML_STAND_IN_INIT=str(code))
    assert boards == Boards(error=code, error_text=words)


def test_no_library_is_an_error_with_a_name(tmp_path: Path) -> None:
    pytest.importorskip("pynvml", reason="pip install nvidia-ml-py")
    if shutil.which("nvidia-smi"):
        pytest.skip("this machine has the real library")
    boards = boards_of(tmp_path)
    assert (boards.error, boards.error_text) == (12, "NVML Shared Library Not Found")


def test_how_a_link_is_written() -> None:
    assert str(PcieLink(4, 16, 4, 16)) == "PCIe 4 x16"
    assert str(PcieLink(4, 16, 1, 16)) == "PCIe 4 x16, now 1 x16"
