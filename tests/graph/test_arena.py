"""The arena: ids, orders, readers, residency carriers, and what counts as a change of topology."""

import pytest
from decided_graphs import VECTOR, add, chain, graphs
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu.device import Device
from fuel_gpu.errors import PlanError
from fuel_gpu.graph.arena import Graph, Node, TensorType


def test_ids_are_positions_and_inputs_must_exist() -> None:
    graph = chain(2)
    assert len(graph) == 3
    assert graph.node(1) == Node("f1", (0,), VECTOR, name="f1")
    with pytest.raises(PlanError, match="node 3 does not exist: the graph has 3 nodes"):
        graph.push(Node("late", (3,), VECTOR))
    assert len(graph) == 3


def test_a_type_knows_its_bytes() -> None:
    assert TensorType("float32", (2, 3)).bytes == 24
    assert TensorType("int4", (3,)).bytes == 2
    assert TensorType("float64", ()).bytes == 8


def test_order_keeps_only_what_the_outputs_need() -> None:
    graph = chain(3)
    add(graph, "unused", 1)
    assert graph.topological_order() == (0, 1, 2, 3)
    assert graph.topological_order([4]) == (0, 1, 4)


def test_order_takes_the_smallest_ready_id_first() -> None:
    graph = Graph()
    x = add(graph, "x", kind="input")
    a = add(graph, "a", x)
    b = add(graph, "b", x)
    late = add(graph, "late", x)
    graph.replace(a, Node("a", (late,), VECTOR))
    graph.outputs = [a, b]
    assert graph.topological_order() == (x, b, late, a)


def test_a_cycle_is_named() -> None:
    graph = chain(2)
    graph.replace(1, Node("f1", (2,), VECTOR, name="f1"))
    with pytest.raises(PlanError, match=r"node 1 \(f1\) lies on a cycle"):
        graph.topological_order()
    with pytest.raises(PlanError, match="cycle"):
        graph.position(2)


def test_only_a_changed_flow_is_a_new_topology_generation() -> None:
    graph = chain(2)
    add(graph, "more", 2)
    graph.open_branch(0).add_arm(1).add_arm(add(graph, "f1", 0)).finalize_branches(graph, 2)
    assert graph.topology_generation == 0
    graph.replace(2, Node("f2", (0,), VECTOR))
    assert graph.topology_generation == 1


def test_readers_are_listed_once_and_follow_a_replacement() -> None:
    graph = chain(1)
    square = add(graph, "square", 1, 1)
    assert graph.readers(1) == (square,)
    graph.replace(square, Node("square", (0, 0), VECTOR))
    assert graph.readers(1) == ()
    assert graph.readers(0) == (1, square)


@given(graphs(), st.data())
def test_positions_put_producers_before_readers_after_any_replacement(
    graph: Graph, data: st.DataObject
) -> None:
    moved = data.draw(st.integers(2, len(graph) - 1))
    later = add(graph, "later", data.draw(st.integers(0, 1)))
    graph.replace(moved, Node("moved", (later,), VECTOR))
    newest = add(graph, "newest", moved)
    places = [graph.position(n) for n in range(len(graph))]
    assert sorted(places) == list(range(len(graph)))
    assert places[newest] == newest
    for reader, node in enumerate(graph.nodes):
        assert all(places[value] < places[reader] for value in node.inputs)


def test_views_share_bytes_and_picks_share_residency() -> None:
    graph = chain(1)
    pick = add(graph, "second output", 1, kind="pick")
    view = add(graph, "reshape", pick, kind="view")
    assert graph.storage(view) == pick
    assert graph.carrier(view) == 1


def test_a_copy_of_a_graph_changes_on_its_own_and_restores_it() -> None:
    graph = chain(2)
    graph.placements[1] = Device("cuda")
    saved = graph.copy()
    graph.replace(2, Node("f2", (0,), VECTOR))
    graph.outputs.append(add(graph, "more", 0))
    graph.placements.clear()
    assert saved.nodes == chain(2).nodes
    graph.restore(saved)
    assert graph.nodes == chain(2).nodes
    assert graph.outputs == [2]
    assert graph.placements == {1: Device("cuda")}
    assert graph.readers(1) == (2,)
    assert graph.topology_generation == 0
