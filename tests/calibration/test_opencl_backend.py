"""The OpenCL backend on a real device, such as PoCL: every kernel right, every copy arrived."""

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from fake_device import HASTY

from fuel_gpu.calibration.backends import open_device, opencl
from fuel_gpu.calibration.backends.opencl import OpenClDevice, profiled_ns
from fuel_gpu.calibration.backends.opencl_copies import MappedCopies
from fuel_gpu.calibration.measure import measure_device
from fuel_gpu.calibration.records import CopyMeasured, Note
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


@pytest.mark.parametrize("memory", ["pageable", "mapped"])
def test_copies_arrive_up_to_the_largest_size(device: OpenClDevice, memory: str) -> None:
    copies = device.copies(MIB, memory)
    assert copies.memory == memory
    for nbytes in (8, 4096, MIB):
        assert copies.arrived(nbytes)
        assert copies.upload(nbytes) >= 1
        assert copies.download(nbytes) >= 1
    copies.release()


def test_both_kinds_of_host_memory_are_measured_both_ways(
    fuel_device: DeviceInfo, device: OpenClDevice
) -> None:
    bare = msgspec.structs.replace(fuel_device, dtypes=())
    records = list(measure_device(bare, device, HASTY))
    ends = ("cpu:0", fuel_device.id)
    assert {(r.src, r.dst, r.memory) for r in records if isinstance(r, CopyMeasured)} == {
        (*way, memory) for way in (ends, ends[::-1]) for memory in ("pageable", "mapped")
    }
    assert not any("copies" in r.text for r in records if isinstance(r, Note))


@pytest.mark.parametrize("lost", ["_write", "_read"])
def test_a_map_that_does_not_reach_the_buffer_is_found_out(
    device: OpenClDevice, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    copies = device.copies(4096, "mapped")
    monkeypatch.setattr(MappedCopies, lost, lambda self, host: None)
    assert not copies.arrived(4096)


def test_kernels_are_timed_by_events_where_these_keep_time(fuel_device: DeviceInfo) -> None:
    for _ in range(5):  # a busy machine may part the two clocks of one trial
        device = open_device(fuel_device)
        assert isinstance(device, OpenClDevice)
        kernels = (*device.product_kernels("float32"), *device.stream_kernels("float32"))
        if {kernel.rpartition(", ")[2] for kernel in kernels} == {"events"}:
            break
    else:
        pytest.fail(f"never timed by events: {kernels}")
    run = device.stream("float32", kernels[-1], MIB).run
    assert run.__name__ == "by_events"


@pytest.mark.parametrize(
    "lie",
    [
        lambda start, end: (start * 64, end * 64),  # ticks taken for nanoseconds
        lambda start, end: (start // 1000, end // 1000),
        lambda start, end: (start, start),  # the clock stands still
        lambda start, end: (end, start),
    ],
)
def test_events_that_lie_are_found_out_and_the_wall_counts(
    device: OpenClDevice,
    monkeypatch: pytest.MonkeyPatch,
    lie: Callable[[int, int], tuple[int, int]],
) -> None:
    monkeypatch.setattr(opencl, "profiled_ns", lambda events: lie(*profiled_ns(events)))
    (kernel, *_) = device.stream_kernels("float32")
    assert kernel == "16 wide, wall clock as events are wrong"
    work = device.stream("float32", kernel, MIB)
    assert work.run.__name__ == "on_the_wall"
    work.run()
    assert work.correct()


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
    launch = work.run.__self__  # type: ignore[attr-defined]  # a method of the launch
    spoiled = np.ones(64, dtype=np.float32)
    result = launch.arguments[-1]
    device._cl.enqueue_copy(device._queue, result, spoiled)
    assert not work.correct()
