"""Where a value lies, as far as a walk knows: the one rule that all walks over a graph share."""

from collections.abc import Callable, Mapping

from fuel_gpu.device import Device
from fuel_gpu.errors import PlanError
from fuel_gpu.graph.arena import Graph, NodeId


def known_residency(
    graph: Graph,
    value: NodeId,
    given: Mapping[NodeId, Device],
    decided: Callable[[NodeId], Device | None],
    planned: Callable[[NodeId], bool],
) -> Device | None:
    """Say where a value lies.

    A copy's target, else an explicit placement, else where a given input lies, else what was
    decided, else the backend's device; a view inherits.

    Parameters
    ----------
    given
        Where given inputs lie.
    decided
        The device of a node that is decided; None for any other.
    planned
        Whether the walk decides a node itself: until it has, the node's backend says nothing.

    Returns
    -------
    Device or None
        None where nothing is known yet.
    """
    while True:
        node = graph.node(value)
        if node.kind == "copy":
            return copy_target(graph, value)
        if value in graph.placements:
            return graph.placements[value]
        if value in given:
            return given[value]
        device = decided(value)
        if device is not None or planned(value):
            return device
        if node.kind in ("view", "pick", "branch") and node.inputs:
            value = node.inputs[0]
            continue
        backend = graph.target_backends.get(value)
        return None if backend is None else Device(backend, 0)


def copy_target(graph: Graph, node_id: NodeId) -> Device:
    """Give the device that a copy node moves its input to.

    Raises
    ------
    PlanError
        If it has no placement.
    """
    target = graph.placements.get(node_id)
    if target is None:
        raise PlanError(
            f"copy node {graph.node(node_id).name or node_id} has no target: give it a placement"
        )
    return target
