"""What is measured: the order, the rates of the best right kernel, notes for the others."""

import msgspec
import pytest
from fake_device import HASTY, FakeDevice
from steady_time import keep_steady_time

from fuel_gpu.calibration.measure import measure_device, measure_sizes
from fuel_gpu.calibration.records import CopyMeasured, Doing, Note, RateMeasured, Record
from fuel_gpu.calibration.table import Rate
from fuel_gpu.probes.report import DeviceInfo


def info(*dtypes: str) -> DeviceInfo:
    return DeviceInfo(
        id="cuda:0", backend="cuda", name="card", memory_bytes=2**30, dtypes=dtypes or ("float32",)
    )


@pytest.fixture(autouse=True)
def steady_time(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_steady_time(monkeypatch)


def run(device: FakeDevice, *dtypes: str) -> list[Record]:
    return list(measure_device(info(*dtypes), device, HASTY))


def rates(records: list[Record]) -> dict[str, Rate]:
    return {r.rate.dtype: r.rate for r in records if isinstance(r, RateMeasured)}


def notes(records: list[Record]) -> list[str]:
    return [r.text for r in records if isinstance(r, Note)]


def test_launch_then_copies_then_rates() -> None:
    records = run(FakeDevice({"float32": {"plain": 4.0}}), "float32")
    doing = [r.what for r in records if isinstance(r, Doing)]
    assert doing[0] == "launch overhead"
    sizes = ("4 KiB", "8 KiB", "16 KiB", "32 KiB")
    assert set(doing[1:5]) == {f"copies, pageable, {size}" for size in sizes}
    assert doing[-2:] == ["matrix product, float32", "streaming, float32"]
    assert notes(records) == []


def test_the_fastest_right_kernel_counts() -> None:
    device = FakeDevice({"float32": {"slow": 4.0, "fast": 16.0, "middle": 8.0}})
    rate = rates(run(device))["float32"]
    assert rate.flops_per_ns == pytest.approx(16.0, rel=1e-6)
    assert rate.bytes_per_ns == pytest.approx(8.0, rel=1e-6)
    assert rate.launch_ns == 500
    assert rate.provenance == "measured"
    assert rate.flops_kernel == "fast, n 512"
    assert rate.bytes_kernel == "copy, 64 MiB"  # a sixteenth of the card's memory
    assert len(rate.flops_samples) >= 6
    assert rate.flops_interval == pytest.approx((16.0, 16.0), rel=1e-6)


def test_a_rate_is_reported_before_its_streaming_is_measured() -> None:
    found = [
        r.rate for r in run(FakeDevice({"float32": {"plain": 4.0}})) if isinstance(r, RateMeasured)
    ]
    assert [(r.flops_per_ns is None, r.bytes_per_ns is None) for r in found] == [
        (False, True),
        (False, False),
    ]


def test_a_wrong_kernel_is_left_out_with_a_note() -> None:
    device = FakeDevice({"float32": {"wrong": -100.0, "right": 4.0}})
    records = run(device)
    assert rates(records)["float32"].flops_kernel == "right, n 512"
    assert notes(records) == ["float32, wrong: wrong result, left out"]


def test_a_dtype_whose_every_result_is_wrong_has_no_compute_rate() -> None:
    records = run(FakeDevice({"float16": {"wrong": -100.0}}), "float16")
    assert rates(records)["float16"].flops_per_ns is None
    assert notes(records) == ["float16, wrong: wrong result, left out"]


def test_a_kernel_that_does_not_compile_costs_itself_only() -> None:
    device = FakeDevice({"float32": {"broken": 0.0, "right": 4.0}})
    records = run(device)
    assert rates(records)["float32"].flops_per_ns == pytest.approx(4.0, rel=1e-6)
    assert notes(records) == ["float32, broken: RuntimeError: it does not compile"]


def test_a_dtype_without_kernels_has_only_its_streaming_rate() -> None:
    found = rates(run(FakeDevice({"float32": {"plain": 4.0}}), "float32", "int8"))
    assert found["int8"].flops_per_ns is None
    assert found["int8"].bytes_per_ns == pytest.approx(8.0, rel=1e-6)


def test_products_grow_until_they_take_long_enough() -> None:
    # 2 n**3 / 1000 FLOP/ns reaches a millisecond at n = 793: 768 is the multiple of 256 below
    device = FakeDevice({"float32": {"plain": 1000.0, "other": 900.0, "third": 1.0}})
    rate = rates(run(device))["float32"]
    assert rate.flops_kernel == "plain, n 768"
    assert [(kernel, n) for _, kernel, n in device.tried] == [
        ("plain", 512),
        ("other", 512),
        ("third", 512),
        ("plain", 768),
        ("other", 768),
    ]


def test_products_fit_into_a_share_of_the_memory() -> None:
    device = FakeDevice({"float32": {"plain": 1e6}})
    # a sixteenth of 1 GiB holds 2896 x 2896 doubles; 7937 would take a millisecond
    assert rates(run(device))["float32"].flops_kernel == "plain, n 2816"


def test_without_a_launch_there_are_copies_but_no_rates() -> None:
    records = run(FakeDevice({"float32": {"plain": 4.0}}, launch_ns=0))
    assert rates(records) == {}
    assert any(isinstance(r, CopyMeasured) for r in records)
    assert notes(records) == [
        "launch overhead: RuntimeError: no launch; without it no rates are kept"
    ]


def test_each_kind_of_host_memory_is_measured() -> None:
    device = FakeDevice(host_memory_kinds=("pageable", "pinned"))
    copies = [r for r in run(device) if isinstance(r, CopyMeasured)]
    assert {r.memory for r in copies} == {"pageable", "pinned"}


def test_a_host_has_nothing_to_copy() -> None:
    device = FakeDevice({"float32": {"plain": 4.0}}, host_memory_kinds=())
    assert not any(isinstance(r, CopyMeasured) for r in run(device))


def test_streams_outgrow_the_caches_but_not_the_memory() -> None:
    from fuel_gpu.calibration.kernel_trials import stream_bytes

    cached = {"caches": [{"level": 3, "size_bytes": 96 * 2**20, "instances": 2}]}
    large = msgspec.structs.replace(info(), memory_bytes=2**40, details=cached)
    small = msgspec.structs.replace(large, memory_bytes=2**30)
    assert stream_bytes(small, 4) == 64 * 2**20
    narrow = msgspec.structs.replace(small, largest_allocation_bytes=10 * 2**20 + 5)
    assert stream_bytes(narrow, 4) == 10 * 2**20
    assert stream_bytes(large, 4) <= 4 * 2 * 96 * 2**20
    assert stream_bytes(large, 1) <= 256 * 2**20  # the caches' 192 MiB are less
    assert stream_bytes(msgspec.structs.replace(info(), memory_bytes=100), 4) == 2**20


def test_held_out_sizes_are_measured_and_nothing_else() -> None:
    records = list(measure_sizes(info(), FakeDevice(), (5792, 11584), HASTY))
    assert {r.point.bytes for r in records if isinstance(r, CopyMeasured)} == {5792, 11584}
    assert not any(isinstance(r, RateMeasured) for r in records)
