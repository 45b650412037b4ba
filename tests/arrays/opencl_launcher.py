"""The raw kernels run for real on an OpenCL device, on NumPy arrays copied to it and back."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyopencl as cl

from fuel_gpu.arrays.engine import Engine
from fuel_gpu.arrays.kernel_sources import kernel_source
from fuel_gpu.arrays.raw_kernels import RawKernels


@cache
def opencl_engine(source: str | None = None) -> Engine:
    """Give NumPy with the raw kernels on the first OpenCL device that has doubles.

    Another `source` takes the place of the package's own.
    """
    context, program = _built(source or kernel_source("opencl"))
    queue = cl.CommandQueue(context)
    kernels = {kernel.function_name: kernel for kernel in program.all_kernels()}

    def launch(name: str, groups: int, threads: int, arguments: Sequence[Any]) -> None:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        typed: list[Any] = []
        buffers: list[tuple[Any, cl.Buffer]] = []
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                assert argument.flags.c_contiguous
                buffers.append((argument, cl.Buffer(context, flags, hostbuf=argument)))
                typed.append(buffers[-1][1])
            else:
                typed.append(np.int64(argument))
        if name.startswith("scan"):
            typed[-1] = np.int32(arguments[-1])
        kernels[name](queue, (groups * threads,), (threads,), *typed)
        for array, buffer in buffers:
            cl.enqueue_copy(queue, array, buffer)
        queue.finish()

    return Engine("opencl", np, 256 * 1024, RawKernels(launch))


def _built(source: str) -> tuple[cl.Context, cl.Program]:
    """Build for the first device that has doubles and whose compiler knows its processor."""
    failures = []
    for platform in cl.get_platforms():
        for device in platform.get_devices():
            if not device.double_fp_config:
                continue
            context = cl.Context([device])
            try:
                return context, cl.Program(context, source).build()
            except cl.RuntimeError as error:
                failures.append(f"{platform.name}: {error}")
    raise RuntimeError(f"no OpenCL device builds the kernels: {failures}")
