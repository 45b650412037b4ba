"""Choosing an engine, and going on with NumPy where the GPU fails."""

import warnings
from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np
import pytest

from fuel_gpu.arrays import engine as engines
from fuel_gpu.arrays.engine import NUMPY, Engine, choose_engine, cupy_engine, run
from fuel_gpu.errors import UsageError

GPU = Engine("cupy", cupy, 1 << 28)


@pytest.fixture(autouse=True)
def _afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(engines.ENVIRONMENT_VARIABLE, raising=False)
    engines._gpu_failed.clear()
    yield
    engines._gpu_failed.clear()


@pytest.fixture
def _with_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "cupy_engine", lambda: GPU)


@pytest.fixture
def _without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Engine:
        raise UsageError("engine cupy: CuPy finds no GPU")

    monkeypatch.setattr(engines, "cupy_engine", none)


@pytest.mark.usefixtures("_with_gpu")
def test_auto_takes_the_gpu_from_the_measured_crossover_on() -> None:
    assert choose_engine(None, work=999, crossover=1000) is NUMPY
    assert choose_engine("auto", work=1000, crossover=1000) is GPU
    assert choose_engine("auto", work=10**9, crossover=None) is NUMPY
    assert choose_engine("auto", work=1, crossover=None, on_gpu=True) is GPU


@pytest.mark.usefixtures("_with_gpu")
def test_names_decide_and_the_argument_beats_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FUEL_GPU_ENGINE", "cupy")
    assert choose_engine(None, work=1) is GPU
    assert choose_engine("numpy", work=10**9, crossover=1) is NUMPY
    assert choose_engine(NUMPY, work=10**9, crossover=1) is NUMPY


@pytest.mark.usefixtures("_without_gpu")
def test_without_a_gpu_auto_is_numpy_and_says_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_engine("auto", work=10**9, crossover=1) is NUMPY
    with pytest.raises(UsageError, match="no GPU"):
        choose_engine("cupy", work=1)


def test_unknown_names_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="engine 'torch' is none of numpy, cupy and auto"):
        choose_engine("torch", work=1)  # type: ignore[arg-type]  # what a user may type
    monkeypatch.setenv("FUEL_GPU_ENGINE", "jax")
    with pytest.raises(UsageError, match="FUEL_GPU_ENGINE 'jax'"):
        choose_engine(None, work=1)


def test_cupy_without_a_driver_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_driver() -> int:
        raise cupy.cuda.runtime.CUDARuntimeError(35)

    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", no_driver)
    cupy_engine.cache_clear()
    with pytest.raises(UsageError, match=r"no usable GPU: .*InsufficientDriver"):
        cupy_engine()


@pytest.mark.usefixtures("_with_gpu")
def test_a_gpu_out_of_memory_warns_once_and_loses_nothing() -> None:
    def program(engine: Engine) -> Any:
        if engine is GPU:
            raise cupy.cuda.memory.OutOfMemoryError(1 << 40, 0, 0)
        return engine.xp.arange(3).tolist()

    with pytest.warns(RuntimeWarning, match="OutOfMemoryError.*going on with NumPy"):
        assert run(program, GPU) == [0, 1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(program, choose_engine("auto", work=9, crossover=1)) == [0, 1, 2]


def test_other_errors_are_not_taken_for_the_gpus() -> None:
    def bad_argument(_: Engine) -> None:
        raise UsageError("no")

    def bug(_: Engine) -> None:
        raise KeyError("bug")

    with pytest.raises(UsageError):
        run(bad_argument, GPU)
    with pytest.raises(KeyError):
        run(bug, GPU)


def test_chunks_cover_everything_once() -> None:
    engine = Engine("small", np, 64)
    assert list(engine.chunks(20, 8)) == [slice(0, 8), slice(8, 16), slice(16, 20)]
    assert list(engine.chunks(0, 8)) == [slice(0, 0)]
    assert list(engine.chunks(2, 1000)) == [slice(0, 1), slice(1, 2)]
