"""Cores, caches and memory nodes, read from folders laid out as Linux lays them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu.probes.topology import (
    caches,
    format_cpu_list,
    numa_nodes,
    parse_cpu_list,
    physical_cores,
)

KIB, MIB, GIB = 2**10, 2**20, 2**30


@pytest.fixture
def two_sockets(tmp_path: Path) -> Path:
    """Two packages of two cores of two threads: processors 0 2 4 6 on one, 1 3 5 7 on the other.

    Threads of a core are n and n + 4, as many servers number them.
    """
    for cpu in range(8):
        package, core = cpu % 2, cpu % 4 // 2
        threads = f"{cpu % 4},{cpu % 4 + 4}"
        cpu_folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}"
        _write(cpu_folder / "topology/physical_package_id", f"{package}\n")
        _write(cpu_folder / "topology/core_id", f"{core}\n")
        for index, (level, kind, size, shared) in enumerate(
            [
                (1, "Data", "32K", threads),
                (1, "Instruction", "64K", threads),
                (2, "Unified", "1024K", threads),
                (3, "Unified", "16M", f"{package},{package + 2},{package + 4},{package + 6}"),
            ]
        ):
            cache = cpu_folder / f"cache/index{index}"
            _write(cache / "level", f"{level}\n")
            _write(cache / "type", f"{kind}\n")
            _write(cache / "size", f"{size}\n")
            _write(cache / "shared_cpu_list", f"{shared}\n")
    for node, kilobytes in ((0, 33554432), (1, 16777216)):
        folder = tmp_path / f"sys/devices/system/node/node{node}"
        _write(folder / "cpulist", f"{node},{node + 2},{node + 4},{node + 6}\n")
        _write(folder / "meminfo", f"Node {node} MemTotal:       {kilobytes} kB\nNode x y\n")
    return tmp_path


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_two_threads_of_a_core_are_one_core(two_sockets: Path) -> None:
    assert physical_cores(set(range(8)), two_sockets) == 4
    assert physical_cores({0, 4}, two_sockets) == 1
    assert physical_cores({0, 1}, two_sockets) == 2


def test_cores_of_a_machine_that_does_not_tell(tmp_path: Path) -> None:
    assert physical_cores({0, 1}, tmp_path) is None


def test_caches_within_reach_are_counted_once(two_sockets: Path) -> None:
    assert caches(set(range(8)), two_sockets) == [
        {"level": 1, "size_bytes": 32 * KIB, "instances": 4},
        {"level": 2, "size_bytes": 1024 * KIB, "instances": 4},
        {"level": 3, "size_bytes": 16 * MIB, "instances": 2},
    ]
    assert [cache["instances"] for cache in caches({0, 4}, two_sockets)] == [1, 1, 1]


def test_memory_nodes_with_the_processors_that_may_be_used(two_sockets: Path) -> None:
    assert numa_nodes({0, 1, 2, 4, 6}, two_sockets) == [
        {"node": 0, "cpus": "0,2,4,6", "memory_bytes": 32 * GIB},
        {"node": 1, "cpus": "1", "memory_bytes": 16 * GIB},
    ]


def test_the_kernels_notation() -> None:
    assert parse_cpu_list("0-3,8,10-11\n") == {0, 1, 2, 3, 8, 10, 11}
    assert parse_cpu_list("\n") == set()
    assert format_cpu_list({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11"


@given(st.sets(st.integers(0, 300)))
def test_the_notation_reads_back(processors: set[int]) -> None:
    assert parse_cpu_list(format_cpu_list(processors)) == processors
