"""`compile_plan` over arrays equals the plainest walk on random graphs of every shape."""

import random
from dataclasses import dataclass

import pytest
from naive_compile import NaivePlan
from small_graphs import CPU, GPU

from fuel_gpu.calibration.rates import Rates
from fuel_gpu.device import Device
from fuel_gpu.graph.arena import Graph, Node, TensorType
from fuel_gpu.kernels.binding import default_bindings
from fuel_gpu.numbers import U64_MAX
from fuel_gpu.planner.compile import compile_plan
from fuel_gpu.planner.options import PlanOptions

SECOND = Device("cuda", 1)
OPENCL = Device("opencl", 0)
DEVICES = (CPU, GPU, SECOND, OPENCL)
OPS = ("Relu", "Tanh", "Exp", "Sqrt", "Neg")


@dataclass(frozen=True)
class Links:
    """A latency and a price a byte of its own for every pair of devices."""

    by_pair: dict[tuple[Device, Device], tuple[int, int]]

    def estimate_transfer_ns(self, src: Device, dst: Device, bytes: int) -> int:
        if src == dst:
            return 0
        latency, per_byte = self.by_pair[src, dst]
        return min(latency + per_byte * bytes, U64_MAX)


@dataclass(frozen=True)
class Latencies:
    by_kernel: dict[tuple[str, str], int]

    def measured_latency_ns(
        self, op: str, dtype: str, size_class: int, backend: str, kernel_source: str
    ) -> int | None:
        return self.by_kernel.get((op, kernel_source))


def random_graph(rng: random.Random) -> Graph:
    """Inputs, then nodes that read one or two earlier values; some views, copies and pins."""
    graph = Graph()
    values = []
    for k in range(rng.randint(1, 3)):
        kind = TensorType("float32", (rng.choice((1, 8, 64, 100)),))
        values.append(graph.push(Node("Input", (), kind, "input", f"x{k}")))
    for k in range(rng.randint(1, 14)):
        kind = TensorType("float32", (rng.choice((1, 8, 64, 100)),))
        recent = values[-3:] if rng.random() < 0.7 else values
        read = rng.choice(recent)
        roll = rng.random()
        if roll < 0.12:
            made = graph.push(Node("Reshape", (read,), graph.node(read).type, "view", f"v{k}"))
        elif roll < 0.2:
            made = graph.push(Node("Copy", (read,), graph.node(read).type, "copy", f"c{k}"))
            graph.placements[made] = rng.choice(DEVICES)
        else:
            binary = rng.random() < 0.4
            inputs = (read, rng.choice(values)) if binary else (read,)
            writes = 0 if rng.random() < 0.05 else None
            op = "Add" if binary else rng.choice(OPS)
            made = graph.push(Node(op, inputs, kind, name=f"n{k}", writes_input=writes))
            if rng.random() < 0.08:
                graph.placements[made] = rng.choice(DEVICES)
        values.append(made)
    graph.outputs = rng.sample(values, k=min(len(values), rng.randint(1, 2)))
    return graph


def random_options(rng: random.Random, graph: Graph) -> PlanOptions:
    top = U64_MAX if rng.random() < 0.05 else rng.choice((5, 200, 20_000))

    def rate() -> Rates:
        return Rates(
            rng.choice((0.5, 1.0, 7.0)), rng.choice((0.5, 4.0)), rng.randint(0, 9), "measured"
        )

    devices = DEVICES[: rng.randint(1, 4)]
    dtypes = ("float32", "float64", "float16", "bfloat16")
    judge = None
    if rng.random() < 0.5:
        known = {}
        for op in (*OPS, "Add"):
            for backend in ("cpu", "cuda", "opencl"):
                for dtype in dtypes:
                    if rng.random() < 0.6:
                        known[op, f"{backend}.elementwise.{dtype}"] = rng.randint(0, min(top, 900))
        judge = Latencies(known)
    links = {(a, b): (rng.randint(0, top), rng.choice((0, 1, 3))) for a in DEVICES for b in DEVICES}
    inputs = [n for n, node in enumerate(graph.nodes) if node.kind == "input"]
    return PlanOptions(
        devices=devices,
        rates={d: {t: rate() for t in dtypes} for d in DEVICES},
        pinned_device=rng.choice(DEVICES),
        input_residency={n: rng.choice(DEVICES) for n in inputs if rng.random() < 0.7},
        estimator=None if rng.random() < 0.1 else Links(links),
        judge=judge,
        keep=rng.choice((0, 1, 2, 3, 32)),
        exit_device=rng.choice((None, *DEVICES)),
        narrower=True,
        allow_cost_placement=rng.random() < 0.9,
    )


@pytest.mark.parametrize("block", range(10))
def test_equals_the_plainest_walk(block: int) -> None:
    for seed in range(block * 150, block * 150 + 150):
        rng = random.Random(seed)
        graph = random_graph(rng)
        options = random_options(rng, graph)
        order = graph.topological_order()
        made = compile_plan(graph, order, default_bindings(), options)
        naive = NaivePlan(graph, options)
        naive.walk(order)
        assert made.placements == naive.device, seed
        for node_id, expected in naive.sets.items():
            found = made.decision_set(node_id)
            assert found is not None
            here = [c for c in expected if c.device == naive.device[node_id]]
            away = [c for c in expected if c.device != naive.device[node_id]]
            assert list(found) == [*here, *away], (seed, node_id)
            pruned = made.alternatives(node_id)
            assert pruned is not None
            assert list(pruned) == here
