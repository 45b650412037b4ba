"""The nine graphs that the onnx package carries plan with a table from a datasheet."""

from pathlib import Path

import msgspec
import onnx
import pytest

import fuel_gpu as fg
from fuel_gpu.calibration.curves import line_curve
from fuel_gpu.calibration.table import Table, Transfer
from fuel_gpu.device import HOST, Device
from fuel_gpu.planner.memory import peak_bytes
from fuel_gpu.planner.plan_record import PlanRecord, plan_record
from fuel_gpu.planner.pricing import Placement
from fuel_gpu.planner.problem import Problem

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
MODELS = sorted(LIGHT.glob("light_*.onnx"))
DESKTOP = Path(__file__).parent.parent / "examples" / "tables" / "desktop.json"
GPU = Device("cuda", 0)


@pytest.fixture(scope="module")
def desktop() -> Table:
    return fg.load_table(DESKTOP)


def test_there_are_nine() -> None:
    assert len(MODELS) == 9


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.stem)
def test_each_plans_no_slower_than_every_baseline(model: Path, desktop: Table) -> None:
    made = fg.plan(fg.load_onnx(model), desktop)
    record = plan_record(made)
    assert record.total_ns == sum(n.time_ns for n in record.nodes) + sum(
        c.ns for c in record.copies
    )
    assert set(record.baselines) == {"cpu:0", "cuda:0", "greedy"}
    for total_ns in record.baselines.values():
        assert total_ns is not None
        assert record.total_ns <= total_ns
    assert not any(node.estimated for node in record.nodes)


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.stem)
def test_peak_memory_is_a_straightforward_count(model: Path, desktop: Table) -> None:
    made = fg.plan(fg.load_onnx(model), desktop)
    for k, device in enumerate(made.problem.devices):
        alone = [k] * len(made.placement)
        counted = peak_bytes(made.problem, alone, (HOST, GPU))[device]
        assert counted == pytest.approx(_largest_live_set(made.problem, alone, device), rel=0.01)


def _largest_live_set(problem: Problem, placement: Placement, device: Device) -> int:
    """Weights, and at each step what was made and is still to be read, all on one device."""
    weights = sum(v.bytes for v in problem.values if v.is_weight)
    steps = len(placement)
    largest = 0
    for step in range(steps):
        live = weights
        for value in problem.values:
            if value.is_weight:
                continue
            born = 0 if value.producer is None else value.producer
            dies = steps - 1 if value.is_output else max(value.readers, default=born)
            live += value.bytes if born <= step <= dies else 0
        largest = max(largest, live)
    return largest


def test_resnet50_counts_the_published_operations(desktop: Table) -> None:
    made = fg.plan(fg.load_onnx(LIGHT / "light_resnet50.onnx"), desktop)
    assert sum(n.flops for n in plan_record(made).nodes) == pytest.approx(8.2e9, rel=0.05)


def test_a_tenth_of_the_link_moves_work_back_to_the_cpu(desktop: Table) -> None:
    before, after = {}, {}
    for model in MODELS:
        graph = fg.load_onnx(model)
        before[model.stem] = _flops_on_cpu(plan_record(fg.plan(graph, desktop)))
        after[model.stem] = _flops_on_cpu(plan_record(fg.plan(graph, _slower(desktop, 10))))
    for name in ("light_bvlc_alexnet", "light_shufflenet", "light_squeezenet"):
        assert after[name] > before[name]


def _flops_on_cpu(record: PlanRecord) -> int:
    return sum(node.flops for node in record.nodes if node.device == "cpu:0")


def _slower(table: Table, factor: int) -> Table:
    """The same machine with links of a `factor`-th of the bandwidth and the same latency."""

    def slower(transfer: Transfer) -> Transfer:
        curve = transfer.curve
        return msgspec.structs.replace(
            transfer,
            points=(),
            curve=line_curve(curve.knot_ns[0], curve.tail_bytes_per_ns / factor),
        )

    return msgspec.structs.replace(table, transfers=tuple(map(slower, table.transfers)))


def test_resnet50_at_batch_64_fits_a_smaller_card(desktop: Table) -> None:
    graph = fg.load_onnx(LIGHT / "light_resnet50.onnx", batch=64)
    need = fg.plan(graph, desktop).peak_bytes[GPU]
    limit = need * 6 // 10
    fitted = fg.plan(graph, desktop, memory={GPU: limit})
    assert fitted.peak_bytes[GPU] <= limit
    on_cpu = next(b.total_ns for b in fitted.baselines if b.name == "cpu:0")
    assert on_cpu is not None
    assert fitted.total_ns < on_cpu
    assert any(fitted.device_of(step) == GPU for step in range(len(fitted.placement)))
