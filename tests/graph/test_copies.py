"""Copies: one for each value and destination device, and every kernel reads its own device."""

import pytest
from decided_graphs import VECTOR, add, chain, computed, graphs
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu.device import HOST, Device
from fuel_gpu.errors import PlanError
from fuel_gpu.graph.arena import Graph, Node
from fuel_gpu.graph.copies import insert_copies

GPU, OTHER = Device("cuda", 0), Device("cuda", 1)


def test_a_copy_goes_right_before_its_first_reader() -> None:
    graph = chain(3)
    order = insert_copies(graph, (0, 1, 2, 3), {0: HOST, 1: HOST, 2: GPU, 3: GPU})
    assert order == (0, 1, 4, 2, 3)
    assert graph.node(4) == Node("copy", (1,), VECTOR, kind="copy", name="f1@cuda:0")
    assert graph.placements == {4: GPU}
    assert graph.node(2).inputs == (4,)
    assert graph.topology_generation == 1


def test_nothing_is_copied_where_residency_stays() -> None:
    graph = chain(3)
    order = insert_copies(graph, (0, 1, 2, 3), dict.fromkeys(range(4), GPU), GPU)
    assert order == (0, 1, 2, 3)
    assert graph.nodes == chain(3).nodes
    assert graph.topology_generation == 0


def test_readers_on_one_device_share_a_copy_and_devices_do_not() -> None:
    graph = chain(1)
    readers = [add(graph, f"r{k}", 1, 1) for k in range(4)]
    graph.outputs = readers
    homes = dict(zip(readers, (GPU, OTHER, GPU, HOST), strict=True))
    order = insert_copies(graph, graph.topological_order(), {0: HOST, 1: HOST, **homes})
    gpu, other = 6, 7
    assert order == (0, 1, gpu, 2, other, 3, 4, 5)
    assert [graph.node(r).inputs for r in readers] == [
        (gpu, gpu),
        (other, other),
        (gpu, gpu),
        (1, 1),
    ]


def test_views_follow_their_source_with_one_copy_between_them() -> None:
    graph = chain(1)
    flat = add(graph, "flat", 1, kind="view")
    tall = add(graph, "tall", flat, kind="view")
    wide = add(graph, "wide", 1, kind="view")
    readers = [add(graph, "r", tall, wide), add(graph, "s", flat)]
    graph.outputs = readers
    order = insert_copies(graph, graph.topological_order(), {0: HOST, 1: HOST, 5: GPU, 6: GPU})
    copy, flat_there, tall_there, wide_there = 7, 8, 9, 10
    assert order == (0, 1, 2, 3, 4, copy, flat_there, tall_there, wide_there, 5, 6)
    assert graph.node(copy).inputs == (1,)
    assert graph.node(tall_there) == Node("tall", (flat_there,), VECTOR, "view", "tall@cuda:0")
    assert graph.node(5).inputs == (tall_there, wide_there)
    assert graph.node(6).inputs == (flat_there,)
    assert graph.placements == {copy: GPU}


def test_weights_and_constants_are_where_they_are_used() -> None:
    graph = Graph()
    weight, constant = add(graph, "w", kind="weight"), add(graph, "c", kind="constant")
    shaped = add(graph, "shaped", weight, kind="view")
    product = add(graph, "product", shaped, constant)
    graph.outputs = [product]
    assert insert_copies(graph, (0, 1, 2, 3), {product: GPU}) == (0, 1, 2, 3)


def test_a_pick_lies_with_its_node_and_is_copied_by_itself() -> None:
    graph = chain(1)
    second = add(graph, "second", 1, kind="pick")
    reader = add(graph, "reader", second)
    graph.outputs = [reader]
    order = insert_copies(graph, (0, 1, 2, 3), {0: GPU, 1: GPU, 3: HOST})
    assert order == (0, 1, 2, 4, 3)
    assert graph.node(4).inputs == (second,)


def test_outputs_are_brought_where_they_are_wanted() -> None:
    graph = chain(2)
    graph.outputs = [1, 2, 2]
    order = insert_copies(graph, (0, 1, 2), {0: HOST, 1: HOST, 2: GPU}, HOST)
    assert order == (0, 1, 3, 2, 4)
    assert graph.node(4).inputs == (2,)
    assert graph.outputs == [1, 4, 4]


def test_a_second_time_inserts_nothing() -> None:
    graph = chain(3)
    residency = {0: HOST, 1: GPU, 2: OTHER, 3: HOST}
    order = insert_copies(graph, (0, 1, 2, 3), residency)
    nodes = graph.nodes
    assert insert_copies(graph, order, residency) == order
    assert graph.nodes == nodes


def test_a_value_without_a_device_is_named_and_nothing_changes() -> None:
    graph = chain(2)
    with pytest.raises(PlanError, match=r"node 2 \(f2\) has no device to lie on"):
        insert_copies(graph, (0, 1, 2), {0: HOST, 1: GPU})
    assert graph.nodes == chain(2).nodes


@given(graphs(), st.data())
def test_every_kernel_reads_its_own_device_after_the_fewest_copies(
    graph: Graph, data: st.DataObject
) -> None:
    order = graph.topological_order()
    home = {n: data.draw(st.sampled_from([HOST, GPU, OTHER])) for n in order}
    residency = {n: home[n] for n in order if graph.node(n).kind != "view"}
    before = computed(graph, order, lambda n: graph.node(n).inputs)
    outputs = [before[n] for n in graph.outputs]
    crossings = {
        (graph.storage(value), home[n])
        for n in order
        if graph.node(n).kind == "kernel"
        for value in graph.node(n).inputs
        if home[graph.storage(value)] != home[n]
    }
    crossings |= {(graph.storage(n), HOST) for n in graph.outputs if home[graph.storage(n)] != HOST}
    after = insert_copies(graph, order, residency, HOST)
    copies = [n for n in after if graph.node(n).kind == "copy"]
    assert {(graph.node(n).inputs[0], graph.placements[n]) for n in copies} == crossings
    assert len(copies) == len(crossings)

    def lies_on(value: int) -> Device:
        carrier = graph.carrier(value)
        return graph.placements[carrier] if carrier in copies else home[carrier]

    for n in after:
        if graph.node(n).kind == "kernel":
            assert all(lies_on(value) == home[n] for value in graph.node(n).inputs)
    assert all(lies_on(n) == HOST for n in graph.outputs)
    found = computed(graph, after, lambda n: graph.node(n).inputs)
    assert [str(found[n]) for n in graph.outputs] == [str(value) for value in outputs]
