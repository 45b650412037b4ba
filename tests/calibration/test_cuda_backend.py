"""The CUDA backend against a strict double of CuPy: right calls, right times, faults found."""

import sys

import numpy as np
import pytest
from cupy_double import BYTES_PER_NS, FLOPS_PER_NS, LATENCY_NS, CUDARuntimeError, CupyDouble
from fake_device import HASTY
from steady_time import keep_steady_time

from fuel_gpu.calibration.backends.cuda import CudaDevice, open_device
from fuel_gpu.calibration.measure import measure_device, measure_peer
from fuel_gpu.calibration.records import CopyMeasured, Note, RateMeasured
from fuel_gpu.probes.report import DeviceInfo

DTYPES = ("float32", "tf32", "float64", "float16", "bfloat16", "int8")
N = 256


@pytest.fixture(autouse=True)
def steady_time(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_steady_time(monkeypatch)


def info(index: int = 0) -> DeviceInfo:
    return DeviceInfo(
        id=f"cuda:{index}",
        backend="cuda",
        name="card",
        memory_bytes=2**28,
        dtypes=("float32", "bfloat16"),
    )


def device(double: CupyDouble, index: int = 0) -> CudaDevice:
    return CudaDevice(double, index)


def test_the_device_is_opened_by_its_ordinal(monkeypatch: pytest.MonkeyPatch) -> None:
    double = CupyDouble(devices=2)
    monkeypatch.setitem(sys.modules, "cupy", double)
    open_device(info(1))
    assert double.current_device == 1
    with pytest.raises(CUDARuntimeError, match="invalid device ordinal"):
        open_device(info(5))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", [0, 1])
def test_products_are_right_and_timed_by_events(dtype: str, kernel: int) -> None:
    opened = device(CupyDouble())
    name = opened.product_kernels(dtype)[kernel]
    work = opened.product(dtype, name, N)
    assert work.amount == 2 * N**3
    assert work.run() == LATENCY_NS + round(2 * N**3 / FLOPS_PER_NS)
    assert work.correct()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_wrong_product_is_found_out(dtype: str) -> None:
    opened = device(CupyDouble(spoil_products=True))
    work = opened.product(dtype, opened.product_kernels(dtype)[0], N)
    work.run()
    assert not work.correct()


def test_no_kernel_for_other_dtypes() -> None:
    assert device(CupyDouble()).product_kernels("float8e4m3fn") == ()
    assert device(CupyDouble()).stream_kernels("float8e4m3fn") == ()


@pytest.mark.parametrize("memory", ["pageable", "pinned"])
def test_copies_take_the_time_of_their_memory_and_arrive(memory: str) -> None:
    copies = device(CupyDouble()).copies(2**20, memory)
    assert copies.memory == memory
    expected = LATENCY_NS + round(2**16 / BYTES_PER_NS[memory])
    assert copies.upload(2**16) == expected
    assert copies.download(2**16) == expected
    assert copies.arrived(2**16)
    assert copies.arrived(2**20)


def test_a_lost_copy_is_found_out() -> None:
    copies = device(CupyDouble(lose_copies=True)).copies(4096, "pinned")
    assert not copies.arrived(4096)


def test_released_buffers_are_freed() -> None:
    double = CupyDouble()
    copies = device(double).copies(4096, "pageable")
    assert len(double.live) == 1
    copies.release()
    assert double.live == {}


def test_streaming_counts_bytes_read_and_written() -> None:
    opened = device(CupyDouble())
    (kernel,) = opened.stream_kernels("float32")
    work = opened.stream("float32", kernel, 2**20)
    assert work.amount == 2 * 2**20
    assert work.run() == LATENCY_NS + round(2 * 2**20 / BYTES_PER_NS["device"])
    assert work.correct()


def test_an_empty_kernel_is_launched_and_waited_for() -> None:
    double = CupyDouble()
    opened = device(double)
    assert opened.launch().run() >= 1
    assert double.streams[0].synchronized_ns == LATENCY_NS


@pytest.mark.parametrize(("peers", "memory"), [(True, "peer"), (False, "staged")])
def test_cards_copy_to_each_other(peers: bool, memory: str) -> None:
    double = CupyDouble(devices=2, peers=peers)
    copies = device(double).peer_copies(info(1), 2**20)
    assert copies.memory == memory
    expected = LATENCY_NS + round(2**20 / BYTES_PER_NS[memory])
    assert (copies.upload(2**20), copies.download(2**20)) == (expected, expected)
    assert copies.arrived(2**20)
    assert double.enabled == ({(0, 1), (1, 0)} if peers else set())
    assert double.current_device == 0


def test_a_whole_card_is_measured() -> None:
    records = list(measure_device(info(), device(CupyDouble()), HASTY))
    assert [r.text for r in records if isinstance(r, Note) and "cores busy" not in r.text] == []
    rates = {r.rate.dtype: r.rate for r in records if isinstance(r, RateMeasured)}
    assert tuple(rates) == ("float32", "bfloat16")
    for rate in rates.values():
        # products of about a millisecond lose little to the latency
        assert rate.flops_per_ns == pytest.approx(FLOPS_PER_NS, rel=0.01)
        moved = 2 * 2**24  # a sixteenth of the card's memory, read and written
        expected = moved / (LATENCY_NS + moved / BYTES_PER_NS["device"])
        assert rate.bytes_per_ns == pytest.approx(expected, rel=1e-3)
    copies = [r for r in records if isinstance(r, CopyMeasured)]
    assert {(r.src, r.dst, r.memory) for r in copies} == {
        (src, dst, memory)
        for src, dst in (("cpu:0", "cuda:0"), ("cuda:0", "cpu:0"))
        for memory in ("pageable", "pinned")
    }
    at_largest = {(r.src, r.memory): r.point.ns for r in copies if r.point.bytes == 32768}
    assert at_largest["cpu:0", "pinned"] == LATENCY_NS + round(32768 / 20)
    assert at_largest["cuda:0", "pageable"] == LATENCY_NS + round(32768 / 4)


def test_a_pair_of_cards_is_measured() -> None:
    opened = device(CupyDouble(devices=2))
    records = list(measure_peer(info(0), opened, info(1), HASTY))
    copies = [r for r in records if isinstance(r, CopyMeasured)]
    assert {(r.src, r.dst, r.memory) for r in copies} == {
        ("cuda:0", "cuda:1", "peer"),
        ("cuda:1", "cuda:0", "peer"),
    }


def test_a_driver_with_wrong_products_has_copies_but_no_compute_rate() -> None:
    records = list(measure_device(info(), device(CupyDouble(spoil_products=True)), HASTY))
    rates = [r.rate for r in records if isinstance(r, RateMeasured)]
    assert {rate.flops_per_ns for rate in rates} == {None}
    notes = [r.text for r in records if isinstance(r, Note)]
    assert "bfloat16, cuBLAS: wrong result, left out" in notes


def test_the_double_refuses_what_cuda_would() -> None:
    double = CupyDouble()
    opened = device(double)
    buffer = opened.alloc(64)
    host = np.zeros(128, np.uint8)
    with pytest.raises(CUDARuntimeError, match="leaves its allocation"):
        opened.copy(buffer.ptr, host.ctypes.data, 65, 1)
    with pytest.raises(CUDARuntimeError, match="Direction"):
        opened.copy(buffer.ptr, host.ctypes.data, 64, 2)
    start = double.cuda.Event()
    with pytest.raises(CUDARuntimeError, match="NotReady"):
        double.cuda.get_elapsed_time(start, start)
