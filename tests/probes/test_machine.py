"""The probe of the whole machine reports what is here and what is not."""

import pytest

from fuel_gpu.errors import UsageError
from fuel_gpu.probes.machine import probe


def test_the_processor_is_always_a_device() -> None:
    report = probe(["cpu"])
    assert [device.id for device in report.devices] == ["cpu:0"]
    assert report.unavailable == ()


def test_an_unknown_backend_is_named() -> None:
    with pytest.raises(UsageError, match="'npu' is not a backend; known are cpu, cuda, opencl"):
        probe(["cpu", "npu"])


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_limit_is_a_positive_number(timeout_s: float) -> None:
    with pytest.raises(UsageError, match="positive number of seconds"):
        probe(["cpu"], timeout_s=timeout_s)
