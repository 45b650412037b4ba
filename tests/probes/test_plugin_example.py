"""The example of a plugin, registered as its own pyproject.toml says, is listed and measured."""

import ast
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest
from plugin_metadata import write_entry_points

from fuel_gpu.calibration.backends import can_measure, open_device
from fuel_gpu.calibration.curves import line_curve
from fuel_gpu.calibration.table import FORMAT_VERSION, Machine, Rate, Table, Transfer
from fuel_gpu.errors import PlanError
from fuel_gpu.graph.arena import Graph, Node, TensorType
from fuel_gpu.kernels.binding import Kernel, default_bindings
from fuel_gpu.planner import plan
from fuel_gpu.probes.cards import cards
from fuel_gpu.probes.machine import probe
from fuel_gpu.probes.report import DeviceInfo

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


def a_table() -> Table:
    """Two devices of one memory, of which the example's is a thousand times as fast."""
    names = ("cpu", "onecore")
    return Table(
        version=FORMAT_VERSION,
        machine=Machine(fingerprint="made up"),
        created="2026-01-01T00:00:00Z",
        devices=tuple(
            DeviceInfo(id=f"{name}:0", backend=name, name=name, memory_bytes=2**34)
            for name in names
        ),
        transfers=tuple(
            Transfer(src=src, dst=dst, points=(), curve=line_curve(1, 1e6), provenance="datasheet")
            for src, dst in (("cpu:0", "onecore:0"), ("onecore:0", "cpu:0"))
        ),
        rates=tuple(
            Rate(
                device=f"{name}:0",
                dtype="float32",
                flops_per_ns=flops,
                bytes_per_ns=flops,
                launch_ns=0,
                provenance="datasheet",
            )
            for name, flops in zip(names, (1.0, 1000.0), strict=True)
        ),
    )


def a_product() -> Graph:
    graph, square = Graph(), TensorType("float32", (256, 256))
    x = graph.push(Node("Input", (), square, "input", "x"))
    w = graph.push(Node("Weight", (), square, "weight", "w"))
    graph.outputs = [graph.push(Node("MatMul", (x, w), square, name="product"))]
    return graph


def test_its_docstring_says_how_to_plan_on_its_device() -> None:
    words = ast.get_docstring(ast.parse((EXAMPLE / "onecore_probe.py").read_text())) or ""
    code = textwrap.dedent("\n".join(x for x in words.splitlines() if x.startswith("    ")))
    names: dict[str, Any] = {
        "Kernel": Kernel,
        "default_bindings": default_bindings,
        "plan": plan,
        "graph": a_product(),
        "table": a_table(),
    }
    exec(code, names)
    assert str(names["made"].execution.placements[2]) == "onecore:0"


def test_without_a_kernel_nothing_can_be_pinned_to_its_device() -> None:
    with pytest.raises(PlanError, match=r"has no kernel on onecore:0; BindingTable.with_kernel"):
        plan(a_product(), a_table(), pins={"product": "onecore:0"})
