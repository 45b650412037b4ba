"""`plan` returns the best of the DP's placement and the baselines, priced with every edge."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from small_graphs import CPU, GPU

from fuel_gpu.calibration.curves import line_curve
from fuel_gpu.calibration.table import FORMAT_VERSION, Machine, Rate, Table, Transfer
from fuel_gpu.device import Device
from fuel_gpu.errors import PlanError, UsageError
from fuel_gpu.graph.arena import Graph, Node, TensorType
from fuel_gpu.planner.explain import explain
from fuel_gpu.planner.plan import Plan, plan
from fuel_gpu.planner.plan_record import encode_plan, plan_record
from fuel_gpu.probes.report import DeviceInfo

MIB = 2**20


def matrix(rows: int, columns: int) -> TensorType:
    return TensorType("float32", (rows, columns))


def a_table(*, link_bytes_per_ns: float = 10.0, gpu_memory_bytes: int = 2**30) -> Table:
    """A CPU of 10 FLOP/ns and a GPU of 1000, both 100 B/ns; launches cost 0 and 5 us.

    float16 is four times as fast.
    """
    devices = (
        DeviceInfo(id="cpu:0", backend="cpu", name="a CPU", memory_bytes=2**34),
        DeviceInfo(id="cuda:0", backend="cuda", name="a GPU", memory_bytes=gpu_memory_bytes),
    )
    rates = tuple(
        Rate(
            device=device,
            dtype=dtype,
            flops_per_ns=flops if dtype == "float32" else 4 * flops,
            bytes_per_ns=100.0,
            launch_ns=launch,
            provenance="datasheet",
        )
        for device, flops, launch in (("cpu:0", 10.0, 0), ("cuda:0", 1000.0, 5_000))
        for dtype in ("float32", "float16")
    )
    transfers = tuple(
        Transfer(
            src=src,
            dst=dst,
            points=(),
            curve=line_curve(10_000, link_bytes_per_ns),
            provenance="datasheet",
        )
        for src, dst in (("cpu:0", "cuda:0"), ("cuda:0", "cpu:0"))
    )
    return Table(
        version=FORMAT_VERSION,
        machine=Machine(fingerprint="made up"),
        created="2026-01-01T00:00:00Z",
        devices=devices,
        transfers=transfers,
        rates=rates,
    )


def two_products(rows: int = 1024) -> Graph:
    """X (rows by 1024) -> first (1024 by 1024 weight) -> Relu -> second -> the output."""
    graph = Graph()
    x = graph.push(Node("Input", (), matrix(rows, 1024), "input", "x"))
    w1 = graph.push(Node("Weight", (), matrix(1024, 1024), "weight", "w1"))
    w2 = graph.push(Node("Weight", (), matrix(1024, 1024), "weight", "w2"))
    first = graph.push(Node("MatMul", (x, w1), matrix(rows, 1024), name="first"))
    relu = graph.push(Node("Relu", (first,), matrix(rows, 1024), name="relu"))
    second = graph.push(Node("MatMul", (relu, w2), matrix(rows, 1024), name="second"))
    graph.outputs = [second]
    return graph


# 1024 cubed times two FLOP: 214_748_364 ns on the CPU, 2_147_483 on the GPU, and more than the
# 125_829 ns for 12 MiB at 100 B/ns. The Relu's 1024 squared FLOP take 104_857 ns on the CPU, and
# its 8 MiB 83_886 ns on the GPU. A crossing of 4 MiB at 10 B/ns: 10_000 + 419_430.
PRODUCT_CPU, RELU_CPU = 214_748_364, 104_857
PRODUCT_GPU, RELU_GPU = 2_147_483 + 5_000, 83_886 + 5_000
CROSSING = 429_430


def test_worked_totals() -> None:
    made = plan(two_products(), a_table())
    assert made.total_ns == 2 * PRODUCT_GPU + RELU_GPU + 2 * CROSSING
    baselines = {b.name: b.total_ns for b in made.baselines}
    assert baselines["cpu:0"] == 2 * PRODUCT_CPU + RELU_CPU
    assert baselines["cuda:0"] == made.total_ns
    assert made.chosen == "placement-dp"  # the same as all on the GPU: the DP's own goes first


def test_over_two_devices_the_optimum_is_proved() -> None:
    made = plan(two_products(), a_table())
    assert made.lower_bound_ns is not None
    assert made.lower_bound_ns <= made.total_ns <= made.lower_bound_ns * 1.0001


def test_nothing_is_proved_where_fast_kernels_may_have_been_dropped() -> None:
    assert plan(two_products(), a_table(), keep=1).lower_bound_ns is None


def test_a_slow_link_keeps_the_work_on_the_cpu() -> None:
    made = plan(two_products(), a_table(link_bytes_per_ns=0.001))
    assert {made.device_of(step) for step in range(3)} == {CPU}
    assert made.total_ns == 2 * PRODUCT_CPU + RELU_CPU
    assert made.copies == ()


def test_outputs_may_stay_and_inputs_may_start_elsewhere() -> None:
    made = plan(two_products(), a_table(), entry=GPU, exit=GPU)
    assert made.total_ns == 2 * PRODUCT_GPU + RELU_GPU


def test_cold_prices_the_weights_upload() -> None:
    warm, cold = (plan(two_products(), a_table(), cold=c) for c in (False, True))
    assert cold.total_ns == warm.total_ns + 2 * CROSSING


def test_pins_hold_and_baselines_keep_them() -> None:
    graph = two_products()
    made = plan(graph, a_table(), pins={4: CPU})
    assert [str(made.device_of(step)) for step in range(3)] == ["cuda:0", "cpu:0", "cuda:0"]
    on_gpu = next(b for b in made.baselines if b.name == "cuda:0")
    assert on_gpu.total_ns == 2 * PRODUCT_GPU + RELU_CPU + 4 * CROSSING
    assert graph.placements == {}  # the caller's graph is as it was


def test_no_kernel_narrower_than_the_model_unless_digits_are_stated() -> None:
    table = a_table()
    assert not _kernels(plan(two_products(), table)) & {"cuda.matmul.float16"}
    admitted = plan(two_products(), table, precision_digits=2)
    found = admitted.execution.decision_set(3)
    assert found is not None
    assert {c.kernel_source for c in found} >= {"cuda.matmul.float16", "cuda.matmul.float32"}


def test_a_floor_that_nothing_meets_names_the_node() -> None:
    with pytest.raises(
        PlanError,
        match=r"node first \(MatMul\): filter 'precision floor' .* promise \d+ digits at most",
    ):
        plan(two_products(), a_table(), precision_digits=18)


def _kernels(made: Plan) -> set[str]:
    return {node.kernel for node in plan_record(made).nodes}


class TestDevices:
    def test_one_that_the_table_lacks_is_named_with_those_it_has(self) -> None:
        with pytest.raises(UsageError, match=r"no device cuda:1; it has cpu:0, cuda:0"):
            plan(two_products(), a_table(), pins={3: Device("cuda", 1)})

    def test_without_the_cpu_the_inputs_still_start_there(self) -> None:
        made = plan(two_products(), a_table(link_bytes_per_ns=0.001), devices=[GPU])
        assert {made.device_of(step) for step in range(3)} == {GPU}
        assert len(made.copies) == 2

    def test_one_without_rates_is_planned_on_only_by_name(self) -> None:
        table = a_table()
        on_cpu = tuple(rate for rate in table.rates if rate.device == "cpu:0")
        table = msgspec.structs.replace(table, rates=on_cpu)
        assert plan(two_products(), table).problem.devices == (CPU,)
        named = plan(two_products(), table, devices=[CPU, GPU])
        assert named.problem.devices == (CPU, GPU)
        assert {n.provenance for n in plan_record(named).nodes if n.device == "cuda:0"} <= {
            "fallback"
        }

    def test_a_table_without_rates_says_what_to_do(self) -> None:
        table = msgspec.structs.replace(a_table(), rates=())
        with pytest.raises(PlanError, match="run `fuel-gpu calibrate` again"):
            plan(two_products(), table)

    def test_a_simulator_is_never_planned_on(self) -> None:
        table = a_table()
        simulator = msgspec.structs.replace(table.devices[1], simulated=True)
        table = msgspec.structs.replace(table, devices=(table.devices[0], simulator))
        made = plan(two_products(), table)
        assert made.problem.devices == (CPU,)
        with pytest.raises(UsageError, match="no device cuda:0"):
            plan(two_products(), table, devices=[GPU])


class TestArguments:
    def test_devices_and_nodes_may_be_named(self) -> None:
        made = plan(
            two_products(),
            a_table(),
            devices=["cpu:0", "cuda:0"],
            pins={"relu": "cpu"},
            entry="cuda:0",
            memory={"cuda:0": 2**29},
        )
        assert str(made.device_of(1)) == "cpu:0"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"devices": "cuda:0"}, r"devices: 'cuda:0' is one name"),
            ({"devices": []}, "no device is left"),
            ({"devices": [7]}, "devices: 7 is no device"),
            ({"devices": ["cuda:0"], "pins": {"relu": "cpu:0"}}, "pinned to cpu:0, which is left"),
            ({"pins": {9999: CPU}}, "no node 9999: its ids go from 0 to 5"),
            ({"pins": {-1: CPU}}, "no node -1"),
            ({"pins": {"rellu": CPU}}, "did you mean relu"),
            ({"pins": {"w1": CPU}}, "w1 is a weight: no kernel runs it"),
            ({"pins": {"relu": 3}}, "pins: relu: 3 is no device"),
            ({"entry": None}, "entry: None is no device"),
            ({"exit": "cuda:3"}, "exit: the table has no device cuda:3"),
            ({"memory": {CPU: 0}}, "memory: 0 for cpu:0"),
            ({"memory": {CPU: 1.5}}, "memory: 1.5"),
            ({"memory": {CPU: True}}, "memory: True"),
            ({"memory": {"cuda:0": "5GiB"}}, "memory: '5GiB'"),
            ({"keep": -1}, "keep: -1"),
            ({"keep": None}, "keep: None"),
            ({"precision_digits": 19}, "precision_digits: 19 is no whole number from 0 to 18"),
            ({"precision_digits": 4.5}, "precision_digits: 4.5"),
            ({"engine": "cuda"}, "engine 'cuda' is none of"),
        ],
    )
    def test_what_cannot_be_meant_is_refused(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            plan(two_products(), a_table(), **arguments)

    def test_other_types_say_what_makes_one(self) -> None:
        anything: Any = "model.onnx"
        with pytest.raises(UsageError, match=r"graph: 'model.onnx' is no graph: load one with"):
            plan(anything, a_table())
        with pytest.raises(UsageError, match=r"table: 'model.onnx' is no table: load one with"):
            plan(two_products(), anything)

    def test_a_graphs_own_placements_are_checked_too(self) -> None:
        graph = two_products()
        graph.placements[4] = Device("cuda", 9)
        with pytest.raises(UsageError, match=r"relu: the table has no device cuda:9"):
            plan(graph, a_table())


class TestMemory:
    def test_peak_is_weights_and_live_values(self) -> None:
        # two weights of 4 MiB, and around each step its input and its output of 4 MiB
        assert plan(two_products(), a_table()).peak_bytes[GPU] == 16 * MIB

    def test_a_limit_moves_work_until_it_fits(self) -> None:
        made = plan(two_products(), a_table(), memory={GPU: 12 * MIB})
        assert made.peak_bytes[GPU] <= 12 * MIB
        # one product fits with its weight, input and output, and the Relu beside one weight
        assert made.total_ns == PRODUCT_CPU + RELU_GPU + PRODUCT_GPU + 2 * CROSSING
        on_gpu = next(b for b in made.baselines if b.name == "cuda:0")
        assert on_gpu.total_ns is None
        assert "4,194,304 bytes more than cuda:0 has" in on_gpu.reason

    def test_a_node_larger_than_a_device_goes_to_another(self) -> None:
        made = plan(two_products(), a_table(gpu_memory_bytes=9 * MIB))
        assert str(made.device_of(0)) == str(made.device_of(2)) == "cpu:0"

    def test_a_node_that_fits_nowhere_is_named_with_what_is_lacking(self) -> None:
        # a product needs its input, weight and output: 12 MiB; the CPU may use 2 MiB
        with pytest.raises(
            PlanError,
            match=r"the largest node is first \(MatMul\), which alone needs 12,582,912 bytes and "
            r"exceeds cpu:0 \(2,097,152 bytes\) by 10,485,760 bytes",
        ):
            plan(two_products(), a_table(), memory={GPU: MIB, CPU: 2 * MIB})

    def test_when_nothing_fits_it_says_by_how_much_and_names_the_largest_node(self) -> None:
        # each node fits alone, but not beside what must stay
        with pytest.raises(PlanError, match=r"by [0-9,]+ bytes; the largest node is first"):
            plan(two_products(), a_table(), memory={GPU: 12 * MIB - 1, CPU: 12 * MIB})

    def test_a_pinned_node_that_cannot_fit_is_the_one_named(self) -> None:
        with pytest.raises(PlanError, match=r"is second \(MatMul\).*exceeds cuda:0"):
            plan(two_products(), a_table(), pins={"second": GPU}, memory={GPU: MIB})

    def test_sizes_beyond_64_bits_are_counted(self) -> None:
        graph = Graph()
        huge = TensorType("float32", (2**31, 2**29))
        x = graph.push(Node("Input", (), huge, "input", "x"))
        graph.outputs = [graph.push(Node("Relu", (x,), huge, name="huge"))]
        with pytest.raises(PlanError, match=r"is huge \(Relu\), which alone needs"):
            plan(graph, a_table())

    def test_constants_alone_may_not_fit(self) -> None:
        graph = Graph()
        graph.outputs = [graph.push(Node("Constant", (), matrix(2**20, 2**12), "constant", "c"))]
        with pytest.raises(PlanError, match=r"exceeds cpu:0 .* Give more memory"):
            plan(graph, a_table(), memory={CPU: MIB})


class TestRecord:
    def test_json_has_what_programs_lean_on(self) -> None:
        made = plan(two_products(), a_table())
        record = msgspec.json.decode(encode_plan(made))
        assert record["total_ns"] == made.total_ns
        assert record["total_ns"] == sum(n["time_ns"] for n in record["nodes"]) + sum(
            c["ns"] for c in record["copies"]
        )
        first = record["nodes"][0]
        assert first["name"], first["op"] == ("first", "MatMul")
        assert (first["device"], first["backend"]) == ("cuda:0", "cuda")
        assert first["kernel"] == "cuda.matmul.float32"
        assert first["flops"] == 2 * 1024**3
        assert [(c["src"], c["dst"], c["bytes"], c["reader"]) for c in record["copies"]] == [
            ("cpu:0", "cuda:0", 4 * MIB, "first"),
            ("cuda:0", "cpu:0", 4 * MIB, None),
        ]
        assert set(record["baselines"]) == {"cpu:0", "cuda:0", "greedy"}

    def test_a_baseline_that_cannot_run_is_null(self) -> None:
        made = plan(two_products(), a_table(), memory={GPU: 12 * MIB})
        record = msgspec.json.decode(encode_plan(made))
        assert record["baselines"]["cuda:0"] is None
        assert "cuda:0" in record["baseline_reasons"]

    def test_nothing_from_a_datasheet_looks_measured(self) -> None:
        record = plan_record(plan(two_products(), a_table()))
        assert {node.provenance for node in record.nodes} == {"datasheet"}
        assert all("datasheet" in copy.provenance for copy in record.copies)


class TestExplain:
    def test_candidates_and_what_moving_the_node_alone_would_change(self) -> None:
        made = plan(two_products(), a_table())
        why = explain(made, "relu")
        assert why.device == GPU
        assert why.candidates[0].fate == "chosen"
        moves = {move.device: move for move in why.moves}
        assert moves[GPU].total_ns == made.total_ns
        assert moves[CPU].total_ns == made.total_ns + RELU_CPU - RELU_GPU + 2 * CROSSING
        assert (moves[CPU].node_ns, moves[CPU].copy_ns) == (RELU_CPU - RELU_GPU, 2 * CROSSING)
        assert len(moves[CPU].copies_added) == 2
        assert moves[CPU].copies_removed == ()

    def test_a_weight_says_what_it_is(self) -> None:
        why = explain(plan(two_products(), a_table()), "w1")
        assert why.device is None
        assert "weight" in why.note

    def test_an_unknown_node_names_similar_ones(self) -> None:
        with pytest.raises(UsageError, match="no node 'secnd'; did you mean second"):
            explain(plan(two_products(), a_table()), "secnd")


def test_an_example_table_plans_without_any_device(tmp_path: Path) -> None:
    from fuel_gpu.calibration.table_file import load_table, save_table

    made = plan(two_products(), load_table(save_table(a_table(), tmp_path / "table.json")))
    assert made.total_ns == plan(two_products(), a_table()).total_ns
