"""Insert copies where residency changes: one for each value and destination device."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fuel_gpu.device import Device
from fuel_gpu.errors import PlanError
from fuel_gpu.graph.arena import Graph, Node, NodeId


def insert_copies(
    graph: Graph,
    order: Sequence[NodeId],
    residency: Mapping[NodeId, Device],
    exit_device: Device | None = None,
) -> tuple[NodeId, ...]:
    """Let every kernel read values that lie on its own device.

    A value is copied once to each device that reads it, however many readers it has there and
    through however many views; the views are repeated on that device. Weights and constants are
    resident where they are used and never copied; a pick lies with the node it reads. Decisions
    still open are followed at arm 0: collapse the others first.

    Parameters
    ----------
    order
        The order of running, producers first; the copies go into it.
    residency
        The device of each kernel and graph input in `order`. A copy that the graph already has
        lies where `graph.placements` says.
    exit_device
        Where the outputs are wanted; None leaves them where they are.

    Returns
    -------
    tuple of int
        `order` with each copy right before its first reader, or at the end for an output.
        `graph.placements` gains the copies' devices. A reader that changed starts a new topology
        generation.

    Raises
    ------
    PlanError
        If a device is missing from `residency` or `placements`; the graph is unchanged.
    """
    where = {node_id: _where(graph, node_id, residency) for node_id in order}
    copies = _Copies(graph, where)
    for node_id in order:
        node = graph.node(node_id)
        device = where[node_id]
        if device is not None and node.kind == "kernel":
            inputs = tuple(copies.on(device, value) for value in node.inputs)
            if inputs != node.inputs:
                graph.replace(node_id, replace(node, inputs=inputs))
        copies.order.append(node_id)
    if exit_device is not None:
        graph.outputs[:] = [copies.on(exit_device, value) for value in graph.outputs]
    return tuple(copies.order)


class _Copies:
    """The copies and repeated views made so far, and the order that they go into."""

    def __init__(self, graph: Graph, where: Mapping[NodeId, Device | None]) -> None:
        self.order: list[NodeId] = []
        self._graph = graph
        self._where = where
        self._made: dict[tuple[NodeId, Device], NodeId] = {}

    def on(self, device: Device, value: NodeId) -> NodeId:
        """Give the value on that device: itself if it lies there, or what stands for it."""
        if self._where[value] in (None, device):
            return value
        views = []
        while self._graph.node(value).kind == "view":
            views.append(value)
            value = self._graph.node(value).inputs[0]
        here = self._copy(device, value)
        for view in reversed(views):
            here = self._view(device, view, here)
        return here

    def _copy(self, device: Device, value: NodeId) -> NodeId:
        made = self._made.get((value, device))
        if made is None:
            node = self._graph.node(value)
            made = self._add(device, value, Node("copy", (value,), node.type, kind="copy"))
            self._graph.placements[made] = device
        return made

    def _view(self, device: Device, view: NodeId, source: NodeId) -> NodeId:
        made = self._made.get((view, device))
        if made is None:
            node = self._graph.node(view)
            inputs = (source, *node.inputs[1:])
            made = self._add(device, view, replace(node, inputs=inputs))
        return made

    def _add(self, device: Device, value: NodeId, node: Node) -> NodeId:
        name = self._graph.node(value).name
        made = self._graph.push(replace(node, name=f"{name}@{device}" if name else ""))
        self._made[value, device] = made
        self.order.append(made)
        return made


def _where(graph: Graph, node_id: NodeId, residency: Mapping[NodeId, Device]) -> Device | None:
    """Give the device of a value; None for what is resident everywhere it is used."""
    carrier = graph.carrier(node_id)
    node = graph.node(carrier)
    if node.kind in ("weight", "constant"):
        return None
    device = (graph.placements if node.kind == "copy" else residency).get(carrier)
    if device is None:
        raise PlanError(f"node {carrier} ({node.name or node.op}) has no device to lie on")
    return device
