"""The placement DP: what a row carries forward, what is committed, and in which order."""

import doctest
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import pytest
from placement_oracle import MAX

from fuel_gpu.device import Device
from fuel_gpu.errors import UsageError
from fuel_gpu.planner import placement_dp
from fuel_gpu.planner.placement_dp import ChainInput, PlacementDP

CPU = Device("cpu")
GPU = Device("cuda")
OTHER = Device("cuda", 1)
CL = Device("opencl")


@dataclass(frozen=True)
class Link:
    """The same latency and time per byte on every path; nothing on the same device."""

    latency_ns: int
    ns_per_byte: int

    def estimate_transfer_ns(self, src: Device, dst: Device, bytes: int) -> int:
        if src == dst:
            return 0
        return min(self.latency_ns + bytes * self.ns_per_byte, MAX)


def chain(producer: Hashable, *edge_bytes: int) -> ChainInput[Hashable]:
    return ChainInput(producer, edge_bytes)


def test_a_row_carries_the_accumulated_cost_and_where_it_came_from() -> None:
    link = Link(latency_ns=1000, ns_per_byte=0)
    dp = PlacementDP[Hashable]()
    dp.push_row("a", [(CPU, 800), (GPU, 100)], [(CPU, 4)], [], link)
    assert dp.is_open("a")
    dp.push_row("b", [(CPU, 800), (GPU, 100)], [], [chain("a", 4)], link)
    assert not dp.is_open("a"), "a chained producer leaves the frontier"
    assert dp.is_open("b")
    # best(a) = [800, 100 + 1000]; best(b) = [800 + min(800, 2100), 100 + min(1800, 1100)]
    # = [1600, 1200]; leaving to the CPU: 1600 against 1200 + 1000.
    assert dp.finish(CPU, lambda _: 4, link) == [("b", CPU), ("a", CPU)]
    assert dp.committed_device("a") == CPU
    assert dp.committed_device("b") == CPU


def test_without_a_way_out_the_same_chain_stays_where_it_is_fastest() -> None:
    link = Link(latency_ns=1000, ns_per_byte=0)
    dp = PlacementDP[Hashable]()
    dp.push_row("a", [(CPU, 800), (GPU, 100)], [(CPU, 4)], [], link)
    dp.push_row("b", [(CPU, 800), (GPU, 100)], [], [chain("a", 4)], link)
    assert dp.finish(None, lambda _: 4, link) == [("b", GPU), ("a", GPU)]


@pytest.mark.parametrize(("exit_device", "committed"), [(CPU, CPU), (None, GPU), (GPU, GPU)])
def test_the_way_out_can_flip_the_local_winner(
    exit_device: Device | None, committed: Device
) -> None:
    # CPU 1050 against GPU 100, or 1100 with the return crossing.
    link = Link(latency_ns=1000, ns_per_byte=0)
    dp = PlacementDP[int]()
    dp.push_row(0, [(CPU, 1050), (GPU, 100)], [], [], link)
    dp.finish(exit_device, lambda _: 4, link)
    assert dp.committed_device(0) == committed


def test_the_size_of_the_way_out_is_asked_for_each_open_node() -> None:
    link = Link(latency_ns=0, ns_per_byte=1)
    dp = PlacementDP[str]()
    dp.push_row("small", [(CPU, 1000), (GPU, 100)], [], [], link)
    dp.push_row("large", [(CPU, 1000), (GPU, 100)], [], [], link)
    # GPU 100 + 899 < CPU 1000; GPU 100 + 900 = CPU 1000, a tie for the first-listed.
    sizes = {"small": 899, "large": 900}
    assert dp.finish(CPU, sizes.__getitem__, link) == [("small", GPU), ("large", CPU)]


