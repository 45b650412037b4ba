"""Route picking: what can be picked, what is cheapest now, and when a pick is redone."""

import math
from typing import Any

import pytest
from given_plans import CUDA, OPENCL, VECTOR, chain
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu.device import HOST, Device
from fuel_gpu.errors import UsageError
from fuel_gpu.graph.arena import Graph, Node, NodeId
from fuel_gpu.graph.branches import ArmPrice
from fuel_gpu.graph.lowering import lower
from fuel_gpu.planner.route_picking import DeviceTelemetry, RoutePicker, pick_arms

KIB = 1024


def price(device: Device, time_ns: int, size: int = KIB) -> ArmPrice:
    return ArmPrice(device, device.backend, time_ns, size)


def decide(graph: Graph, node_id: NodeId, *prices: ArmPrice | None) -> NodeId:
    """Record a branch at a node of a chain, with a clone for each price after the first."""
    builder = graph.open_branch(node_id - 1).add_arm(node_id, prices[0])
    for each in prices[1:]:
        builder.add_arm(graph.push(graph.node(node_id)), each)
    branch = builder.finalize_branches(graph, node_id + 1)
    assert branch is not None
    return branch


def one_decision(*prices: ArmPrice | None) -> tuple[Graph, NodeId]:
    graph = chain(3)
    return graph, decide(graph, 2, *prices)


def free(size: int, load: float = 0.0) -> DeviceTelemetry:
    return DeviceTelemetry(size, load)


def test_without_telemetry_arm_0_is_followed() -> None:
    graph, branch = one_decision(price(CUDA, 10), price(HOST, 1))
    assert pick_arms(graph, None) == {branch: 0}
    assert pick_arms(graph, {}) == {branch: 0}


def test_a_graph_without_branches_has_nothing_to_pick() -> None:
    assert pick_arms(chain(3), {HOST: free(KIB)}) == {}


def test_the_planned_arm_is_kept_while_it_fits_and_its_device_is_idle() -> None:
    graph, branch = one_decision(price(CUDA, 10), price(HOST, 40))
    assert pick_arms(graph, {CUDA: free(KIB), HOST: free(KIB)}) == {branch: 0}


def test_an_arm_that_does_not_fit_is_not_picked() -> None:
    graph, branch = one_decision(price(CUDA, 10), price(HOST, 40))
    assert pick_arms(graph, {CUDA: free(KIB - 1), HOST: free(KIB)}) == {branch: 1}


@pytest.mark.parametrize(
    ("load", "arm"),
    [
        (0.70, 0),  # 10 / 0.3 = 33.3 against 40
        (0.75, 0),  # 10 / 0.25 = 40: a tie keeps the earlier arm
        (0.80, 1),  # 10 / 0.2 = 50
        (1.00, 1),  # never done
    ],
)
def test_a_busy_device_is_slower_by_the_share_that_is_left(load: float, arm: int) -> None:
    graph, branch = one_decision(price(CUDA, 10), price(HOST, 40))
    assert pick_arms(graph, {CUDA: free(KIB, load), HOST: free(KIB)}) == {branch: arm}


def test_of_several_arms_the_cheapest_that_fits_is_picked() -> None:
    graph, branch = one_decision(price(CUDA, 10), price(OPENCL, 30), price(HOST, 20))
    telemetry = {CUDA: free(0), OPENCL: free(KIB), HOST: free(KIB)}
    assert pick_arms(graph, telemetry) == {branch: 2}
    assert pick_arms(graph, telemetry | {HOST: free(KIB, 0.5)}) == {branch: 1}


def test_where_nothing_fits_arm_0_stays() -> None:
    graph, branch = one_decision(price(CUDA, 10), price(HOST, 40))
    assert pick_arms(graph, {CUDA: free(0), HOST: free(0)}) == {branch: 0}


def test_a_full_device_leaves_for_one_that_is_busy_all_the_time() -> None:
    graph, branch = one_decision(price(CUDA, 10), price(HOST, 40))
    assert pick_arms(graph, {CUDA: free(0), HOST: free(KIB, 1.0)}) == {branch: 1}


