"""The optimizer that merges arms which are the same route."""

from typing import Any

from fuel_gpu.device import Device
from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.graph.branches import arm_nodes
from fuel_gpu.graph.collapse import drop_arm
from fuel_gpu.graph.lowering import upstream_first
from fuel_gpu.planner.passes import OptimizationContext

Placement = tuple[str | None, Device | None]


class FrontierConvergenceOptimizer:
    """Merge forward-identical arms: same operations on the same inputs in the same places.

    Of arms that are the same route the earliest stays, so arm 0 always does and the last route of
    a decision is never discarded. Branches with the same first arm and the same end are one
    decision, so an arm of the later one that repeats an arm of the earlier is merged too. A branch
    of which a node lies under the cycle guard is left alone.
    """

    name = "FrontierConvergence"

    def prune(self, graph: Graph, context: OptimizationContext) -> None:
        """Drop every arm that repeats an earlier one."""
        routes: dict[tuple[NodeId, NodeId], list[list[Any]]] = {}
        for branch_id, branch in upstream_first(graph):
            arms = [arm_nodes(graph, branch.diverge, exit_id) for exit_id in branch.arms]
            if not context.cycle_guard.isdisjoint({branch_id}.union(*arms)):
                continue
            known = routes.setdefault((branch.arms[0], branch.reconverge), [])
            repeated: list[int] = []
            for arm, route in enumerate(_routes(graph, context, arms)):
                if route not in known:
                    known.append(route)
                elif arm > 0:
                    repeated.append(arm)
            for arm in reversed(repeated):
                if branch_id in graph.branches:
                    drop_arm(graph, branch_id, arm)


def _routes(
    graph: Graph, context: OptimizationContext, arms: list[frozenset[NodeId]]
) -> list[list[Any]]:
    """Describe each arm by its nodes in order; equal descriptions are the same route."""
    planned: list[Placement] = []
    described: list[list[Any]] = []
    for nodes in arms:
        order = sorted(nodes, key=graph.position)
        step_of = {node_id: step for step, node_id in enumerate(order)}
        route: list[Any] = []
        for step, node_id in enumerate(order):
            node = graph.node(node_id)
            placement = _placement(graph, context, node_id)
            if placement is None:
                # Nothing says where: the planner would choose as it did for the same work in arm 0.
                placement = planned[step] if step < len(planned) else (None, None)
            if nodes is arms[0]:
                planned.append(placement)
            reads = [("step", step_of[i]) if i in step_of else ("node", i) for i in node.inputs]
            work = (node.op, node.kind, node.type, dict(node.attributes), node.bodies)
            route.append((work, reads, node.writes_input, placement))
        described.append(route)
    return described


def _placement(graph: Graph, context: OptimizationContext, node_id: NodeId) -> Placement | None:
    """Give a node's backend and device: as stamped, else as the plan has it."""
    backend = graph.target_backends.get(node_id)
    device = graph.placements.get(node_id)
    if device is not None:
        return backend or device.backend, device
    if backend is not None:
        return backend, Device(backend, 0)
    choices = context.plan.decision_set(node_id)
    if choices is None or choices.winner is None:
        return None
    return choices.winner.backend, choices.winner.device