def test_closing_toward_a_decided_reader_prices_the_crossing() -> None:
    link = Link(latency_ns=10, ns_per_byte=1)
    dp = PlacementDP[int]()
    dp.push_row(0, [(CPU, 300), (GPU, 100)], [], [], link)
    # GPU 100 + 10 + 1024 = 1134 against CPU 300.
    assert dp.close_toward(0, CPU, [1024], link) == [(0, CPU)]
    assert dp.committed_device(0) == CPU
    assert dp.close_toward(0, GPU, [1024], link) == [], "closing again changes nothing"
    assert dp.finish(None, lambda _: 0, link) == []


def test_closing_commits_the_whole_chain_behind_the_row() -> None:
    link = Link(latency_ns=100, ns_per_byte=0)
    dp = PlacementDP[int]()
    dp.push_row(0, [(CPU, 50), (GPU, 10)], [], [], link)
    dp.push_row(1, [(CPU, 50), (GPU, 10)], [], [ChainInput(0, (8,))], link)
    # best(1) = [50 + min(50, 110), 10 + min(150, 10)] = [100, 20]; toward the CPU 100 against 120.
    assert dp.close_toward(1, CPU, [8], link) == [(1, CPU), (0, CPU)]
    assert not dp.is_open(0)


def test_a_chained_row_is_not_closed() -> None:
    link = Link(latency_ns=100, ns_per_byte=0)
    dp = PlacementDP[int]()
    dp.push_row(0, [(CPU, 50), (GPU, 10)], [], [], link)
    dp.push_row(1, [(CPU, 50), (GPU, 10)], [], [ChainInput(0, (8,))], link)
    assert dp.close_toward(0, CPU, [8], link) == []
    assert dp.committed_device(0) is None


def test_a_value_read_twice_pays_for_two_crossings() -> None:
    link = Link(latency_ns=1000, ns_per_byte=0)
    # One node on the CPU, its reader better on the GPU by 1500: worth one crossing, not two.
    for edges, reader in [((4,), GPU), ((4, 4), CPU)]:
        dp = PlacementDP[int]()
        dp.push_row(0, [(CPU, 0)], [], [], link)
        dp.push_row(1, [(CPU, 1500), (GPU, 0)], [], [ChainInput(0, edges)], link)
        dp.finish(None, lambda _: 0, link)
        assert dp.committed_device(1) == reader


def test_equal_costs_stay_on_the_first_listed_device() -> None:
    link = Link(latency_ns=1000, ns_per_byte=0)
    dp = PlacementDP[Hashable]()
    dp.push_row(0, [(CPU, 0), (GPU, 0)], [], [], link)
    dp.push_row(1, [(CPU, 0), (GPU, 0)], [], [chain(0, 4, 4)], link)
    dp.finish(CPU, lambda _: 4, link)
    assert dp.committed_device(1) == CPU
    assert dp.committed_device(0) == CPU

    free = Link(0, 0)
    swapped = PlacementDP[Hashable]()
    swapped.push_row(0, [(GPU, 0), (CPU, 0)], [], [], free)
    swapped.push_row(1, [(CPU, 0), (GPU, 0)], [], [chain(0, 4)], free)
    assert swapped.finish(CPU, lambda _: 4, free) == [(1, CPU), (0, GPU)]


def test_a_segment_migrates_when_only_its_sum_pays_for_the_crossings() -> None:
    # Each of four nodes wins 400 on the GPU, in and out cost 700 each: 1600 against 1400.
    link = Link(latency_ns=700, ns_per_byte=0)
    dp = PlacementDP[int]()
    dp.push_row(0, [(CPU, 500), (GPU, 100)], [(CPU, 4)], [], link)
    for node in (1, 2, 3):
        dp.push_row(node, [(CPU, 500), (GPU, 100)], [], [ChainInput(node - 1, (4,))], link)
    assert dp.finish(CPU, lambda _: 4, link) == [(3, GPU), (2, GPU), (1, GPU), (0, GPU)]