def test_an_arm_that_cannot_be_weighed_is_not_picked() -> None:
    graph, branch = one_decision(price(CUDA, 10), price(HOST, 40))
    assert pick_arms(graph, {CUDA: free(0)}) == {branch: 0}  # the CPU does not report
    assert pick_arms(graph, {HOST: free(KIB)}) == {branch: 0}  # arm 0's device does not
    graph, branch = one_decision(price(CUDA, 10), None)
    assert pick_arms(graph, {CUDA: free(0), HOST: free(KIB)}) == {branch: 0}
    graph, branch = one_decision(None, price(HOST, 1))
    assert pick_arms(graph, {CUDA: free(0), HOST: free(KIB)}) == {branch: 0}


def test_a_decision_inside_an_arm_that_is_left_is_not_taken() -> None:
    graph = chain(4)
    inner = decide(graph, 2, price(CUDA, 10), price(HOST, 5))
    fused = graph.push(Node("Fused", (1,), VECTOR))
    outer = (
        graph.open_branch(1)
        .add_arm(3, price(CUDA, 20))
        .add_arm(fused, price(OPENCL, 30))
        .finalize_branches(graph, 4)
    )
    assert outer is not None
    fits = {CUDA: free(KIB), HOST: free(KIB), OPENCL: free(KIB)}
    assert pick_arms(graph, fits) == {outer: 0, inner: 1}
    busy = fits | {CUDA: free(KIB, 0.9)}
    assert pick_arms(graph, busy) == {outer: 1}
    assert lower(graph, graph.topological_order(), pick_arms(graph, busy)).order == (0, 1, fused, 4)


@pytest.mark.parametrize(
    ("size", "arm"),
    [
        (100_000, 0),
        (10_001, 0),  # within a factor of ten below: the cached pick, though it no longer fits
        (10_000, 1),  # a tenth: redone
        (999_999, 0),
    ],
)
def test_a_pick_is_redone_when_free_memory_moves_by_a_factor_of_ten(size: int, arm: int) -> None:
    graph, branch = one_decision(price(CUDA, 10, 50_000), price(HOST, 40))
    picker = RoutePicker(graph)
    assert picker.pick({CUDA: free(100_000), HOST: free(KIB)}) == {branch: 0}
    assert picker.pick({CUDA: free(size), HOST: free(KIB)}) == {branch: arm}


def test_a_pick_is_redone_when_memory_comes_back() -> None:
    graph, branch = one_decision(price(CUDA, 10, 50_000), price(HOST, 40))
    picker = RoutePicker(graph)
    assert picker.pick({CUDA: free(10_000), HOST: free(KIB)}) == {branch: 1}
    assert picker.pick({CUDA: free(99_999), HOST: free(KIB)}) == {branch: 1}
    assert picker.pick({CUDA: free(100_000), HOST: free(KIB)}) == {branch: 0}


def test_small_steps_count_from_the_cached_pick() -> None:
    graph, branch = one_decision(price(CUDA, 10, 50_000), price(HOST, 40))
    picker = RoutePicker(graph)
    picks = [
        picker.pick({CUDA: free(size), HOST: free(KIB)})[branch]
        for size in (100_000, 40_000, 20_000, 10_000)
    ]
    assert picks == [0, 0, 0, 1]


def test_memory_that_runs_out_or_comes_from_nothing_has_moved() -> None:
    graph, branch = one_decision(price(CUDA, 10), price(HOST, 40))
    picker = RoutePicker(graph)
    picks = [
        picker.pick({CUDA: free(size), HOST: free(KIB)})[branch] for size in (KIB, 0, 0, 2 * KIB)
    ]
    assert picks == [0, 1, 1, 0]


def test_load_alone_redoes_nothing() -> None:
    graph, branch = one_decision(price(CUDA, 10), price(HOST, 40))
    picker = RoutePicker(graph)
    assert picker.pick({CUDA: free(KIB), HOST: free(KIB)}) == {branch: 0}
    assert picker.pick({CUDA: free(KIB, 0.99), HOST: free(KIB)}) == {branch: 0}


def test_a_device_that_appears_or_goes_redoes_the_pick() -> None:
    graph, branch = one_decision(price(CUDA, 10), price(HOST, 5))
    picker = RoutePicker(graph)
    assert picker.pick({CUDA: free(KIB)}) == {branch: 0}
    assert picker.pick({CUDA: free(KIB), HOST: free(KIB)}) == {branch: 1}
    assert picker.pick({CUDA: free(KIB)}) == {branch: 0}


