"""Small graphs and priced problems that several tests share."""

from fuel_gpu.device import Device
from fuel_gpu.graph.arena import Graph, Node, TensorType
from fuel_gpu.planner.problem import Problem, build_problem

CPU = Device("cpu", 0)
GPU = Device("cuda", 0)


def byte_type(size: int) -> TensorType:
    """A tensor of `size` bytes."""
    return TensorType("uint8", (size,))


def line_transfer(src: Device, dst: Device, size: int) -> int:
    """100 ns and a nanosecond a byte."""
    return 0 if src == dst else 100 + size


def diamond() -> Graph:
    """Input x (1000 B) -> a (400 B) -> b (300 B, weight of 5000 B), c (200 B) -> output d (50 B).

    b reads a through a view.
    """
    graph = Graph()
    x = graph.push(Node("Input", (), byte_type(1000), "input", "x"))
    w = graph.push(Node("Weight", (), byte_type(5000), "weight", "w"))
    a = graph.push(Node("Relu", (x,), byte_type(400), name="a"))
    v = graph.push(Node("Reshape", (a,), byte_type(400), "view", "v"))
    b = graph.push(Node("MatMul", (v, w), byte_type(300), name="b"))
    c = graph.push(Node("Relu", (a,), byte_type(200), name="c"))
    d = graph.push(Node("Add", (b, c), byte_type(50), name="d"))
    graph.outputs = [d]
    return graph


def diamond_problem(
    times: dict[str, tuple[int | None, int | None]], *, exit: Device = CPU
) -> Problem:
    """The diamond over the CPU and a GPU, with each node's time on both."""
    graph = diamond()
    nodes = [k for k, node in enumerate(graph.nodes) if node.kind == "kernel"]
    return build_problem(
        graph,
        nodes,
        (CPU, GPU),
        {k: times[graph.node(k).name] for k in nodes},
        entry=CPU,
        exit=exit,
    )


TIMES: dict[str, tuple[int | None, int | None]] = {
    "a": (1000, 10),
    "b": (9000, 90),
    "c": (700, 7),
    "d": (300, 3),
}
