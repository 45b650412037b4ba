"""The example of a plugin, registered as its own pyproject.toml says, is listed and measured."""

import tomllib
from pathlib import Path

import pytest
from plugin_metadata import write_entry_points

from fuel_gpu.calibration.backends import can_measure, open_device
from fuel_gpu.probes.cards import cards
from fuel_gpu.probes.machine import probe

EXAMPLE = Path(__file__).parents[2] / "examples/plugin_backend"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the example on the path with the metadata that pip would write."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    write_entry_points(tmp_path, project["name"], project["entry-points"]["fuel_gpu.probes"])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLE)


@pytest.mark.usefixtures("installed")
def test_its_device_is_listed_as_a_door_of_the_processor() -> None:
    report = probe(["cpu", "onecore"], timeout_s=60.0)
    assert report.unavailable == ()
    (card,) = cards(report.devices)
    assert [door.id for door in card.doors] == ["cpu:0", "onecore:0"]
    assert card.doors[1].name == f"one core of {card.name}"


@pytest.mark.usefixtures("installed")
def test_its_device_can_be_measured() -> None:
    (device,) = probe(["onecore"], timeout_s=60.0).devices
    assert can_measure("onecore")
    opened = open_device(device)
    assert opened.host_memory_kinds == ()
    for dtype in device.dtypes:
        (product,), (stream,) = opened.product_kernels(dtype), opened.stream_kernels(dtype)
        for workload, amount in (
            (opened.launch(), 1),
            (opened.product(dtype, product, 256), 2 * 256**3),
            (opened.stream(dtype, stream, 1 << 20), 2 << 20),
        ):
            assert workload.amount == amount
            assert workload.run() >= 1
            assert workload.correct()
    assert opened.product_kernels("float16") == ()
