"""One source, two dialects: run on an OpenCL device against NumPy, compiled for CUDA."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_compile import nvrtc_or_none
from opencl_launcher import opencl_engine

from fuel_gpu.arrays.axis_lists import link_axes
from fuel_gpu.arrays.engine import NUMPY, Engine
from fuel_gpu.arrays.kernel_sources import kernel_source
from fuel_gpu.arrays.peel import removal_distances


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((70, 9), 0), ((3, 600, 2), 1), ((5, 19, 5), 2), ((1, 1), 0), ((257, 300), 0)],
)
def test_scans_equal_numpys(shape: tuple[int, ...], axis: int) -> None:
    values = np.random.default_rng(1).integers(0, 2**64, shape, dtype=np.uint64)
    got = opencl_engine().prefix_min(values.copy(), axis)
    assert (got == np.minimum.accumulate(values, axis=axis)).all()


@pytest.mark.parametrize("rows", [2, 257])
def test_unions_equal_numpys(rows: int) -> None:
    words = np.random.default_rng(rows).integers(0, 2**20, (rows, 5), dtype=np.uint64)
    got = opencl_engine().prefix_or(words.copy())
    assert (got == np.bitwise_or.accumulate(words, axis=0)).all()


def buckets(kind: str, rng: np.random.Generator) -> tuple[list[Any], Any, Any]:
    groups = np.sort(rng.integers(0, 3, 700)).astype(np.uint64)
    points = rng.random((700, 4))
    if kind == "tied":
        points = rng.integers(0, 6, (700, 4)).astype(np.float64)
    if kind == "degenerate":
        points[:, 1] = 3.0
    return list(points.T.copy()), groups, rng.random(700) < 0.05


@pytest.mark.parametrize("kind", ["continuous", "tied", "degenerate"])
def test_the_peel_leaves_the_same_bits(kind: str) -> None:
    columns, groups, pinned = buckets(kind, np.random.default_rng(7))

    def removed(engine: Engine) -> Any:
        return removal_distances(link_axes(columns, groups, engine), pinned, engine)

    assert removed(opencl_engine()).tobytes() == removed(NUMPY).tobytes()


def watched(*arguments: str) -> subprocess.CompletedProcess[str]:
    oclgrind = shutil.which("oclgrind")
    if oclgrind is None:
        pytest.skip("oclgrind, which interprets kernels and watches their memory, is not installed")
    script = str(Path(__file__).with_name("watched_kernels.py"))
    return subprocess.run(
        [oclgrind, "--data-races", sys.executable, script, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "PYOPENCL_NO_CACHE": "1"},
        check=False,
    )


def test_oclgrind_sees_no_race_and_no_stray_access() -> None:
    run = watched()
    assert (run.returncode, run.stdout, run.stderr) == (0, "watched 10 kernels\n", "")


def test_oclgrind_would_see_a_race() -> None:
    assert "data race" in watched("--broken").stderr


@pytest.mark.parametrize("capability", ["70", "80", "90"])
def test_the_cuda_dialect_compiles(capability: str) -> None:
    nvrtc = nvrtc_or_none()
    if nvrtc is None:
        pytest.skip("no NVRTC: install nvidia-cuda-nvrtc-cu12 to compile CUDA without a GPU")
    ptx = nvrtc(kernel_source("cuda"), capability)
    kernels = re.findall(r"^KERNEL (\w+)", kernel_source("cuda"), re.MULTILINE)
    assert {"scan_by_thread", "peel_choose", "placement_follow"} <= set(kernels)
    for kernel in kernels:
        assert f".entry {kernel}(" in ptx
    assert "fma.rn.f64" not in ptx
