"""The finished placement's problem: steps, devices, and the values that pass between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fuel_gpu.device import Device
from fuel_gpu.graph.arena import Graph, NodeId


@dataclass(frozen=True, slots=True)
class Value:
    """Bytes that live somewhere: a graph input, a weight, or what a step writes.

    Parameters
    ----------
    node
        The graph node that holds the bytes; views of it are the same value.
    bytes
        Its size.
    producer
        The step that writes it, or None where it comes from outside.
    readers
        The steps that read it, ascending, each once.
    is_output
        Whether the caller asked for it.
    is_weight
        Whether it is known before the run: resident wherever it is used.
    """

    node: NodeId
    bytes: int
    producer: int | None
    readers: tuple[int, ...]
    is_output: bool
    is_weight: bool


@dataclass(frozen=True, slots=True)
class Problem:
    """What a placement is priced against. A placement gives a device's position for each step.

    Parameters
    ----------
    nodes
        The kernel nodes in the order of execution; a step is a position here.
    devices
        The devices; a placement names them by position.
    time_ns
        ``time_ns[step][device]``: the step's own time there, or None where no kernel can run it.
    values
        All values, in the order of their nodes' ids.
    reads, writes
        For each step, the positions in `values` that it reads and writes.
    entry, exit
        Where the graph's inputs lie before the run, and where its outputs are wanted after.
    """

    nodes: tuple[NodeId, ...]
    devices: tuple[Device, ...]
    time_ns: tuple[tuple[int | None, ...], ...]
    values: tuple[Value, ...]
    reads: tuple[tuple[int, ...], ...]
    writes: tuple[tuple[int, ...], ...]
    entry: Device
    exit: Device


def build_problem(
    graph: Graph,
    nodes: Sequence[NodeId],
    devices: Sequence[Device],
    time_ns: Mapping[NodeId, Sequence[int | None]],
    *,
    entry: Device,
    exit: Device,
) -> Problem:
    """Collect the values that pass between `nodes`.

    Parameters
    ----------
    nodes
        Kernel nodes in the order of execution.
    time_ns
        For each of them, its time on each of `devices`.
    """
    step_of = {node_id: step for step, node_id in enumerate(nodes)}
    outputs = {root(graph, value) for value in graph.outputs}
    readers: dict[NodeId, list[int]] = {value: [] for value in outputs}
    for step, node_id in enumerate(nodes):
        readers.setdefault(node_id, [])
        for value in dict.fromkeys(root(graph, i) for i in graph.node(node_id).inputs):
            readers.setdefault(value, []).append(step)

    values: list[Value] = []
    reads: list[list[int]] = [[] for _ in nodes]
    writes: list[list[int]] = [[] for _ in nodes]
    for node_id in sorted(readers):
        carrier = graph.carrier(node_id)
        producer = step_of.get(carrier)
        for step in readers[node_id]:
            reads[step].append(len(values))
        if producer is not None:
            writes[producer].append(len(values))
        values.append(
            Value(
                node=node_id,
                bytes=graph.node(node_id).type.bytes,
                producer=producer,
                readers=tuple(readers[node_id]),
                is_output=node_id in outputs,
                is_weight=graph.node(carrier).kind in ("weight", "constant"),
            )
        )
    return Problem(
        nodes=tuple(nodes),
        devices=tuple(devices),
        time_ns=tuple(tuple(time_ns[n]) for n in nodes),
        values=tuple(values),
        reads=tuple(map(tuple, reads)),
        writes=tuple(map(tuple, writes)),
        entry=entry,
        exit=exit,
    )


def root(graph: Graph, node_id: NodeId) -> NodeId:
    """Follow views, recorded copies and branches (arm 0) to the node that holds the bytes.

    A plan prices its own copies, so one that the graph records moves nothing by itself.
    """
    while graph.node(node_id).kind in ("view", "copy", "branch"):
        node_id = graph.node(node_id).inputs[0]
    return node_id
