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
    devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    device = next(each for each in devices if each.double_fp_config)
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    program = cl.Program(context, source or kernel_source("opencl")).build()
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
