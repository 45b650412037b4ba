"""Each NUMA node's streaming, on a stand-in topology: threads pinned, memory touched by them."""

import os
import threading
from typing import Any

import pytest
from fake_device import HASTY, FakeDevice

from fuel_gpu.calibration.backends import MemoryNode, Workload, open_device
from fuel_gpu.calibration.backends.cpu import CpuDevice
from fuel_gpu.calibration.measure import measure_device
from fuel_gpu.calibration.records import Note, RateMeasured, Record
from fuel_gpu.calibration.table import NodeStream
from fuel_gpu.probes.report import DeviceInfo

MIB = 2**20
GIB = 2**30


def info(*cpus: str) -> DeviceInfo:
    nodes = [{"node": n, "cpus": text, "memory_bytes": 8 * GIB} for n, text in enumerate(cpus)]
    return DeviceInfo(
        id="cpu:0",
        backend="cpu",
        name="a processor",
        memory_bytes=16 * GIB,
        dtypes=("float32", "float64"),
        details={"numa_nodes": nodes},
    )


def opened(*cpus: str) -> CpuDevice:
    device = open_device(info(*cpus))
    assert isinstance(device, CpuDevice)
    return device


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> dict[int, set[int]]:
    """Record which thread is kept on which processors, instead of keeping it there."""
    threads: dict[int, set[int]] = {}

    def keep(pid: int, cpus: set[int]) -> None:
        assert pid == 0  # the calling thread
        threads[threading.get_ident()] = cpus

    monkeypatch.setattr(os, "sched_setaffinity", keep, raising=False)
    return threads


def test_one_node_or_none_is_not_measured_by_itself() -> None:
    assert opened().memory_nodes == ()
    assert opened("0-3").memory_nodes == ()
    assert opened("0-3", "").memory_nodes == ()  # the other has memory only


def test_a_nodes_threads_stay_on_its_processors(pinned: dict[int, set[int]]) -> None:
    device = opened("0-2", "8,12")
    first, second = device.memory_nodes
    assert second == MemoryNode(1, "8,12", 8 * GIB)
    for node, cpus in ((first, {0, 1, 2}), (second, {8, 12})):
        pinned.clear()
        work = device.node_stream(node, "float32", 3 * MIB)
        assert work.amount == 2 * 3 * MIB
        assert not work.correct()
        work.run()
        assert work.correct()
        assert 1 <= len(pinned) <= len(cpus)
        assert all(kept == cpus for kept in pinned.values())
        assert threading.get_ident() not in pinned  # the caller goes where it likes


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads are pinned on Linux")
def test_pinning_is_real_and_ends_with_the_nodes_threads() -> None:
    usable = os.sched_getaffinity(0)
    one = str(min(usable))
    device = CpuDevice((MemoryNode(0, one, None), MemoryNode(1, one, None)))
    work = device.node_stream(device.memory_nodes[0], "float64", MIB)
    work.run()
    assert work.correct()
    assert os.sched_getaffinity(0) == usable


class Noded(FakeDevice):
    """A processor with two nodes; the second streams at half the first's rate."""

    memory_nodes = (MemoryNode(0, "0-7", GIB), MemoryNode(1, "8-15", None))
    spoiled = False

    def node_stream(self, node: MemoryNode, dtype: str, nbytes: int) -> Workload:
        self.tried.append((dtype, node.cpus, nbytes))
        rate = 32.0 / (node.node + 1)
        return Workload(2 * nbytes, lambda: round(2 * nbytes / rate), lambda: not self.spoiled)


def measured(device: FakeDevice) -> tuple[dict[str, tuple[NodeStream, ...]], list[str]]:
    records: list[Record] = list(measure_device(info(), device, HASTY))
    nodes: dict[str, Any] = {
        r.rate.dtype: r.rate.nodes for r in records if isinstance(r, RateMeasured)
    }
    return nodes, [r.text for r in records if isinstance(r, Note)]


def test_each_node_has_its_rate_in_the_table_once() -> None:
    device = Noded({"float32": {"plain": 4.0}}, host_memory_kinds=())
    nodes, notes = measured(device)
    first, second = nodes["float32"]
    assert [(n.node, n.cpus) for n in (first, second)] == [(0, "0-7"), (1, "8-15")]
    assert [n.bytes_per_ns for n in (first, second)] == pytest.approx([32.0, 16.0])
    assert first.interval == pytest.approx((32.0, 32.0))
    assert len(first.samples) >= HASTY.fewest
    assert nodes["float64"] == ()
    assert notes == []
    # a sixteenth of the node's memory; a node that does not tell has its share of all
    sizes = {cpus: nbytes for _, cpus, nbytes in device.tried if cpus in ("0-7", "8-15")}
    assert sizes["0-7"] == 64 * MIB
    assert sizes["8-15"] <= 256 * MIB


def test_a_wrong_copy_costs_the_nodes_and_a_note() -> None:
    device = Noded({"float32": {"plain": 4.0}}, host_memory_kinds=())
    device.spoiled = True
    nodes, notes = measured(device)
    assert nodes["float32"] == ()
    assert notes == [
        "streaming in each memory node: wrong result after many runs, left out"
    ]
