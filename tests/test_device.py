"""Devices and their names: what is taken, what is refused."""

from typing import Any

import pytest

from fuel_gpu.device import Device
from fuel_gpu.errors import UsageError


def test_a_device_is_written_as_it_is_read() -> None:
    assert str(Device("cuda", 1)) == "cuda:1"
    assert Device.parse("cuda:1") == Device("cuda", 1)
    assert Device.parse("cpu") == Device("cpu", 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cpu", -1), "index: -1 is no whole number from 0"),
        (("cpu", 1.5), "index: 1.5 is no whole number from 0"),
        (("cpu", "0"), "index: '0' is no whole number from 0"),
        (("", 0), "backend: '' is no backend's name"),
        ((3,), "backend: 3 is no backend's name"),
        ((None,), "backend: None is no backend's name"),
        (("cuda:0",), "backend: 'cuda:0' is no backend's name.*Device.parse reads cuda:0"),
    ],
)
def test_what_names_no_device_is_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Device(*arguments)
