"""Rates to plan with: what the table has, and priors marked as such where it has nothing."""

from fuel_gpu.calibration.rates import Rates, device_rates
from fuel_gpu.calibration.table import FORMAT_VERSION, Machine, Rate, Table
from fuel_gpu.device import Device


def table(*rates: Rate) -> Table:
    return Table(
        version=FORMAT_VERSION,
        machine=Machine(fingerprint="test"),
        created="",
        devices=(),
        transfers=(),
        rates=rates,
    )


def rate(device: str, dtype: str, flops: float | None, moved: float | None) -> Rate:
    return Rate(
        device=device,
        dtype=dtype,
        flops_per_ns=flops,
        bytes_per_ns=moved,
        launch_ns=77,
        provenance="measured",
    )


def test_a_device_gets_its_own_rates_by_dtype() -> None:
    measured = table(
        rate("cuda:0", "float32", 100.0, 50.0),
        rate("cuda:0", "float16", 200.0, 51.0),
        rate("cuda:1", "float32", 1.0, 2.0),
    )
    assert device_rates(measured, Device("cuda", 0)) == {
        "float32": Rates(100.0, 50.0, 77, "measured"),
        "float16": Rates(200.0, 51.0, 77, "measured"),
    }


def test_nothing_known_gives_the_priors_of_its_class() -> None:
    assert device_rates(table(), Device("cpu"))["float32"] == Rates(1.0, 4.0, 1_000, "fallback")
    for backend in ("cuda", "opencl", "vulkan", "metal", "npu"):
        prior = device_rates(table(), Device(backend))["float32"]
        assert prior == Rates(30.0, 40.0, 10_000, "fallback")


def test_a_missing_number_is_the_prior_and_the_dtype_no_longer_looks_measured() -> None:
    found = device_rates(table(rate("cuda:0", "float64", None, 9.0)), Device("cuda"))
    assert found["float64"] == Rates(30.0, 9.0, 77, "fallback")
    found = device_rates(table(rate("cpu:0", "float32", 9.0, None)), Device("cpu"))
    assert found["float32"] == Rates(9.0, 4.0, 77, "fallback")
