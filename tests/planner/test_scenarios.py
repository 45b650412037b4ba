"""`plan_scenarios` commits under every table what `compile_plan` commits under that one alone."""

import random

import msgspec
import numpy as np
import pytest
from small_graphs import CPU, GPU
from test_compile_oracle import random_graph
from test_plan import CROSSING, PRODUCT_CPU, PRODUCT_GPU, RELU_CPU, RELU_GPU, a_table, two_products

from fuel_gpu.calibration.curves import line_curve
from fuel_gpu.calibration.rates import device_rates
from fuel_gpu.calibration.table import Rate, Table, Transfer
from fuel_gpu.calibration.transfers import TableTransfers
from fuel_gpu.device import Device
from fuel_gpu.errors import PlanError, UsageError
from fuel_gpu.graph.arena import Graph
from fuel_gpu.kernels.binding import default_bindings
from fuel_gpu.planner.compile import compile_plan
from fuel_gpu.planner.options import PlanOptions
from fuel_gpu.planner.pricing import total_ns
from fuel_gpu.planner.problem import build_problem
from fuel_gpu.planner.scenarios import plan_scenarios
from fuel_gpu.probes.report import DeviceInfo

DEVICES = (CPU, GPU, Device("cuda", 1), Device("opencl", 0))


def random_table(rng: random.Random) -> Table:
    """Four devices with rates and links of their own."""

    def rate(device: Device, dtype: str) -> Rate:
        return Rate(
            device=str(device),
            dtype=dtype,
            flops_per_ns=rng.choice((0.5, 1.0, 7.0)),
            bytes_per_ns=rng.choice((0.5, 4.0)),
            launch_ns=rng.randint(0, 400),
            provenance="measured",
        )

    def link(src: Device, dst: Device) -> Transfer:
        curve = line_curve(rng.randint(0, 900), rng.choice((0.5, 2.0, 10.0)))
        return Transfer(src=str(src), dst=str(dst), points=(), curve=curve, provenance="measured")

    return replace_parts(
        a_table(),
        devices=tuple(
            DeviceInfo(id=str(d), backend=d.backend, name=str(d), memory_bytes=2**40)
            for d in DEVICES
        ),
        rates=tuple(rate(d, t) for d in DEVICES for t in ("float32", "float64")),
        transfers=tuple(link(a, b) for a in DEVICES for b in DEVICES if a != b),
    )


def replace_parts(table: Table, **parts: object) -> Table:
    return msgspec.structs.replace(table, **parts)


def alone(graph: Graph, table: Table) -> tuple[list[Device], int]:
    """What `compile_plan` commits under one table, and the price of that with every edge."""
    transfers = TableTransfers(table)
    order = graph.topological_order()
    inputs = [n for n in order if graph.node(n).kind == "input"]
    devices = tuple(d.device for d in table.devices)
    options = PlanOptions(
        devices=devices,
        rates={d: device_rates(table, d) for d in devices},
        pinned_device=CPU,
        input_residency=dict.fromkeys(inputs, CPU),
        estimator=transfers,
        exit_device=CPU,
    )
    plan = compile_plan(graph, order, default_bindings(), options)
    nodes = tuple(plan.placements)
    times = {}
    for n in nodes:
        found = plan.decision_set(n)
        assert found is not None
        times[n] = [
            min((c.composite_ns for c in found if c.device == d), default=None) for d in DEVICES
        ]
    problem = build_problem(graph, nodes, DEVICES, times, entry=CPU, exit=CPU)
    placement = [DEVICES.index(plan.placements[n]) for n in nodes]
    priced = total_ns(problem, placement, transfers.estimate_transfer_ns)
    assert priced is not None
    return [plan.placements[n] for n in nodes], priced


def with_some_devices(rng: random.Random, table: Table) -> Table:
    """The table without one of the cards, or without float64."""
    lost = rng.choice(("cuda:1", "opencl:0", "float64"))
    return replace_parts(
        table,
        devices=tuple(d for d in table.devices if d.id != lost),
        rates=tuple(r for r in table.rates if lost not in (r.device, r.dtype)),
        transfers=tuple(t for t in table.transfers if lost not in (t.src, t.dst)),
    )


@pytest.mark.parametrize("seed", range(60))
def test_equals_the_single_plans(seed: int) -> None:
    rng = random.Random(seed)
    graph = random_graph(rng)
    tables = [random_table(rng) for _ in range(5)]
    if not graph.placements and seed % 2:
        tables = [with_some_devices(rng, t) if rng.random() < 0.5 else t for t in tables]
    made = plan_scenarios(graph, tables)
    for scenario, table in enumerate(tables):
        devices, priced = alone(graph, table)
        assert [made.devices[c] for c in made.placement[scenario]] == devices
        assert made.total_ns[scenario] == priced


def test_worked_totals_by_link_speed() -> None:
    tables = [a_table(link_bytes_per_ns=10.0), a_table(link_bytes_per_ns=0.001)]
    made = plan_scenarios(two_products(), tables)
    assert made.total_ns.tolist() == [
        2 * PRODUCT_GPU + RELU_GPU + 2 * CROSSING,
        2 * PRODUCT_CPU + RELU_CPU,
    ]
    assert made.placement.tolist() == [[1, 1, 1], [0, 0, 0]]


def test_tables_may_have_different_devices() -> None:
    both = a_table()
    cpu_only = replace_parts(both, devices=both.devices[:1], rates=both.rates[:2], transfers=())
    made = plan_scenarios(two_products(), [both, cpu_only])
    assert made.devices == (CPU, GPU)
    assert made.placement.tolist() == [[1, 1, 1], [0, 0, 0]]
    assert made.total_ns[1] == 2 * PRODUCT_CPU + RELU_CPU


def test_pins_hold_in_every_scenario() -> None:
    made = plan_scenarios(two_products(), [a_table(), a_table()], pins={4: CPU})
    assert made.placement.tolist() == [[1, 0, 1], [1, 0, 1]]


def test_a_pin_on_a_device_that_a_table_lacks_names_the_table() -> None:
    both = a_table()
    cpu_only = replace_parts(both, devices=both.devices[:1], rates=both.rates[:2], transfers=())
    with pytest.raises(PlanError, match=r"under table 1: node relu \(Relu\)"):
        plan_scenarios(two_products(), [both, cpu_only], pins={4: GPU})


def test_without_tables_there_is_nothing_to_plan() -> None:
    with pytest.raises(UsageError, match="at least one table"):
        plan_scenarios(two_products(), [])


def test_many_scenarios_are_planned_at_once() -> None:
    speeds = np.geomspace(0.001, 100, 200)
    made = plan_scenarios(two_products(), [a_table(link_bytes_per_ns=s) for s in speeds])
    assert (np.diff(made.total_ns.astype(np.int64)) <= 0).all()  # a faster link is never slower
    assert made.placement[0].tolist() == [0, 0, 0]
    assert made.placement[-1].tolist() == [1, 1, 1]


def test_where_outputs_are_wanted_must_be_known_to_every_table() -> None:
    both = a_table()
    cpu_only = replace_parts(both, devices=both.devices[:1], rates=both.rates[:2], transfers=())
    with pytest.raises(UsageError, match="exit: the table has no device cuda:0; it has cpu:0"):
        plan_scenarios(two_products(), [both, cpu_only], exit="cuda:0")
