"""`compile_plan` decides as the specification's walk: decision device, pricing, rows, commits."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from small_graphs import CPU, GPU

from fuel_gpu.calibration.rates import Rates
from fuel_gpu.device import Device
from fuel_gpu.errors import PlanError
from fuel_gpu.graph.arena import Graph, Node, NodeId, TensorType
from fuel_gpu.kernels.binding import default_bindings
from fuel_gpu.kernels.costs import OperationCost
from fuel_gpu.planner.compile import compile_plan
from fuel_gpu.planner.decision_points import launch_overheads_ns
from fuel_gpu.planner.execution_plan import ExecutionPlan
from fuel_gpu.planner.filters import Filter, precision_floor
from fuel_gpu.planner.options import PlanOptions

VULKAN = Device("vulkan", 0)
FLOATS = TensorType("float32", (256,))  # 1024 bytes


class Line:
    """Crossings at `latency` plus a nanosecond a byte, `per_byte` times."""

    def __init__(self, latency: int, per_byte: int = 0) -> None:
        self.latency = latency
        self.per_byte = per_byte

    def estimate_transfer_ns(self, src: Device, dst: Device, bytes: int) -> int:
        return 0 if src == dst else self.latency + bytes * self.per_byte


class Latencies:
    """A judge that knows each operation's latency on each backend."""

    def __init__(self, known: Mapping[tuple[str, str], int]) -> None:
        self.known = known

    def measured_latency_ns(
        self, op: str, dtype: str, size_class: int, backend: str, kernel_source: str
    ) -> int | None:
        return self.known.get((op, backend))


def chain(*ops: str) -> SimpleNamespace:
    """X -> ops[0] -> ops[1] -> ..., the last one the output."""
    graph = Graph()
    x = graph.push(Node("Input", (), FLOATS, "input", "x"))
    nodes: list[NodeId] = []
    for op in ops:
        nodes.append(graph.push(Node(op, ((nodes or [x])[-1],), FLOATS, name=op.lower())))
    graph.outputs = [nodes[-1]]
    return SimpleNamespace(graph=graph, x=x, nodes=nodes)


def compiled(graph: Graph, options: PlanOptions) -> ExecutionPlan:
    return compile_plan(graph, graph.topological_order(), default_bindings(), options)


ON_CPU = PlanOptions(devices=(CPU, GPU), pinned_device=CPU)


class TestDecisionDevice:
    def test_explicit_placement_before_pin_before_backend(self) -> None:
        made = chain("Relu", "Tanh", "Exp")
        made.graph.placements[made.nodes[0]] = GPU
        made.graph.target_backends.update({made.nodes[0]: "cpu", made.nodes[1]: "cuda"})
        plan = compiled(made.graph, ON_CPU)
        assert [plan.placements[n] for n in made.nodes] == [GPU, CPU, CPU]

    def test_a_backend_stamp_means_its_device_0(self) -> None:
        made = chain("Relu")
        made.graph.target_backends[made.nodes[0]] = "cuda"
        plan = compiled(made.graph, PlanOptions(devices=(CPU, GPU)))
        assert plan.placements[made.nodes[0]] == GPU

    def test_nothing_to_decide_by_is_an_error_that_names_the_node(self) -> None:
        with pytest.raises(PlanError, match=r"node relu \(Relu\) has no decision device"):
            compiled(chain("Relu").graph, PlanOptions(devices=(CPU,)))


class TestEnumeration:
    def test_views_constants_and_copies_have_no_entry(self) -> None:
        graph = Graph()
        x = graph.push(Node("Input", (), FLOATS, "input", "x"))
        view = graph.push(Node("Reshape", (x,), FLOATS, "view", "view"))
        copied = graph.push(Node("Copy", (view,), FLOATS, "copy", "copied"))
        fixed = graph.push(Node("ConstantOfShape", (), FLOATS, "constant", "fixed"))
        total = graph.push(Node("Add", (copied, fixed), FLOATS, name="total"))
        graph.placements[copied] = CPU
        graph.outputs = [total]
        plan = compiled(graph, ON_CPU)
        assert list(plan.placements) == [total]
        assert all(plan.alternatives(n) is None for n in (x, view, copied, fixed))

    def test_only_the_decision_device_without_an_estimator(self) -> None:
        made = chain("Relu")
        judge = Latencies({("Relu", "cpu"): 900, ("Relu", "cuda"): 1})
        plan = compiled(made.graph, replace(ON_CPU, judge=judge))
        found = plan.decision_set(made.nodes[0])
        assert found is not None
        assert {c.device for c in found} == {CPU}

    def test_another_device_takes_what_the_decision_device_cannot(self) -> None:
        made = chain("TopK")  # vulkan has no sorting kernels
        options = PlanOptions(devices=(CPU, VULKAN), pinned_device=VULKAN)
        assert compiled(made.graph, options).placements[made.nodes[0]] == CPU

    def test_a_hard_pin_without_a_kernel_is_an_error(self) -> None:
        made = chain("TopK")
        made.graph.placements[made.nodes[0]] = VULKAN
        with pytest.raises(
            PlanError,
            match=r"node topk \(TopK\) of float32 has no kernel on vulkan:0; "
            r"BindingTable.with_kernel adds one",
        ):
            compiled(made.graph, PlanOptions(devices=(CPU, VULKAN), estimator=Line(1)))

    def test_no_kernel_anywhere_is_an_error_that_names_node_op_and_dtypes(self) -> None:
        made = chain("TopK")
        with pytest.raises(PlanError, match=r"node topk \(TopK\) of float32 has no kernel on"):
            compiled(made.graph, PlanOptions(devices=(VULKAN,), pinned_device=VULKAN))

    def test_required_pricing_without_an_estimator_is_an_error(self) -> None:
        with pytest.raises(PlanError, match="estimator"):
            compiled(chain("Relu").graph, replace(ON_CPU, require_transfer_pricing=True))


