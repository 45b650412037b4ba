"""Small graphs for the tests of decisions, and a plain way to say what a route computes."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from fuel_gpu.errors import InvalidBranchError
from fuel_gpu.graph.arena import Graph, Kind, Node, NodeId, TensorType
from fuel_gpu.graph.branches import arm_nodes

VECTOR = TensorType("float32", (4,))


def add(graph: Graph, op: str, *inputs: NodeId, kind: Kind = "kernel") -> NodeId:
    """Append a node that gives a vector."""
    attributes = {"index": 1} if kind == "pick" else {}
    return graph.push(Node(op, inputs, VECTOR, kind=kind, name=op, attributes=attributes))


def chain(length: int) -> Graph:
    """Build input 0 and kernels 1 to `length`, each reading the one before; the last is given."""
    graph = Graph()
    last = add(graph, "x", kind="input")
    for step in range(1, length + 1):
        last = add(graph, f"f{step}", last)
    graph.outputs = [last]
    return graph


def fork(graph: Graph, node_id: NodeId, backend: str = "cuda") -> NodeId:
    """Record a stamped clone of a node with one reader as its alternative; give the branch."""
    clone = graph.push(graph.node(node_id))
    graph.target_backends[clone] = backend
    (reader,) = (r for r in graph.readers(node_id) if r in graph.topological_order())
    builder = graph.open_branch(graph.node(node_id).inputs[0]).add_arm(node_id).add_arm(clone)
    branch = builder.finalize_branches(graph, reader)
    assert branch is not None
    return branch


def computed(
    graph: Graph, order: Sequence[NodeId], inputs: Callable[[NodeId], Sequence[NodeId]]
) -> dict[NodeId, object]:
    """Say what each node of a route computes, as an expression; fail if it runs too early.

    Equal expressions get the same object, so that comparing them takes no time.
    """
    interned: dict[object, object] = {}
    values: dict[NodeId, object] = {}
    for node_id in order:
        node = graph.node(node_id)
        reads = [values[value] for value in inputs(node_id)]
        if node.kind == "copy":
            values[node_id] = reads[0]
        else:
            key = (node.op, *(id(value) for value in reads))
            values[node_id] = interned.setdefault(key, (node.op, *reads))
    return values


@st.composite
def graphs(draw: st.DrawFn, most: int = 14) -> Graph:
    """Draw a graph of kernels, and some views, over two inputs; every last node is an output."""
    graph = Graph()
    add(graph, "x", kind="input")
    add(graph, "y", kind="input")
    for step in range(draw(st.integers(1, most))):
        earlier = st.integers(0, len(graph) - 1)
        inputs = draw(st.lists(earlier, min_size=1, max_size=3))
        if draw(st.integers(0, 5)) == 0:
            add(graph, f"v{step}", inputs[0], kind="view")
        else:
            add(graph, f"f{step}", *inputs)
    graph.outputs = [n for n in range(len(graph)) if not graph.readers(n)]
    return graph


def try_branch(graph: Graph, diverge: NodeId, exit_id: NodeId, reconverge: NodeId) -> bool:
    """Clone the region from `diverge` to `exit_id` as a second arm; say whether it is allowed."""
    clones: dict[NodeId, NodeId] = {}
    for node_id in sorted(arm_nodes(graph, diverge, exit_id), key=graph.position):
        node = graph.node(node_id)
        inputs = tuple(clones.get(value, value) for value in node.inputs)
        clones[node_id] = graph.push(replace(node, inputs=inputs))
    builder = graph.open_branch(diverge).add_arm(exit_id).add_arm(clones.get(exit_id, exit_id))
    nodes, outputs, branches = graph.nodes, list(graph.outputs), dict(graph.branches)
    try:
        builder.finalize_branches(graph, reconverge)
    except InvalidBranchError:
        assert (graph.nodes, graph.outputs, graph.branches) == (nodes, outputs, branches)
        return False
    return True


@st.composite
def decided_graphs(draw: st.DrawFn) -> Graph:
    """Draw a graph with decisions recorded in it, side by side, in a row and inside one another.

    A further arm is a clone of arm 0, so whatever is picked the outputs' expressions are the same.
    """
    graph = draw(graphs())
    for _ in range(draw(st.integers(1, 6))):
        reconverge = draw(st.integers(2, len(graph) - 1))
        inputs = graph.node(reconverge).inputs
        if graph.node(reconverge).kind == "branch":
            continue
        exit_id = draw(st.sampled_from(inputs)) if inputs else 0
        try_branch(graph, draw(st.integers(0, exit_id)), exit_id, reconverge)
    return graph
