"""The single placement DP equals the plain oracle, and is exact on chains and trees."""

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from placement_oracle import MAX, OracleDP

from fuel_gpu.device import Device
from fuel_gpu.planner.placement_dp import ChainInput, PlacementDP

CPU = Device("cpu")
GPU = Device("cuda")
OTHER = Device("cuda", 1)
CL = Device("opencl")


@dataclass(frozen=True)
class Paths:
    """A time for each ordered pair of devices, plus a time per byte."""

    latency_ns: dict[tuple[Device, Device], int]
    ns_per_byte: int

    def estimate_transfer_ns(self, src: Device, dst: Device, bytes: int) -> int:
        if src == dst:
            return 0
        return min(self.latency_ns[src, dst] + bytes * self.ns_per_byte, MAX)


DEVICES = (CPU, GPU, OTHER, CL)


def random_paths(rng: random.Random, scale: int) -> Paths:
    latency = {(src, dst): rng.randrange(scale) for src in DEVICES for dst in DEVICES}
    return Paths(latency, rng.choice([0, 0, 1, scale // 8 + 1]))


def random_costs(rng: random.Random, scale: int) -> list[tuple[Device, int]]:
    devices = rng.sample(DEVICES, rng.choice([1, 2, 2, 3, 4]))
    return [(device, rng.choice([0, 1, rng.randrange(scale)])) for device in devices]


@pytest.mark.parametrize("scale", [4, 1000, 2**63, MAX], ids=["ties", "plain", "half", "saturated"])
def test_a_walk_over_random_graphs_equals_the_plain_oracle(scale: int) -> None:
    """Joins, fan-out, diamonds, repeated edges, views, closed rows: 1,000 graphs a scale."""
    rng = random.Random(scale)
    for _ in range(1000):
        paths = random_paths(rng, scale)
        dp, oracle = PlacementDP[Hashable](), OracleDP()
        nodes: list[Hashable] = []
        for k in range(rng.randrange(1, 14)):
            readable = rng.choices(nodes, k=rng.choice([0, 1, 1, 2, 3])) if nodes else []
            if nodes and rng.random() < 0.15:
                dp.add_alias(f"view{k}", rng.choice(nodes))
                nodes.append(f"view{k}")
                continue
            if nodes and rng.random() < 0.15:
                target, size = rng.choice(DEVICES), rng.randrange(5)
                row = dp.resolve(rng.choice(nodes))
                made = dp.close_toward(row, target, [size, 1], paths)
                assert made == oracle.close_toward(row, target, [size, 1], paths)
                continue
            fixed: list[tuple[Device, int]] = [(CPU, 4)] if rng.random() < 0.3 else []
            edges: dict[Hashable, list[int]] = {}
            for row in map(dp.resolve, readable):
                device = dp.committed_device(row)
                assert device == oracle.committed_device(row)
                assert dp.is_open(row) == oracle.is_open(row)
                if device is not None:
                    fixed.append((device, rng.randrange(5)))
                elif dp.is_open(row):
                    edges.setdefault(row, []).append(rng.randrange(5))
            costs = random_costs(rng, scale)
            inputs = [ChainInput(row, sizes) for row, sizes in edges.items()]
            dp.push_row(k, costs, fixed, inputs, paths)
            oracle.push_row(k, costs, fixed, inputs, paths)
            nodes.append(k)
        exit_device = rng.choice([None, *DEVICES])
        assert dp.finish(exit_device, hash, paths) == oracle.finish(exit_device, hash, paths)


def test_odd_calls_in_any_order_equal_the_plain_oracle() -> None:
    """Nodes pushed again, unknown and repeated producers, no devices, a device listed twice."""
    rng = random.Random(7)
    for _ in range(2000):
        scale = rng.choice([4, 100, MAX])
        paths = random_paths(rng, scale)
        dp, oracle = PlacementDP[Hashable](), OracleDP()
        for _ in range(rng.randrange(1, 12)):
            node = rng.randrange(6)
            if rng.random() < 0.2:
                target = rng.choice(DEVICES)
                assert dp.close_toward(node, target, [3], paths) == oracle.close_toward(
                    node, target, [3], paths
                )
                continue
            costs = [(rng.choice(DEVICES), rng.randrange(scale)) for _ in range(rng.randrange(4))]
            inputs: list[ChainInput[Hashable]] = [
                ChainInput(rng.randrange(6), rng.choices(range(3), k=rng.randrange(3)))
                for _ in range(rng.randrange(4))
            ]
            dp.push_row(node, costs, [], inputs, paths)
            oracle.push_row(node, costs, [], inputs, paths)
        exit_device = rng.choice([None, CPU])
        assert dp.finish(exit_device, hash, paths) == oracle.finish(exit_device, hash, paths)
        assert dp.finish(exit_device, hash, paths) == oracle.finish(exit_device, hash, paths)


def trees() -> st.SearchStrategy[list[int | None]]:
    """Draw the reader of each node, None for the last: every value has one reader."""
    return st.integers(1, 6).flatmap(
        lambda n: st.tuples(*[st.integers(k + 1, n - 1) for k in range(n - 1)], st.none()).map(list)
    )


def total_ns(
    readers: Sequence[int | None],
    costs: Sequence[dict[Device, int]],
    sizes: Sequence[int],
    placement: Sequence[Device],
    paths: Paths,
) -> int:
    """Price a whole placement of a tree whose result is wanted on the CPU."""
    total = sum(cost[device] for cost, device in zip(costs, placement, strict=True))
    for node, reader in enumerate(readers):
        target = CPU if reader is None else placement[reader]
        total += paths.estimate_transfer_ns(placement[node], target, sizes[node])
    return total


@given(
    trees(),
    st.lists(st.tuples(*[st.integers(0, 50)] * 4), min_size=6, max_size=6),
    st.lists(st.integers(0, 5), min_size=6, max_size=6),
    st.lists(st.integers(0, 30), min_size=9, max_size=9),
    st.integers(0, 9),
)
@settings(max_examples=150, deadline=None)
def test_on_a_tree_nothing_is_cheaper(
    readers: list[int | None],
    rows: list[tuple[int, ...]],
    sizes: list[int],
    latencies: list[int],
    ns_per_byte: int,
) -> None:
    devices = (CPU, GPU, OTHER)
    pairs = [(src, dst) for src in devices for dst in devices]
    paths = Paths(dict(zip(pairs, latencies, strict=True)), ns_per_byte)
    costs = [dict(zip(devices, row[:3], strict=True)) for row in rows[: len(readers)]]
    dp = PlacementDP[int]()
    for node, cost in enumerate(costs):
        inputs = [ChainInput(k, (sizes[k],)) for k in range(node) if readers[k] == node]
        dp.push_row(node, list(cost.items()), [], inputs, paths)
    placement = dict(dp.finish(CPU, lambda node: sizes[node], paths))
    found = total_ns(readers, costs, sizes, [placement[k] for k in range(len(costs))], paths)
    every = product(devices, repeat=len(costs))
    assert found == min(total_ns(readers, costs, sizes, choice, paths) for choice in every)


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=40),
    st.integers(0, 10**6),
    st.integers(0, 100),
)
@settings(deadline=None)
def test_a_chain_is_never_worse_than_any_single_device(
    costs: list[tuple[int, int]], latency_ns: int, ns_per_byte: int
) -> None:
    paths = Paths({(CPU, GPU): latency_ns, (GPU, CPU): latency_ns // 2}, ns_per_byte)
    dp = PlacementDP[int]()
    for node, (cpu_ns, gpu_ns) in enumerate(costs):
        inputs = [ChainInput(node - 1, (100,))] if node else []
        fixed = [] if node else [(CPU, 100)]
        dp.push_row(node, [(CPU, cpu_ns), (GPU, gpu_ns)], fixed, inputs, paths)
    placed = dict(dp.finish(CPU, lambda _: 100, paths))

    def price(placement: Sequence[Device]) -> int:
        stops = [CPU, *placement, CPU]
        hops = [paths.estimate_transfer_ns(a, b, 100) for a, b in pairwise(stops)]
        own = [cost[device == GPU] for cost, device in zip(costs, placement, strict=True)]
        return sum(hops) + sum(own)

    found = price([placed[k] for k in range(len(costs))])
    assert found <= price([CPU] * len(costs))
    assert found <= price([GPU] * len(costs))