FAST_GPU = Latencies({("Relu", "cpu"): 900, ("Relu", "cuda"): 100})


class TestWhoMayMove:
    options = replace(ON_CPU, judge=FAST_GPU, estimator=Line(10))

    def test_a_cheaper_device_takes_the_node(self) -> None:
        made = chain("Relu")
        assert compiled(made.graph, self.options).placements[made.nodes[0]] == GPU

    def test_not_a_hard_placed_node(self) -> None:
        made = chain("Relu")
        made.graph.placements[made.nodes[0]] = CPU
        assert compiled(made.graph, self.options).placements[made.nodes[0]] == CPU

    def test_not_a_destructive_node(self) -> None:
        made = chain("Relu")
        made.graph.replace(made.nodes[0], replace(made.graph.node(made.nodes[0]), writes_input=0))
        assert compiled(made.graph, self.options).placements[made.nodes[0]] == CPU

    def test_nobody_with_cost_placement_switched_off(self) -> None:
        made = chain("Relu")
        plan = compiled(made.graph, replace(self.options, allow_cost_placement=False))
        assert plan.placements[made.nodes[0]] == CPU


class TestPricing:
    def test_an_input_of_known_residency_is_priced_and_an_unknown_one_is_not(self) -> None:
        made = chain("Relu")
        options = replace(ON_CPU, judge=FAST_GPU, estimator=Line(1000))
        # unknown: 100 on the GPU beats 900; known on the CPU: 100 + 1000 does not
        assert compiled(made.graph, options).placements[made.nodes[0]] == GPU
        known = replace(options, input_residency={made.x: CPU})
        plan = compiled(made.graph, known)
        assert plan.placements[made.nodes[0]] == CPU
        found = plan.decision_set(made.nodes[0])
        assert found is not None
        assert {(c.device, c.inbound_transfer_ns) for c in found} == {(CPU, 0), (GPU, 1000)}

    def test_a_segment_pays_for_a_crossing_that_no_single_node_could(self) -> None:
        # each node saves 800; in and out cost 1000 each: three nodes pay, one or two do not
        options = replace(ON_CPU, judge=FAST_GPU, estimator=Line(1000), exit_device=CPU)
        for length, expected in ((1, CPU), (2, CPU), (3, GPU)):
            made = chain(*["Relu"] * length)
            plan = compiled(made.graph, replace(options, input_residency={made.x: CPU}))
            assert set(plan.placements.values()) == {expected}

    def test_the_way_out_flips_the_local_winner(self) -> None:
        made = chain("Relu")
        options = replace(ON_CPU, judge=FAST_GPU, estimator=Line(1000))
        assert compiled(made.graph, options).placements[made.nodes[0]] == GPU
        assert compiled(made.graph, replace(options, exit_device=CPU)).placements == {
            made.nodes[0]: CPU
        }

    def test_a_copy_closes_its_producer_toward_its_target(self) -> None:
        # GPU 100 against CPU 900, but the copy to the CPU moves 1024 bytes at a ns each
        made = chain("Relu")
        copied = made.graph.push(Node("Copy", (made.nodes[0],), FLOATS, "copy", "copied"))
        made.graph.placements[copied] = CPU
        made.graph.outputs = [copied]
        plan = compiled(made.graph, replace(ON_CPU, judge=FAST_GPU, estimator=Line(10, 1)))
        assert plan.placements[made.nodes[0]] == CPU
        assert plan.residency[copied] == CPU

    def test_a_view_lies_where_its_source_lies(self) -> None:
        made = chain("Relu")
        view = made.graph.push(Node("Reshape", (made.nodes[0],), FLOATS, "view", "view"))
        after = made.graph.push(Node("Relu", (view,), FLOATS, name="after"))
        made.graph.outputs = [after]
        plan = compiled(made.graph, replace(ON_CPU, judge=FAST_GPU, estimator=Line(10)))
        assert plan.residency[view] == plan.residency[made.nodes[0]] == GPU

    def test_a_measurement_replaces_the_cost_but_not_the_transfer(self) -> None:
        made = chain("Relu")
        options = replace(ON_CPU, judge=FAST_GPU, estimator=Line(50), input_residency={made.x: CPU})
        found = compiled(made.graph, options).decision_set(made.nodes[0])
        assert found is not None
        assert found.winner is not None
        cost = found.winner.static_cost
        assert (cost.flops, cost.bytes_moved, cost.kernel_overhead_ns) == (0, 0, 100)
        assert found.winner.time_ns == 150


