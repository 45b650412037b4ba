"""What wgpu drives, on a real adapter such as Mesa's llvmpipe; its faults by doubles around it."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from fake_device import HASTY

from fuel_gpu.calibration.backends import can_measure, open_device, vulkan_clock
from fuel_gpu.calibration.backends.vulkan import VulkanDevice, grid, pieces
from fuel_gpu.calibration.isolation import measure_in_child
from fuel_gpu.calibration.measure import measure_device
from fuel_gpu.calibration.records import (
    CopyMeasured,
    Finished,
    Note,
    RateMeasured,
    Record,
    Request,
)
from fuel_gpu.probes import vulkan as vulkan_probe
from fuel_gpu.probes.report import DeviceInfo

MIB = 2**20
REGISTERS = "8 x 4 in registers"
TILES = ("64 x 64 in workgroup memory", "128 x 128 in workgroup memory")


class DeviceDouble:
    """A device of wgpu with some of its attributes replaced."""

    def __init__(self, device: Any, **replaced: Any) -> None:
        self._wrapped = device
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)


class AdapterDouble:
    """A real adapter with fewer features, whose device a test may change."""

    def __init__(self, info: DeviceInfo, features: set[str] | None, **replaced: Any) -> None:
        self._adapter = vulkan_probe.find(info)
        self._replaced = replaced
        self.features = self._adapter.features if features is None else features

    def request_device_sync(self, required_features: list[str]) -> DeviceDouble:
        assert set(required_features) <= set(self.features)
        device = self._adapter.request_device_sync(required_features=required_features)
        return DeviceDouble(
            device, **{name: change(device) for name, change in self._replaced.items()}
        )


def opened(info: DeviceInfo, features: set[str] | None = None, **replaced: Any) -> VulkanDevice:
    """Open a double; each of `replaced` gives an attribute of the device from the device."""
    import wgpu

    return VulkanDevice(wgpu, AdapterDouble(info, features, **replaced))


def limited(**limits: int) -> Callable[[Any], dict[str, int]]:
    named = {name.replace("_", "-"): value for name, value in limits.items()}
    return lambda device: {**device.limits, **named}


def with_source(change: Callable[[str], str]) -> Callable[[Any], Callable[..., Any]]:
    """A driver that compiles something other than what it is given."""

    def replace(device: Any) -> Callable[..., Any]:
        def create_shader_module(*, code: str) -> Any:
            changed = change(code)
            assert changed != code
            return device.create_shader_module(code=changed)

        return create_shader_module

    return replace


@pytest.fixture
def device(fuel_device: DeviceInfo) -> VulkanDevice:
    found = open_device(fuel_device)
    assert isinstance(found, VulkanDevice)
    return found


@pytest.fixture
def small(fuel_device: DeviceInfo) -> DeviceInfo:
    """The device as if it had 256 MiB and one dtype, so that measuring takes a moment."""
    return msgspec.structs.replace(fuel_device, memory_bytes=256 * MIB, dtypes=("float32",))


def measured(info: DeviceInfo, device: VulkanDevice) -> list[Record]:
    return list(measure_device(info, device, HASTY))


def notes(records: list[Record]) -> list[str]:
    return [r.text for r in records if isinstance(r, Note)]


def only(info: DeviceInfo, dtype: str) -> None:
    if dtype not in info.dtypes:
        pytest.skip(f"{info.name} has no {dtype}")


@pytest.mark.vulkan
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_every_product_kernel_is_right(
    fuel_device: DeviceInfo, device: VulkanDevice, dtype: str
) -> None:
    only(fuel_device, dtype)
    kernels = device.product_kernels(dtype)
    assert kernels
    for kernel in kernels:
        work = device.product(dtype, kernel, 256)
        assert work.amount == 33_554_432  # 2 * 256**3
        assert not work.correct()
        assert work.run() >= 1
        assert work.correct(), kernel


@pytest.mark.vulkan
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_every_streaming_kernel_moves_every_element(
    fuel_device: DeviceInfo, device: VulkanDevice, dtype: str
) -> None:
    only(fuel_device, dtype)
    kernels = device.stream_kernels(dtype)
    assert len(kernels) == 3
    for kernel in kernels:
        work = device.stream(dtype, kernel, 3 * MIB)
        assert work.amount == 6 * MIB
        assert not work.correct()
        assert work.run() >= 1
        assert work.correct(), kernel


@pytest.mark.vulkan
def test_dtypes_without_a_kernel_are_left_out(device: VulkanDevice) -> None:
    assert device.product_kernels("bfloat16") == ()
    assert device.stream_kernels("int8") == ()


@pytest.mark.vulkan
@pytest.mark.parametrize("memory", ["pageable", "mapped"])
def test_copies_arrive_from_both_kinds_of_memory(device: VulkanDevice, memory: str) -> None:
    assert device.host_memory_kinds == ("pageable", "mapped")
    copies = device.copies(MIB, memory)
    assert copies.memory == memory
    for nbytes in (8, 4096, MIB, 72):
        assert copies.arrived(nbytes)
        assert copies.upload(nbytes) >= 1
        assert copies.download(nbytes) >= 1
    copies.release()


@pytest.mark.vulkan
@pytest.mark.parametrize("memory", ["pageable", "mapped"])
def test_a_copy_that_the_adapter_drops_is_noticed(fuel_device: DeviceInfo, memory: str) -> None:
    class Dropping(DeviceDouble):
        def copy_buffer_to_buffer(self, *arguments: Any) -> None:
            pass

    def encoders(device: Any) -> Callable[[], Any]:
        return lambda: Dropping(device.create_command_encoder())

    copies = opened(fuel_device, create_command_encoder=encoders).copies(4096, memory)
    assert not copies.arrived(4096)


@pytest.mark.vulkan
def test_an_empty_kernel_is_launched(device: VulkanDevice) -> None:
    work = device.launch()
    assert work.amount == 1
    assert work.run() >= 1


@pytest.mark.vulkan
def test_a_device_that_is_gone_is_named(fuel_device: DeviceInfo) -> None:
    other = msgspec.structs.replace(fuel_device, name="another adapter")
    with pytest.raises(LookupError, match="another adapter"):
        open_device(other)


@pytest.mark.vulkan
@pytest.mark.parametrize("backend", ["vulkan", "metal", "d3d12"])
def test_what_wgpu_drives_is_measured_alike(
    fuel_device: DeviceInfo, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = vulkan_probe.find(fuel_device)
    monkeypatch.setattr(vulkan_probe, "find", lambda info: adapter)
    assert can_measure(backend)
    named = msgspec.structs.replace(fuel_device, id=f"{backend}:0", backend=backend)
    assert isinstance(open_device(named), VulkanDevice)


@pytest.mark.vulkan
def test_a_whole_adapter_is_measured(small: DeviceInfo, device: VulkanDevice) -> None:
    records = measured(small, device)
    assert notes(records) == []
    rate = [r.rate for r in records if isinstance(r, RateMeasured)][-1]
    assert rate.dtype == "float32"
    assert rate.flops_kernel.rpartition(", n ")[0] in device.product_kernels("float32")
    assert rate.bytes_kernel.removesuffix(", 16 MiB") in device.stream_kernels("float32")
    copies = [r for r in records if isinstance(r, CopyMeasured)]
    assert {(r.src, r.dst, r.memory) for r in copies} == {
        (src, dst, memory)
        for src, dst in (("cpu:0", small.id), (small.id, "cpu:0"))
        for memory in ("pageable", "mapped")
    }


@pytest.mark.vulkan
def test_what_wgpu_complains_of_stays_in_the_child(
    small: DeviceInfo, capfd: pytest.CaptureFixture[str]
) -> None:
    request = Request(device=small, sizes_bytes=(4096,))
    records = list(measure_in_child(request, limit_s=120.0))
    assert isinstance(records[-1], Finished)
    assert {r.point.bytes for r in records if isinstance(r, CopyMeasured)} == {4096}
    assert capfd.readouterr() == ("", "")


# The clock.


@pytest.mark.vulkan
def test_without_features_there_is_float32_by_the_wall_clock(fuel_device: DeviceInfo) -> None:
    device = opened(fuel_device, features=set())
    assert device.features == []
    assert device.product_kernels("float16") == device.stream_kernels("float64") == ()
    assert device.product_kernels("float32")[0] == f"{REGISTERS}, wall clock"
    work = device.product("float32", f"{REGISTERS}, wall clock", 256)
    assert work.run() >= 1
    assert work.correct()


@pytest.mark.vulkan
@pytest.mark.parametrize("period_ns", [83.333, 0.0])
def test_timestamps_that_keep_no_time_are_not_used(
    fuel_device: DeviceInfo, period_ns: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "timestamp-query" not in fuel_device.details["features"]:
        pytest.skip(f"{fuel_device.name} has no timestamps")
    monkeypatch.setattr(vulkan_clock, "_period_ns", lambda device: period_ns)
    kernel = opened(fuel_device).stream_kernels("float32")[0]
    assert kernel == "4 wide, wall clock as timestamps are wrong"


@pytest.mark.vulkan
def test_timestamps_that_stand_still_are_not_used(fuel_device: DeviceInfo) -> None:
    if "timestamp-query" not in fuel_device.details["features"]:
        pytest.skip(f"{fuel_device.name} has no timestamps")

    class Still(DeviceDouble):
        def resolve_query_set(self, *arguments: Any) -> None:
            pass

    def encoders(device: Any) -> Callable[[], Any]:
        return lambda: Still(device.create_command_encoder())

    device = opened(fuel_device, create_command_encoder=encoders)
    assert device.stream_kernels("float32")[0] == "4 wide, wall clock as timestamps are wrong"


# Limits.


@pytest.mark.parametrize(
    ("nbytes", "limit", "expected"),
    [
        (3 * MIB, 128 * MIB, [(0, 3 * MIB)]),
        (3 * MIB, 2 * MIB, [(0, 2 * MIB), (2 * MIB, MIB)]),
        (2 * MIB, 2 * MIB - 1, [(0, MIB), (MIB, MIB)]),  # a limit need not be a whole MiB
    ],
)
def test_what_cannot_be_bound_at_once_is_cut(
    nbytes: int, limit: int, expected: list[tuple[int, int]]
) -> None:
    assert pieces(nbytes, limit) == expected


@pytest.mark.parametrize(
    ("groups", "limit", "expected"),
    [(1, 65535, (1, 1)), (65535, 65535, (65535, 1)), (65536, 65535, (32768, 2)), (11, 4, (4, 3))],
)
def test_groups_are_laid_along_two_axes(groups: int, limit: int, expected: tuple[int, int]) -> None:
    assert grid(groups, limit) == expected


@pytest.mark.vulkan
def test_streaming_keeps_within_small_limits(fuel_device: DeviceInfo) -> None:
    limits = limited(
        max_storage_buffer_binding_size=2 * MIB, max_compute_workgroups_per_dimension=100
    )
    device = opened(fuel_device, limits=limits)
    for kernel in device.stream_kernels("float32"):
        work = device.stream("float32", kernel, 5 * MIB)
        work.run()
        assert work.correct(), kernel


@pytest.mark.vulkan
@pytest.mark.parametrize(
    "limits",
    [
        {"max_compute_invocations_per_workgroup": 128},
        {"max_compute_workgroup_storage_size": 8191},  # tiles of 512 vectors of 16 bytes: 8192
    ],
)
def test_kernels_beyond_the_limits_are_left_out(
    fuel_device: DeviceInfo, limits: dict[str, int]
) -> None:
    device = opened(fuel_device, features=set(), limits=limited(**limits))
    assert device.product_kernels("float32") == (f"{REGISTERS}, wall clock",)


@pytest.mark.vulkan
def test_wide_sums_need_more_workgroup_memory(fuel_device: DeviceInfo) -> None:
    only(fuel_device, "float64")
    limits = limited(max_compute_workgroup_storage_size=16383)
    device = opened(fuel_device, features={"shader-f64"}, limits=limits)
    assert device.product_kernels("float64") == (f"{REGISTERS}, wall clock",)
    assert device.product_kernels("float32") == tuple(
        f"{kernel}, wall clock" for kernel in (REGISTERS, *TILES)
    )


# Drivers that fail.


@pytest.mark.vulkan
def test_a_driver_with_wrong_products_has_no_compute_rate(small: DeviceInfo) -> None:
    spoiled = with_source(lambda code: code.replace("+=", "-="))
    device = opened(small, features=set(), create_shader_module=spoiled)
    records = measured(small, device)
    rates = [r.rate for r in records if isinstance(r, RateMeasured)]
    assert [rate.flops_per_ns for rate in rates] == [None]
    assert rates[0].bytes_per_ns is not None
    assert notes(records) == [
        f"float32, {kernel}, wall clock: wrong result, left out" for kernel in (REGISTERS, *TILES)
    ]


@pytest.mark.vulkan
def test_float64_computed_as_float32_is_found_out(fuel_device: DeviceInfo) -> None:
    only(fuel_device, "float64")
    narrow = with_source(lambda code: code.replace("alias SUM = f64", "alias SUM = f32"))
    device = opened(fuel_device, features={"shader-f64"}, create_shader_module=narrow)
    for kernel in (REGISTERS, *TILES):
        work = device.product("float64", f"{kernel}, wall clock", 256)
        work.run()
        assert not work.correct()


@pytest.mark.vulkan
def test_memory_that_cannot_be_had_costs_the_copies(small: DeviceInfo) -> None:
    import wgpu

    def allocators(device: Any) -> Callable[..., Any]:
        def create_buffer(*, size: int, usage: int) -> Any:
            if usage & wgpu.BufferUsage.MAP_WRITE:
                raise wgpu.GPUOutOfMemoryError("not enough memory left")
            return device.create_buffer(size=size, usage=usage)

        return create_buffer

    records = measured(small, opened(small, features=set(), create_buffer=allocators))
    assert notes(records) == ["copies, mapped: GPUOutOfMemoryError: not enough memory left"]
    assert {r.memory for r in records if isinstance(r, CopyMeasured)} == {"pageable"}
    assert any(isinstance(r, RateMeasured) for r in records)


@pytest.mark.vulkan
def test_a_lost_device_is_told_and_ends(small: DeviceInfo, device: VulkanDevice) -> None:
    device._device.destroy()
    records = measured(small, device)
    assert not any(isinstance(r, CopyMeasured | RateMeasured) for r in records)
    told = notes(records)
    assert told[0].startswith("launch overhead: GPUValidationError")
    assert all("Parent device is lost" in text for text in told)


@pytest.mark.vulkan
def test_what_is_fetched_is_what_was_sent(device: VulkanDevice) -> None:
    host = np.arange(1000, dtype=np.uint32)
    buffer = device._queue.sent(host)
    with device._queue.fetched(buffer, 400) as found:
        assert found.view(np.uint32).tolist() == list(range(100))
