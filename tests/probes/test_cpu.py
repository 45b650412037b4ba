"""The CPU's probe: what this process may use of the processor and of memory."""

import os
import platform
import sys
from pathlib import Path

import psutil
import pytest

from fuel_gpu.probes.cpu import describe_processor, enumerate_devices, host_memory_bytes

X86 = """processor\t: 0
vendor_id\t: AuthenticAMD
model name\t: AMD EPYC 9654 96-Core Processor
flags\t\t: fpu sse sse4_2 smep smap avx avx2 fma f16c avx512f avx512_bf16 amx_tile sha_ni

processor\t: 1
model name\t: another
"""
ARM = """processor\t: 0
Features\t: fp asimd aes asimdhp sve bf16 i8mm
CPU implementer\t: 0x41
CPU part\t: 0xd40
"""


def processor_of(root: Path, cpuinfo: str) -> tuple[str, list[str]]:
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text(cpuinfo)
    return describe_processor(root)


def test_an_x86_processor_by_its_name_and_its_vector_instructions(tmp_path: Path) -> None:
    assert processor_of(tmp_path, X86) == (
        "AMD EPYC 9654 96-Core Processor",
        ["amx_tile", "avx", "avx2", "avx512_bf16", "avx512f", "f16c", "fma", "sse4_2"],
    )


def test_an_arm_processor_by_its_maker_and_part(tmp_path: Path) -> None:
    assert processor_of(tmp_path, ARM) == (
        f"{platform.machine()} 0x41:0xd40",
        ["asimd", "asimdhp", "bf16", "i8mm", "sve"],
    )


def test_memory_is_what_the_control_group_leaves(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    limit = tmp_path / "sys/fs/cgroup/memory.max"
    limit.parent.mkdir(parents=True)
    limit.write_text("1073741824\n")
    assert host_memory_bytes(tmp_path) == 1073741824
    limit.write_text("9223372036854771712\n")  # how version 1 says "no limit"
    assert host_memory_bytes(tmp_path) == psutil.virtual_memory().total


@pytest.mark.skipif(sys.platform != "linux", reason="affinity is set here as Linux does")
def test_only_the_processors_that_this_process_may_use_are_counted() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        (cpu,) = enumerate_devices().devices
    finally:
        os.sched_setaffinity(0, before)
    assert cpu.details["logical_cores"] == 1
    assert cpu.details["physical_cores"] == 1
    assert cpu.id == "cpu:0"
    assert cpu.dtypes == ("float32", "float64")
    assert cpu.host_processor
    assert 0 < cpu.memory_bytes <= psutil.virtual_memory().total
