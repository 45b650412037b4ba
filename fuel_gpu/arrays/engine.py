"""The array engine: NumPy or CuPy behind one ``xp``, chosen by name or by the size of the work."""

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, TypeVar

import numpy as np

from fuel_gpu.arrays.raw_kernels import RawKernels, cuda_kernels
from fuel_gpu.errors import FuelGpuError, UsageError
from fuel_gpu.numbers import whole_number

Result = TypeVar("Result")

EngineName = Literal["numpy", "cupy", "auto"]

ENVIRONMENT_VARIABLE: Final = "FUEL_GPU_ENGINE"


@dataclass(frozen=True, slots=True)
class Engine:
    """Where array programs run.

    Parameters
    ----------
    name
        ``numpy`` or ``cupy``.
    xp
        The module with NumPy's names that makes and takes the arrays.
    chunk_bytes
        How much of one array a pass should touch before the next pass starts on it: about a
        quarter of a core's second-level cache on a CPU; on a GPU what temporaries may take.
    kernels
        Raw kernels for what ``xp`` lacks or does slowly; None where ``xp`` has it all.
    """

    name: str
    xp: Any
    chunk_bytes: int
    kernels: RawKernels | None = None

    def chunks(self, count: int, item_bytes: int) -> Iterator[slice]:
        """Cut `count` items into stretches that fit the chunk; at least one, even if empty."""
        length = max(self.chunk_bytes // item_bytes, 1)
        for start in range(0, max(count, 1), length):
            yield slice(start, min(start + length, count))

    def may_hold(self, mask: Any) -> bool:
        """Whether any is true; on a GPU always, since to ask would take longer than to go on."""
        return self.kernels is not None or bool(mask.any())

    def prefix_min(self, values: Any, axis: int) -> Any:
        """Running minimum of a uint64 array along `axis`, which may be made in place."""
        if self.kernels is None:
            return self.xp.minimum.accumulate(values, axis=axis)
        return self.kernels.prefix_min(values, axis)

    def prefix_or(self, words: Any) -> Any:
        """Running union of rows of bit sets, which may be made in place."""
        if self.kernels is None:
            return self.xp.bitwise_or.accumulate(words, axis=0)
        return self.kernels.prefix_or(words)

    def take_in(self, array: Any) -> Any:
        """Bring an array, or what makes one, to the engine."""
        if self.xp is np and hasattr(array, "get") and hasattr(array, "__cuda_array_interface__"):
            return array.get()
        return self.xp.asarray(array)

    def give_out(self, array: Any) -> Any:
        """Bring an array of the engine to the host."""
        return array if self.xp is np else array.get()


NUMPY: Final = Engine("numpy", np, 256 * 1024)

_GPU_CHUNK_BYTES: Final = 256 * 1024 * 1024
_gpu_failed = threading.Event()


@cache
def cupy_engine() -> Engine:
    """Give the engine of the current CUDA device.

    Raises
    ------
    UsageError
        If CuPy is not installed or finds no usable device; the message says which.
    """
    try:
        import cupy
    except ImportError as error:
        raise UsageError(
            "engine cupy: CuPy is not installed; install fuel-gpu[cuda12] or fuel-gpu[cuda13]"
        ) from error
    try:
        devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise UsageError(f"engine cupy: CuPy finds no usable GPU: {error}") from error
    if devices == 0:
        raise UsageError("engine cupy: CuPy finds no GPU")
    return Engine("cupy", cupy, _GPU_CHUNK_BYTES, cuda_kernels(cupy))


def choose_engine(
    engine: EngineName | Engine | None,
    *,
    work: int,
    crossover: int | None = None,
    on_gpu: bool = False,
) -> Engine:
    """Choose where to run.

    Parameters
    ----------
    engine
        ``numpy``, ``cupy`` or ``auto``; None stands for ``FUEL_GPU_ENGINE`` and, where that is
        not set, for ``auto``. An engine itself is taken as it is.
    work
        Size of the work, in the crossover's unit (candidates, points).
    crossover
        The least work that the calibration saw a GPU win; None where it measured none.
    on_gpu
        Whether the arrays lie on a GPU already: ``auto`` leaves them there.

    Raises
    ------
    UsageError
        If the name is none of the three, ``cupy`` was asked for and cannot be had, or the crossover
        is no whole number.
    """
    if crossover is not None:
        whole_number(crossover, "crossover")
    if isinstance(engine, Engine):
        return engine
    name = engine or os.environ.get(ENVIRONMENT_VARIABLE) or "auto"
    if name == "numpy":
        return NUMPY
    if name == "cupy":
        return cupy_engine()
    if name != "auto":
        source = "engine" if engine else ENVIRONMENT_VARIABLE
        raise UsageError(f"{source} {name!r} is none of numpy, cupy and auto")
    wins = on_gpu or (crossover is not None and work >= crossover)
    if not wins or _gpu_failed.is_set():
        return NUMPY
    try:
        return cupy_engine()
    except UsageError:
        return NUMPY


def run(program: Callable[[Engine], Result], engine: Engine) -> Result:
    """Run a program on the engine, and on NumPy if the GPU fails or runs out of memory in it.

    The program must take its inputs in anew and change none of them. A failure is warned of, and
    ``auto`` chooses NumPy from then on.
    """
    try:
        return program(engine)
    except FuelGpuError:
        raise
    except Exception as error:
        if engine is NUMPY or not _is_gpu_failure(error):
            raise
        _gpu_failed.set()
        warnings.warn(
            f"the GPU failed ({type(error).__name__}: {error}); going on with NumPy",
            RuntimeWarning,
            stacklevel=3,
        )
    return program(NUMPY)


def given_array(values: Any, argument: str) -> Any:
    """Take an argument as an array, where it lies.

    Raises
    ------
    UsageError
        If it makes none, or one without an axis; the message names the argument.
    """
    if is_on_gpu(values):
        array = values
    else:
        try:
            array = np.asarray(values)
        except (ValueError, TypeError) as error:
            raise UsageError(f"{argument} makes no array: {error}") from None
    if len(array.shape) == 0:
        raise UsageError(f"{argument}: {values!r:.60} is no array: it has no axis")
    return array


def is_on_gpu(array: Any) -> bool:
    """Whether an array lies in a CUDA device's memory."""
    return hasattr(array, "__cuda_array_interface__")


def _is_gpu_failure(error: Exception) -> bool:
    package = type(error).__module__.partition(".")[0]
    return isinstance(error, MemoryError) or package in {"cupy", "cupy_backends"}
