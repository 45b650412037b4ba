"""The OpenCL backend on a real device, such as PoCL: every kernel right, every copy arrived."""

import msgspec
import numpy as np
import pytest

from fuel_gpu.calibration.backends import open_device
from fuel_gpu.calibration.backends.opencl import OpenClDevice
from fuel_gpu.probes.report import DeviceInfo

MIB = 2**20

pytestmark = pytest.mark.opencl


@pytest.fixture
def device(fuel_device: DeviceInfo) -> OpenClDevice:
    opened = open_device(fuel_device)
    assert isinstance(opened, OpenClDevice)
    return opened


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8"])
def test_every_product_kernel_is_right(
    fuel_device: DeviceInfo, device: OpenClDevice, dtype: str
) -> None:
    if dtype not in (*fuel_device.dtypes, "int8"):
        pytest.skip(f"{fuel_device.name} has no {dtype}")
    kernels = device.product_kernels(dtype)
    assert len(kernels) >= 4
    for kernel in kernels:
        work = device.product(dtype, kernel, 256)
        assert work.amount == 2 * 256**3
        assert not work.correct()
        assert work.run() >= 1
        assert work.correct(), kernel


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_every_streaming_kernel_moves_every_byte(device: OpenClDevice, dtype: str) -> None:
    for kernel in device.stream_kernels(dtype):
        work = device.stream(dtype, kernel, MIB)
        assert work.amount == 2 * MIB
        assert not work.correct()
        work.run()
        assert work.correct(), kernel


def test_dtypes_without_a_kernel_are_left_out(device: OpenClDevice) -> None:
    assert device.product_kernels("bfloat16") == ()
    assert device.stream_kernels("bfloat16") == ()


def test_copies_arrive_up_to_the_largest_size(device: OpenClDevice) -> None:
    copies = device.copies(MIB, "pageable")
    for nbytes in (8, 4096, MIB):
        assert copies.arrived(nbytes)
        assert copies.upload(nbytes) >= 1
        assert copies.download(nbytes) >= 1
    copies.release()


def test_an_empty_kernel_is_launched(device: OpenClDevice) -> None:
    assert device.launch().run() >= 1


def test_a_device_that_is_gone_is_named(fuel_device: DeviceInfo) -> None:
    other = msgspec.structs.replace(fuel_device, name="another device")
    with pytest.raises(LookupError, match="another device"):
        open_device(other)


def test_a_wrong_result_would_be_noticed(device: OpenClDevice) -> None:
    kernel = device.product_kernels("float32")[0]
    work = device.product("float32", kernel, 256)
    work.run()
    launch = work.run
    spoiled = np.ones(64, dtype=np.float32)
    result = launch.arguments[-1]  # type: ignore[attr-defined]  # the backend's own launch object
    device._cl.enqueue_copy(device._queue, result, spoiled)
    assert not work.correct()
