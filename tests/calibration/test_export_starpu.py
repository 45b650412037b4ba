"""StarPU's bus files: its node order, units and layout, as its own calibration writes them."""

import math
import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from export_tables import DOWN, MACHINE, MIB, UP, copies, device

from fuel_gpu.calibration.export_starpu import starpu_files
from fuel_gpu.calibration.table import Table

WRITTEN_BY_STARPU = (
    "# to 0\t\tto 1\t\tto 2\t\t\n"
    "0.000000e+00\t1.254167e+04\tnan\n"
    "1.217459e+04\t0.000000e+00\tnan\n"
    "nan\tnan\tnan\n"
)
"""The beginning of what StarPU 1.3.10 wrote for a CPU and an OpenCL device, its first columns."""


def numbers(text: str) -> list[list[float]]:
    return [[float(x) for x in line.split("\t")] for line in text.splitlines() if line[0] != "#"]


def bandwidth(table: Table = MACHINE) -> str:
    return starpu_files(table, "host")[0]["host.bandwidth"]


def test_the_files_are_named_after_the_host() -> None:
    assert list(starpu_files(MACHINE, "host")[0]) == ["host.bandwidth", "host.latency"]


def test_bandwidths_are_megabytes_a_second_at_32_mib() -> None:
    """Up from pinned memory in 2**21 ns, down to pageable in 2**23, OpenCL a line of 16 byte/ns."""
    to_opencl = 2**25 * 1000 / (1_000 + 2**21)
    staged = 2**25 * 1000 / (2**23 + 1_000 + 2**21)
    found = numbers(bandwidth())
    assert found[0] == pytest.approx([0, 16_000, to_opencl, math.nan], rel=1e-6, nan_ok=True)
    assert found[1] == pytest.approx([4_000, 0, staged, math.nan], rel=1e-6, nan_ok=True)
    assert found[2] == pytest.approx([math.nan, math.nan, 0, math.nan], nan_ok=True)
    assert all(math.isnan(x) for x in found[3])


def test_latencies_are_microseconds_of_the_curve_towards_zero_bytes() -> None:
    """From pinned memory 8,000 ns, down 8,000 ns, through the host 1,000 ns more."""
    found = numbers(starpu_files(MACHINE, "host")[0]["host.latency"])
    assert found[0][:3] == pytest.approx([0, 8.0, 1.0], abs=1e-3)
    assert found[1][:3] == pytest.approx([8.0, 0, 9.0], abs=2e-3)


def test_the_layout_is_that_of_starpu_itself() -> None:
    ns = {4096: 10_000, 32 * MIB: 2_675_436}
    back = {4096: 10_000, 32 * MIB: 2_756_104}
    table = msgspec.structs.replace(
        MACHINE,
        devices=(device("cpu:0", "a"), device("opencl:0", "b")),
        transfers=(copies("cpu:0", "opencl:0", ns), copies("opencl:0", "cpu:0", back)),
    )
    text = bandwidth(table)
    assert text[text.index("# to 0") :] == WRITTEN_BY_STARPU


def test_nodes_are_in_starpus_order() -> None:
    names = ("opencl:1", "cuda:1", "opencl:0", "vulkan:0", "cuda:0", "cpu:0")
    table = msgspec.structs.replace(
        MACHINE, devices=tuple(device(name, "x") for name in names), transfers=()
    )
    nodes = [line for line in bandwidth(table).splitlines() if line.startswith("# node")]
    assert nodes == [
        f"# node {place}: {name}, x"
        for place, name in enumerate(("cpu:0", "cuda:0", "cuda:1", "opencl:0", "opencl:1"))
    ]


def test_what_has_no_node_is_left_out_and_named() -> None:
    devices = (*MACHINE.devices[:2], device("vulkan:0", "a door"))
    table = msgspec.structs.replace(MACHINE, devices=devices, transfers=MACHINE.transfers[1:3])
    _, notes = starpu_files(table, "host")
    assert notes == ["vulkan:0 is left out: StarPU has no memory node for the backend vulkan"]


def test_what_was_not_measured_stands_in_the_files_comments() -> None:
    text, notes = bandwidth(), starpu_files(MACHINE, "host")[1]
    doubts = [
        "cpu:0 to opencl:0: datasheet",
        "cuda:0 to opencl:0: datasheet, through cpu:0",
        "opencl:0 to cpu:0: not known",
        "opencl:0 to cuda:0: not known",
    ]
    assert notes == doubts
    assert [line[2:] for line in text.splitlines() if line[2:] in doubts] == doubts


def test_comments_stay_on_their_lines() -> None:
    table = msgspec.structs.replace(MACHINE, devices=(device("cpu:0", "two\nlines"),), transfers=())
    assert "# node 0: cpu:0, two lines" in bandwidth(table).splitlines()


@pytest.mark.skipif(
    shutil.which("starpu_machine_display") is None, reason="starpu-tools is not installed"
)
def test_starpu_itself_reads_them(tmp_path: Path) -> None:
    """It shows 2**25 bytes in 2**22 and 2**23 ns, 11 us - 1 us and 9 us - 1 us as its own."""
    inherited = {k: v for k, v in os.environ.items() if k != "XDG_CACHE_HOME"}  # wins otherwise
    environment = inherited | {
        "STARPU_HOME": str(tmp_path),
        "STARPU_HOSTNAME": "host",
        "STARPU_OPENCL_ON_CPUS": "1",
        "STARPU_OPENCL_ONLY_ON_CPUS": "1",
    }

    def shown() -> str:
        ended = subprocess.run(
            ["starpu_machine_display"], env=environment, capture_output=True, text=True, timeout=120
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    if "OpenCL 0" not in shown():  # this run measures, and writes what the machine has
        pytest.skip("StarPU finds no OpenCL device here")
    table = msgspec.structs.replace(
        MACHINE,
        devices=(device("cpu:0", "a"), device("opencl:0", "b")),
        transfers=(copies("cpu:0", "opencl:0", UP), copies("opencl:0", "cpu:0", DOWN)),
    )
    for name, text in starpu_files(table, "host")[0].items():
        (tmp_path / ".starpu" / "sampling" / "bus" / name).write_text(text)
    lines = shown().splitlines()
    assert [line for line in lines if line.startswith(("NUMA 0\t", "OpenCL 0\t"))] == [
        "NUMA 0\t0\t8000\t",
        "OpenCL 0\t4000\t0\t",
        "NUMA 0\t0\t10\t",
        "OpenCL 0\t8\t0\t",
    ]