def test_a_gap_in_the_telemetry_keeps_the_cache() -> None:
    graph, branch = one_decision(price(CUDA, 10, 50_000), price(HOST, 40))
    picker = RoutePicker(graph)
    assert picker.pick(None) == {branch: 0}
    assert picker.pick({CUDA: free(10_000), HOST: free(KIB)}) == {branch: 1}
    assert picker.pick(None) == {branch: 0}
    assert picker.pick({CUDA: free(60_000), HOST: free(KIB)}) == {branch: 1}


def test_other_branches_redo_the_pick() -> None:
    graph, first = one_decision(price(CUDA, 10), price(HOST, 40))
    picker = RoutePicker(graph)
    telemetry = {CUDA: free(KIB), HOST: free(KIB)}
    assert picker.pick(telemetry) == {first: 0}
    second = decide(graph, 1, price(CUDA, 10), price(HOST, 5))
    assert picker.pick(telemetry) == {first: 0, second: 1}


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=5),
    st.lists(
        st.tuples(st.integers(0, 50), st.sampled_from([0.0, 0.5, 1.0])), min_size=5, max_size=5
    ),
)
def test_no_arm_that_can_be_picked_is_cheaper_than_the_picked_one(
    arms: list[tuple[int, int]], devices: list[tuple[int, float]]
) -> None:
    arms.append(arms[0])
    graph, branch = one_decision(
        *(price(Device("cuda", k % 5), time, size) for k, (time, size) in enumerate(arms))
    )
    telemetry = {Device("cuda", k): free(*each) for k, each in enumerate(devices)}

    def weighed(arm: int) -> float:
        room, load = devices[arm % 5]
        time, size = arms[arm]
        return math.nan if size > room else time / (1 - load) if load < 1 else math.inf

    times = [weighed(arm) for arm in range(len(arms))]
    able = [arm for arm, time in enumerate(times) if not math.isnan(time)]
    expected = min(able, key=lambda arm: (times[arm], arm)) if able else 0
    assert pick_arms(graph, telemetry) == {branch: expected}


@pytest.mark.parametrize("load", [-0.1, 1.1, math.nan])
def test_a_load_outside_0_to_1_is_refused(load: float) -> None:
    with pytest.raises(UsageError, match="load is"):
        DeviceTelemetry(KIB, load)


def test_negative_memory_is_refused() -> None:
    with pytest.raises(UsageError, match="free_bytes is -1"):
        DeviceTelemetry(-1)


def test_devices_may_report_by_name() -> None:
    graph, branch = one_decision(price(CUDA, 10), price(HOST, 5))
    reported = {"cuda:0": free(KIB), "cpu": free(KIB)}
    assert pick_arms(graph, reported) == {branch: 1}
    picker = RoutePicker(graph)
    assert picker.pick(reported) == {branch: 1}
    assert picker.pick({CUDA: free(KIB), HOST: free(0)}) == {branch: 0}


@pytest.mark.parametrize(
    ("telemetry", "message"),
    [
        ({"cpu:0": 1}, "telemetry: 1 for cpu:0 is no DeviceTelemetry"),
        ({HOST: None}, "telemetry: None for cpu:0 is no DeviceTelemetry"),
        ({"the cpu": free(KIB)}, "telemetry: 'the cpu' is not a device"),
        ({0: free(KIB)}, "telemetry: 0 is no device"),
        ([HOST], "telemetry: .* maps no devices"),
    ],
)
def test_what_is_no_telemetry_is_refused(telemetry: Any, message: str) -> None:
    graph, _ = one_decision(price(CUDA, 10), price(HOST, 5))
    with pytest.raises(UsageError, match=message):
        RoutePicker(graph).pick(telemetry)
    with pytest.raises(UsageError, match=message):
        pick_arms(graph, telemetry)


def test_routes_are_picked_of_a_graph_only() -> None:
    nothing: Any = None
    with pytest.raises(UsageError, match="graph: None is no graph"):
        RoutePicker(nothing)
    with pytest.raises(UsageError, match="graph: None is no graph"):
        pick_arms(nothing, None)