def test_a_join_takes_each_producers_cheapest_device_and_commits_the_last_listed_first() -> None:
    link = Link(latency_ns=100, ns_per_byte=0)
    dp = PlacementDP[Hashable]()
    dp.push_row("left", [(CPU, 10), (GPU, 500)], [], [], link)
    dp.push_row("right", [(CPU, 500), (GPU, 10)], [], [], link)
    dp.push_row("join", [(CPU, 50), (GPU, 60)], [], [chain("left", 1), chain("right", 1)], link)
    # CPU: 50 + 10 + (10 + 100) = 170. GPU: 60 + (10 + 100) + 10 = 180.
    assert dp.finish(None, lambda _: 0, link) == [("join", CPU), ("right", GPU), ("left", CPU)]


def test_a_second_reader_of_a_chained_row_prices_nothing() -> None:
    link = Link(latency_ns=1000, ns_per_byte=0)
    dp = PlacementDP[int]()
    dp.push_row(0, [(CPU, 0), (GPU, 900)], [], [], link)
    dp.push_row(1, [(CPU, 0), (GPU, 900)], [], [ChainInput(0, (4,))], link)
    assert not dp.is_open(0), "so the caller gives the second reader no chain input"
    dp.push_row(2, [(CPU, 500), (GPU, 100)], [], [], link)
    assert dp.finish(None, lambda _: 0, link) == [(1, CPU), (0, CPU), (2, GPU)]


def test_a_diamond_commits_every_row_once() -> None:
    link = Link(latency_ns=1000, ns_per_byte=0)
    dp = PlacementDP[Hashable]()
    costs = [(CPU, 800), (GPU, 100)]
    dp.push_row("top", costs, [(CPU, 4)], [], link)
    dp.push_row("left", costs, [], [chain("top", 4)], link)
    dp.push_row("right", costs, [], [], link)
    dp.push_row("join", costs, [], [chain("left", 4), chain("right", 4)], link)
    # top [800, 1100], left [1600, 1200], right [800, 100];
    # join CPU 800 + 1600 + 800 = 3200, GPU 100 + 1200 + 100 = 1400; to the CPU 3200 against 2400.
    made = dp.finish(CPU, lambda _: 4, link)
    assert made == [("join", GPU), ("right", GPU), ("left", GPU), ("top", GPU)]


def test_aliases_flatten_through_chains_of_views() -> None:
    link = Link(0, 0)
    dp = PlacementDP[int]()
    dp.push_row(0, [(CPU, 0)], [], [], link)
    dp.add_alias(1, 0)
    dp.add_alias(2, 1)
    assert dp.resolve(2) == 0
    assert dp.resolve(1) == 0
    assert dp.resolve(3) == 3, "no alias stands for itself"
    assert dp.is_open(dp.resolve(2))


def test_saturated_costs_never_overflow_and_still_commit_every_row() -> None:
    link = Link(MAX, MAX)
    dp = PlacementDP[int]()
    dp.push_row(0, [(CPU, MAX), (GPU, MAX)], [(CPU, MAX), (GPU, MAX)], [], link)
    dp.push_row(1, [(CPU, MAX)], [], [ChainInput(0, (MAX,))], link)
    # Everything ties at 2**64 - 1, so everything stays on the first-listed device.
    assert dp.finish(GPU, lambda _: MAX, link) == [(1, CPU), (0, CPU)]


def test_sums_beyond_64_bits_tie_at_the_bound() -> None:
    # GPU would be dearer by far in unbounded integers; saturated, both cost 2**64 - 1.
    dp = PlacementDP[int]()
    dp.push_row(0, [(GPU, MAX), (CPU, MAX - 1)], [], [], Link(0, 0))
    dp.push_row(1, [(CPU, 1)], [], [ChainInput(0, (1,))], Link(5, 0))
    assert dp.finish(None, lambda _: 0, Link(0, 0)) == [(1, CPU), (0, CPU)]
    tied = PlacementDP[int]()
    tied.push_row(0, [(GPU, MAX), (CPU, MAX)], [], [], Link(0, 0))
    tied.push_row(1, [(CPU, 1)], [], [ChainInput(0, (1,))], Link(5, 0))
    assert tied.finish(None, lambda _: 0, Link(0, 0)) == [(1, CPU), (0, GPU)]


