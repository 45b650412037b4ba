"""A card's counters: read at intervals, summed up by figure, quiet about what a card lacks."""

import os
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fuel_gpu.calibration.backends.cuda_state import CardCounters, open_counters
from fuel_gpu.calibration.table import Conditions
from fuel_gpu.probes.report import DeviceInfo

STAND_IN = Path(__file__).parents[1] / "probes" / "nvml_stand_in.c"
READ = """
import sys, msgspec
from fuel_gpu.calibration.backends.cuda_state import open_counters
from fuel_gpu.probes.report import DeviceInfo
counters = open_counters(
    DeviceInfo(id="cuda:0", backend="cuda", name="", memory_bytes=1, pci_address=sys.argv[1])
)
if counters is not None:
    counters.look()
sys.stdout.buffer.write(msgspec.json.encode(counters and counters.conditions()))
"""


class NVMLError(Exception):
    """What a function raises that this card does not have."""


def nvml(**answers: list[Any]) -> Any:
    """Stand in for pynvml: each function gives its next answer, and none is an error."""

    def function(name: str) -> Any:
        queue = iter(answers.get(name, ()))

        def ask(handle: str, *arguments: int) -> Any:
            assert handle == "card"
            answer = next(queue, None)
            if answer is None:
                raise NVMLError
            return answer

        return ask

    clocks = {1: function("sm"), 2: function("memory")}
    return types.SimpleNamespace(
        NVMLError=NVMLError,
        NVML_CLOCK_SM=1,
        NVML_CLOCK_MEM=2,
        nvmlDeviceGetCurrPcieLinkGeneration=function("generation"),
        nvmlDeviceGetCurrPcieLinkWidth=function("width"),
        nvmlDeviceGetClockInfo=lambda handle, kind: clocks[kind](handle),
        nvmlDeviceGetCurrentClocksThrottleReasons=function("reasons"),
    )


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuel_gpu.calibration.backends.cuda_state._EVERY_S", -1.0)


@pytest.mark.usefixtures("hurried")
def test_readings_are_summed_up() -> None:
    counters = CardCounters(
        nvml(
            generation=[1, 4, 4],
            width=[16, 16, 16],
            sm=[1410, 1095, 1200],
            memory=[1215, 1215, 1215],
            reasons=[0x1, 0x4, 0x44],
        ),
        "card",
    )
    for _ in range(3):
        counters.look()
    assert counters.conditions() == Conditions(
        link_generation=4,
        link_width=16,
        sm_clock_mhz=(1095, 1410),
        memory_clock_mhz=(1215, 1215),
        throttled=("software power cap", "hardware thermal slowdown"),
    )


@pytest.mark.usefixtures("hurried")
def test_a_reason_of_one_reading_in_ten_is_none() -> None:
    counters = CardCounters(nvml(reasons=[0x8] + [0] * 9), "card")
    for _ in range(9):
        counters.look()
    found = counters.conditions()
    assert found is not None
    assert found.throttled == ("hardware slowdown",)  # one of nine
    counters.look()
    found = counters.conditions()
    assert found is not None
    assert found.throttled == ()


@pytest.mark.usefixtures("hurried")
def test_idling_and_clocks_that_somebody_set_are_no_throttling() -> None:
    counters = CardCounters(nvml(reasons=[0x1 | 0x2 | 0x10 | 0x100]), "card")
    counters.look()
    assert counters.conditions() == Conditions()


@pytest.mark.usefixtures("hurried")
def test_each_figure_begins_afresh() -> None:
    counters = CardCounters(nvml(generation=[1, 4], width=[16, 16]), "card")
    counters.look()
    counters.watch()
    assert counters.conditions() is None
    counters.look()
    assert counters.conditions() == Conditions(link_generation=4, link_width=16)


def test_readings_keep_their_distance() -> None:
    counters = CardCounters(nvml(sm=[1000, 2000]), "card")
    counters.look()
    counters.look()
    assert counters.conditions() == Conditions(sm_clock_mhz=(1000, 1000))


def test_what_a_card_does_not_tell_is_no_error() -> None:
    counters = CardCounters(nvml(), "card")
    counters.look()
    assert counters.conditions() is None


def test_without_the_package_there_are_no_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    card = DeviceInfo(
        id="cuda:0", backend="cuda", name="", memory_bytes=1, pci_address="0000:3b:00.0"
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert open_counters(card) is None
    assert open_counters(msgspec.structs.replace(card, pci_address=None)) is None


@pytest.fixture(scope="module")
def library_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the stand-in for NVIDIA's library."""
    pytest.importorskip("pynvml", reason="pip install nvidia-ml-py")
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("a C compiler on Linux builds the stand-in for libnvidia-ml.so.1")
    folder = tmp_path_factory.mktemp("nvml")
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, STAND_IN], check=True
    )
    return folder


def conditions_of(folder: Path, address: str, **environment: str) -> Conditions | None:
    output = subprocess.run(
        [sys.executable, "-c", READ, address],
        env={**os.environ, "LD_LIBRARY_PATH": str(folder), **environment},
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    return msgspec.json.decode(output, type=Conditions | None)


def test_nvidias_own_package_tells_the_same(library_folder: Path) -> None:
    idle = Conditions(
        link_generation=1, link_width=16, sm_clock_mhz=(210, 210), memory_clock_mhz=(1215, 1215)
    )
    assert conditions_of(library_folder, "0000:3b:00.0") == idle
    loaded = conditions_of(library_folder, "0000:3b:00.0", NVML_STAND_IN_LOADED="1")
    assert loaded == Conditions(
        link_generation=4,
        link_width=16,
        sm_clock_mhz=(1095, 1095),
        memory_clock_mhz=(1215, 1215),
        throttled=("software power cap",),
    )
    # the second card tells of its link only
    assert conditions_of(library_folder, "0000:af:00.0") == Conditions(
        link_generation=4, link_width=4
    )


@pytest.mark.parametrize(
    ("address", "environment"),
    [("0000:99:00.0", {}), ("0000:3b:00.0", {"NVML_STAND_IN_INIT": "9"})],
)
def test_a_card_or_a_library_that_is_not_there_is_no_error(
    library_folder: Path, address: str, environment: dict[str, str]
) -> None:
    assert conditions_of(library_folder, address, **environment) is None
