"""The CPU backend: real work on all cores, with results that are checked."""

import pytest

from fuel_gpu.calibration.backends import open_device
from fuel_gpu.calibration.backends.cpu import CpuDevice, usable_cores
from fuel_gpu.probes.report import DeviceInfo

MIB = 2**20


@pytest.fixture(scope="module")
def cpu() -> CpuDevice:
    info = DeviceInfo(id="cpu:0", backend="cpu", name="a processor", memory_bytes=2**34)
    opened = open_device(info)
    assert isinstance(opened, CpuDevice)
    return opened


def test_the_host_has_nothing_to_copy_to(cpu: CpuDevice) -> None:
    assert cpu.host_memory_kinds == ()
    with pytest.raises(NotImplementedError, match="nothing to copy"):
        cpu.copies(4096, "pageable")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_right(cpu: CpuDevice, dtype: str) -> None:
    (kernel,) = cpu.product_kernels(dtype)
    work = cpu.product(dtype, kernel, 256)
    assert work.amount == 2 * 256**3
    assert not work.correct()  # nothing has run yet
    assert work.run() >= 1
    assert work.correct()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_dtypes_without_a_blas_are_left_out(cpu: CpuDevice, dtype: str) -> None:
    assert cpu.product_kernels(dtype) == ()
    assert cpu.stream_kernels(dtype) == ()


def test_streaming_moves_every_byte_on_all_cores(cpu: CpuDevice) -> None:
    (kernel,) = cpu.stream_kernels("float32")
    assert kernel == f"{usable_cores()} threads"
    work = cpu.stream("float32", kernel, 3 * MIB)
    assert work.amount == 2 * 3 * MIB
    assert not work.correct()
    work.run()
    assert work.correct()


def test_a_launch_is_a_call_that_took_place(cpu: CpuDevice) -> None:
    work = cpu.launch()
    assert 1 <= work.run() < 10**6
    assert work.correct()