def test_a_new_dp_is_empty_and_knows_nothing() -> None:
    dp = PlacementDP[int]()
    assert dp.is_empty
    assert not dp.is_open(7)
    assert dp.committed_device(7) is None
    assert dp.close_toward(7, CPU, [1], Link(0, 0)) == []
    assert dp.finish(CPU, lambda _: 0, Link(0, 0)) == []
    dp.push_row(7, [(CPU, 1)], [], [], Link(0, 0))
    assert not dp.is_empty


def test_an_edge_from_a_node_without_a_row_prices_nothing() -> None:
    dp = PlacementDP[int]()
    dp.push_row(1, [(CPU, 5), (GPU, 4)], [], [ChainInput(99, (10**9,))], Link(1000, 1))
    assert dp.finish(None, lambda _: 0, Link(1000, 1)) == [(1, GPU)]


def test_a_row_without_devices_feeds_nothing_and_is_never_committed() -> None:
    link = Link(100, 0)
    dp = PlacementDP[int]()
    dp.push_row(0, [(CPU, 9), (GPU, 5)], [], [], link)
    dp.push_row(1, [], [], [ChainInput(0, (1,))], link)
    dp.push_row(2, [(CPU, 3), (GPU, 8)], [], [ChainInput(1, (1,))], link)
    # Node 0 is chained behind a row that never commits: it takes its own cheapest, at the end.
    assert dp.finish(None, lambda _: 0, link) == [(2, CPU), (0, GPU)]
    assert dp.committed_device(1) is None


def test_a_node_pushed_again_answers_for_its_newest_row() -> None:
    link = Link(100, 0)
    dp = PlacementDP[int]()
    dp.push_row(0, [(CPU, 1)], [], [], link)
    dp.push_row(0, [(GPU, 1)], [], [], link)
    assert dp.finish(None, lambda _: 0, link) == [(0, CPU), (0, GPU)]
    assert dp.committed_device(0) == GPU


def test_another_estimator_is_asked_anew() -> None:
    dp = PlacementDP[int]()
    dp.push_row(0, [(GPU, 10), (CPU, 500)], [(CPU, 4)], [], Link(100, 0))
    dp.push_row(1, [(GPU, 10), (CPU, 500)], [(CPU, 4)], [], Link(1000, 0))
    assert dp.finish(None, lambda _: 0, Link(0, 0)) == [(0, GPU), (1, CPU)]


def test_a_chain_of_a_hundred_thousand_nodes_needs_no_recursion() -> None:
    link = Link(10, 0)
    dp = PlacementDP[int]()
    for node in range(100_000):
        inputs = [ChainInput(node - 1, (4,))] if node else []
        dp.push_row(node, [(CPU, 2), (GPU, 1)], [], inputs, link)
    made = dp.finish(GPU, lambda _: 4, link)
    assert made == [(node, GPU) for node in reversed(range(100_000))]


def test_the_docstrings_example_holds() -> None:
    result = doctest.testmod(placement_dp)
    assert (result.attempted, result.failed) == (6, 0)


def test_bytes_that_are_no_list_are_refused() -> None:
    dp, link = PlacementDP[str](), Link(0, 1)
    dp.push_row("a", [(CPU, 1)], [], [], link)
    one_number: Any = 1 << 20
    with pytest.raises(UsageError, match="edge_bytes: 1048576 is no list"):
        dp.push_row("b", [(CPU, 1)], [], [ChainInput("a", one_number)], link)
    with pytest.raises(UsageError, match="edge_bytes: 1048576 is no list"):
        dp.close_toward("a", GPU, one_number, link)
