"""The problem collects values: who makes each, who reads it, and which are views of one another."""

from small_graphs import CPU, TIMES, byte_type, diamond_problem

from fuel_gpu.graph.arena import Graph, Node
from fuel_gpu.planner.problem import build_problem


def test_a_view_is_the_value_it_shows() -> None:
    problem = diamond_problem(TIMES)
    by_node = {value.node: value for value in problem.values}
    assert set(by_node) == {0, 1, 2, 4, 5, 6}  # x, w, a, b, c, d: no value for the view
    a = by_node[2]
    assert (a.bytes, a.producer, a.readers) == (400, 0, (1, 2))  # read by b (through v) and by c


def test_weights_inputs_and_outputs_are_told_apart() -> None:
    problem = diamond_problem(TIMES)
    by_node = {value.node: value for value in problem.values}
    assert (by_node[1].is_weight, by_node[1].producer, by_node[1].readers) == (True, None, (1,))
    assert (by_node[0].is_weight, by_node[0].producer, by_node[0].readers) == (False, None, (0,))
    assert [v.node for v in problem.values if v.is_output] == [6]


def test_a_value_read_twice_by_one_node_is_one_read() -> None:
    graph = Graph()
    x = graph.push(Node("Input", (), byte_type(8), "input", "x"))
    twice = graph.push(Node("Add", (x, x), byte_type(8), name="twice"))
    graph.outputs = [twice]
    problem = build_problem(graph, [twice], (CPU,), {twice: [5]}, entry=CPU, exit=CPU)
    assert problem.reads == ((0,),)
    assert problem.values[0].readers == (0,)


def test_a_further_output_is_a_value_of_its_own_from_the_same_step() -> None:
    graph = Graph()
    x = graph.push(Node("Input", (), byte_type(8), "input", "x"))
    split = graph.push(Node("Split", (x,), byte_type(6), name="split"))
    rest = graph.push(Node("Pick", (split,), byte_type(2), "pick", "rest", {"index": 1}))
    reader = graph.push(Node("Relu", (rest,), byte_type(2), name="reader"))
    graph.outputs = [split, reader]
    problem = build_problem(
        graph, [split, reader], (CPU,), {split: [5], reader: [5]}, entry=CPU, exit=CPU
    )
    picked = next(v for v in problem.values if v.node == rest)
    assert (picked.producer, picked.bytes, picked.readers) == (0, 2, (1,))
    assert len(problem.writes[0]) == 2