class TestSets:
    def test_the_committed_device_prunes_the_set_and_the_decision_set_keeps_all(self) -> None:
        made = chain("Relu")
        plan = compiled(made.graph, replace(ON_CPU, judge=FAST_GPU, estimator=Line(10)))
        pruned = plan.alternatives(made.nodes[0])
        everything = plan.decision_set(made.nodes[0])
        assert pruned is not None
        assert everything is not None
        assert {c.device for c in pruned} == {GPU}
        assert {c.device for c in everything} == {CPU, GPU}
        assert everything.winner == pruned.winner

    def test_a_floor_that_no_kernel_meets_names_filter_node_and_count(self) -> None:
        made = chain("Exp")
        floor = precision_floor(max_ulp=0)
        with pytest.raises(PlanError, match=r"exp \(Exp\).*'precision floor' keeps none of the"):
            compiled(made.graph, replace(ON_CPU, filters=(floor,)))

    def test_a_users_filter_sees_every_nodes_own_costs(self) -> None:
        made = chain("Relu", "Relu")
        small = TensorType("float32", (8,))
        last = made.graph.push(Node("Relu", (made.nodes[-1],), small, name="small"))
        made.graph.outputs = [last]
        seen: list[int] = []

        def note(alternatives: object, context: object) -> list[int]:
            candidates = list(alternatives)  # type: ignore[call-overload]  # a sequence
            seen.append(candidates[0].static_cost.bytes_moved)
            return list(range(len(candidates)))

        compiled(made.graph, replace(ON_CPU, filters=(Filter("note", note),)))
        assert seen == [2048, 2048, 1024 + 32]


class TestReuse:
    def test_covered_nodes_keep_their_decisions(self) -> None:
        made = chain("Relu")
        first = compiled(made.graph, replace(ON_CPU, judge=FAST_GPU, estimator=Line(10)))
        after = made.graph.push(Node("Tanh", (made.nodes[0],), FLOATS, name="after"))
        made.graph.outputs = [after]
        # alone, the first node would stay on the CPU now
        again = compiled(
            made.graph, replace(ON_CPU, estimator=Line(10**9), exit_device=CPU, reuse_plan=first)
        )
        assert again.placements[made.nodes[0]] == GPU
        assert again.placements[after] == GPU  # the crossing costs a second
        assert again.alternatives(made.nodes[0]) is not None

    def test_a_plan_of_another_generation_refuses(self) -> None:
        made = chain("Relu")
        plan = compiled(made.graph, ON_CPU)
        plan.check(made.graph)
        made.graph.replace(made.nodes[0], Node("Tanh", (made.x,), FLOATS, name="tanh"))
        with pytest.raises(PlanError, match="generation 0"):
            plan.check(made.graph)
        with pytest.raises(PlanError, match="compile it again"):
            compiled(made.graph, replace(ON_CPU, reuse_plan=plan))


class TestLaunches:
    def test_a_loop_launches_its_body_once_a_trip(self) -> None:
        body = chain("Relu", "Relu")
        graph = Graph()
        x = graph.push(Node("Input", (), FLOATS, "input", "x"))
        loop = graph.push(
            Node("Loop", (x,), FLOATS, "kernel", "loop", {"trip_count": 1000}, (body.graph,))
        )
        graph.outputs = [loop]
        rates = {CPU: {"float32": Rates(1e9, 1e9, 700, "measured")}}
        options = PlanOptions(devices=(CPU,), pinned_device=CPU, rates=rates)
        found = compiled(graph, options).alternatives(loop)
        assert found is not None
        assert found.winner is not None
        assert found.winner.static_cost.kernel_overhead_ns == 2 * 1000 * 700
        assert found.winner.time_ns == 2 * 1000 * 700

    def test_overheads_saturate(self) -> None:
        costs = [OperationCost(0, 0), OperationCost(0, 0, launches=2**63)]
        overheads = launch_overheads_ns(
            np.array([5, 7, 0], np.uint64), costs, np.array([0, 1, 1], np.intp)
        )
        assert overheads.tolist() == [5, 2**64 - 1, 0]
