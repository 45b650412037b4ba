"""Plugins are found by their entry points, and refused by name where they cannot be."""

from pathlib import Path

import pytest
from plugin_metadata import write_entry_points

from fuel_gpu.probes import registry
from fuel_gpu.probes.machine import probe


def test_a_plugin_is_found_without_being_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_entry_points(tmp_path, "plugin", {"npu": "a_module_that_does_not_exist"})
    monkeypatch.syspath_prepend(tmp_path)
    plugins = registry.plugins()
    assert plugins.entry_points["npu"].value == "a_module_that_does_not_exist"
    assert plugins.rejected == {}


def test_plugins_that_cannot_be_told_apart_are_lines_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_entry_points(tmp_path, "one", {"npu": "one", "cuda": "own_cuda", "N-P-U": "dashes"})
    write_entry_points(tmp_path, "two", {"npu": "two"})
    monkeypatch.syspath_prepend(tmp_path)
    plugins = registry.plugins()
    assert plugins.entry_points == {}
    assert plugins.rejected == {
        "N-P-U": "the plugin dashes calls its backend 'N-P-U', which is no device name",
        "cuda": "the plugin own_cuda takes the name of a built-in backend",
        "npu": "the plugins one and two claim the same backend",
    }
    report = probe(["cpu", "npu"])
    assert [device.id for device in report.devices] == ["cpu:0"]
    assert [(line.backend, line.reason) for line in report.unavailable] == [
        ("npu", "the plugins one and two claim the same backend")
    ]


def test_a_built_in_probe_says_which_backend_it_is() -> None:
    assert {name: registry.load(name).backend for name in registry.BUILT_IN} == {
        name: name for name in registry.BUILT_IN
    }


def test_a_backend_that_nobody_registered_is_an_error() -> None:
    with pytest.raises(LookupError, match="no probe is registered for the backend 'npu'"):
        registry.load("npu")


def test_the_order_of_a_report() -> None:
    assert registry.in_report_order(
        {"npu", "metal", "asic", "cpu", "opencl", "vulkan", "cuda"}
    ) == [
        "cpu",
        "cuda",
        "opencl",
        "vulkan",
        "metal",
        "asic",
        "npu",
    ]
