"""Graphs of one operation, to ask what it costs and which kernels can run it."""

from collections.abc import Sequence
from typing import Any

from fuel_gpu.graph.arena import Graph, Node, NodeId, TensorType
from fuel_gpu.kernels.costs import OperationCost, operation_cost


def f32(*shape: int) -> TensorType:
    """Give a float32 tensor's type."""
    return TensorType("float32", shape)


def i64(*shape: int) -> TensorType:
    """Give an int64 tensor's type."""
    return TensorType("int64", shape)


def u8(*shape: int) -> TensorType:
    """Give a uint8 tensor's type."""
    return TensorType("uint8", shape)


def one_node(
    op: str, inputs: Sequence[TensorType | None], *outputs: TensorType, **attributes: Any
) -> tuple[Graph, NodeId]:
    """Build a graph of one operation; None stands for an absent optional input."""
    graph = Graph()
    present = [k for k, t in enumerate(inputs) if t is not None]
    ids = tuple(
        graph.push(Node("input", (), t, "input", f"i{k}"))
        for k, t in enumerate(inputs)
        if t is not None
    )
    if present != list(range(len(present))):
        attributes["input_positions"] = tuple(present)
    node_id = graph.push(Node(op, ids, outputs[0], name="node", attributes=attributes))
    graph.outputs = [node_id]
    for k, further in enumerate(outputs[1:], start=1):
        pick = Node("pick", (node_id,), further, "pick", f"o{k}", {"index": k})
        graph.outputs.append(graph.push(pick))
    return graph, node_id


def cost(
    op: str, inputs: Sequence[TensorType | None], *outputs: TensorType, **attributes: Any
) -> OperationCost:
    """Price one operation."""
    return operation_cost(*one_node(op, inputs, *outputs, **attributes))


def flops(
    op: str, inputs: Sequence[TensorType | None], *outputs: TensorType, **attributes: Any
) -> int:
    """Count one operation's FLOPs, for which there must be a formula."""
    priced = cost(op, inputs, *outputs, **attributes)
    assert not priced.estimated
    return priced.flops
