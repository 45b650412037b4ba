"""Limits of control groups, read from folders laid out as Linux lays them."""

from pathlib import Path

import pytest

from fuel_gpu.probes.cgroup import cpu_periods, cpu_quota, memory_limit_bytes

GIB = 2**30


def write_files(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_version_2_takes_the_tightest_of_the_group_and_its_ancestors(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "proc/self/cgroup": "0::/user/job\n",
            "sys/fs/cgroup/user/cpu.max": "300000 100000\n",
            "sys/fs/cgroup/user/memory.max": f"{4 * GIB}\n",
            "sys/fs/cgroup/user/job/cpu.max": "max 100000\n",
            "sys/fs/cgroup/user/job/memory.max": f"{8 * GIB}\n",
        },
    )
    assert cpu_quota(tmp_path) == 3.0
    assert memory_limit_bytes(tmp_path) == 4 * GIB


def test_the_group_that_waited_most_counts(tmp_path: Path) -> None:
    assert cpu_periods(tmp_path) is None
    write_files(
        tmp_path,
        {
            "proc/self/cgroup": "0::/user/job\n",
            "sys/fs/cgroup/cpu.stat": "usage_usec 99\n",
            "sys/fs/cgroup/user/cpu.stat": "usage_usec 9\nnr_periods 100\nnr_throttled 7\n",
            "sys/fs/cgroup/user/job/cpu.stat": "nr_periods 90\nnr_throttled 0\n",
        },
    )
    assert cpu_periods(tmp_path) == (100, 7)


def test_version_2_in_a_container_reads_the_top(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/memory.max": f"{2 * GIB}\n",
        },
    )
    assert cpu_quota(tmp_path) == 1.5
    assert memory_limit_bytes(tmp_path) == 2 * GIB


def test_version_1_in_a_container_whose_path_is_the_hosts(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "proc/self/cgroup": "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "250000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GIB}\n",
        },
    )
    assert cpu_quota(tmp_path) == 2.5
    assert memory_limit_bytes(tmp_path) == GIB


@pytest.mark.parametrize(
    "files",
    [
        {},
        {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cpu.max": "max 100000\n",
            "sys/fs/cgroup/memory.max": "max\n",
        },
        {
            "proc/self/cgroup": "4:cpu:/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
    ],
    ids=["no control groups", "version 2", "version 1"],
)
def test_no_limit(tmp_path: Path, files: dict[str, str]) -> None:
    write_files(tmp_path, files)
    assert cpu_quota(tmp_path) is None
    assert memory_limit_bytes(tmp_path) is None
