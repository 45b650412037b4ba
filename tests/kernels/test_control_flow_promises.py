"""Control flow promises the same bits again exactly where every kernel of its bodies does."""

from fuel_gpu.graph.arena import Graph, Node, TensorType
from fuel_gpu.kernels.binding import default_bindings

FLOATS = TensorType("float32", (4, 4))


def loop_over(*ops: str) -> tuple[Graph, int]:
    body = Graph()
    value = body.push(Node("Input", (), FLOATS, "input", "x"))
    for op in ops:
        inputs = (value, value) if op == "MatMul" else (value,)
        value = body.push(Node(op, inputs, FLOATS, name=op))
    body.outputs = [value]
    graph = Graph()
    x = graph.push(Node("Input", (), FLOATS, "input", "x"))
    loop = graph.push(Node("Loop", (x,), FLOATS, "kernel", "loop", {"trip_count": 3}, (body,)))
    graph.outputs = [loop]
    return graph, loop


def is_stable(*ops: str) -> bool:
    graph, loop = loop_over(*ops)
    bindings = default_bindings()
    (kernel,) = bindings.kernels(graph.node(loop), (FLOATS,), "cpu")
    return bindings.precision(kernel, graph, loop).bit_stable_on_same_hardware


def test_stable_bodies_make_a_stable_loop() -> None:
    assert is_stable("MatMul", "Relu")
    assert is_stable()


def test_one_unstable_kernel_is_enough() -> None:
    assert not is_stable("Relu", "RandomNormalLike")
