"""An execution plan: for every decision point the retained candidates and the committed device."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.device import Device
from fuel_gpu.errors import PlanError
from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.planner.alternative_set import AlternativeSet
from fuel_gpu.planner.decision_points import DecisionPoints


@dataclass(frozen=True, slots=True, eq=False)
class RetainedPoint:
    """The candidates that one decision point retained, the committed device's first.

    Parameters
    ----------
    points
        The arrays that the rows point into.
    rows
        Retained candidates in rank order, those on the committed device before all others.
    committed
        How many of them lie on the committed device.
    inbound_ns
        For each device code, what the inputs of known residency cost to bring there.
    """

    points: DecisionPoints
    rows: NDArray[np.intp]
    committed: int
    inbound_ns: NDArray[np.uint64]

    def committed_to(self, device: Device) -> "RetainedPoint":
        """Give the point with the candidates on `device` first, each part in its rank order.

        Raises
        ------
        PlanError
            If no candidate on that device was retained.
        """
        code = self.points.devices.index(device)
        here = self.points.device_codes[self.rows] == code
        if not here.any():
            node_id = self.points.nodes[int(self.points.point[self.rows[0]])]
            raise PlanError(f"node {node_id} retained no candidate on {device}")
        rows = np.concatenate([self.rows[here], self.rows[~here]])
        return replace(self, rows=rows, committed=int(here.sum()))

    def alternatives(self, count: int) -> AlternativeSet:
        """Build a set of the first `count` candidates."""
        points = self.points
        rows = self.rows[:count].tolist()
        built = AlternativeSet.from_candidates(
            points.candidate(row, int(self.inbound_ns[points.device_codes[row]])) for row in rows
        )
        built.set_context(points.contexts[points.point[rows[0]]])
        return built


@dataclass(frozen=True, slots=True, eq=False)
class ExecutionPlan:
    """What `compile_plan` decided for a graph at one topology generation.

    Parameters
    ----------
    order
        The topological order that was walked.
    placements
        The committed device of every kernel node.
    residency
        Where every value of the order lies, as far as it is known.
    topology_generation
        The graph's generation when the plan was made.
    """

    order: tuple[NodeId, ...]
    placements: Mapping[NodeId, Device]
    residency: Mapping[NodeId, Device]
    topology_generation: int
    retained: Mapping[NodeId, RetainedPoint] = field(repr=False)

    def covers(self, node_id: NodeId) -> bool:
        """Whether the plan decided this node."""
        return node_id in self.placements

    def alternatives(self, node_id: NodeId) -> AlternativeSet | None:
        """Give the node's candidates on its committed device, winner first.

        None for views, constants, copies, and nodes that the plan does not cover.
        """
        point = self.retained.get(node_id)
        return None if point is None else point.alternatives(point.committed)

    def decision_set(self, node_id: NodeId) -> AlternativeSet | None:
        """Give all that the node retained on any device, the committed device's first.

        The runner-up of a recorded decision comes from here; `alternatives` is this set pruned.
        """
        point = self.retained.get(node_id)
        return None if point is None else point.alternatives(len(point.rows))

    def committed_to(self, graph: Graph, placements: Mapping[NodeId, Device]) -> "ExecutionPlan":
        """Give the plan with these devices committed instead, its retained candidates re-ordered.

        Raises
        ------
        PlanError
            If a node retained no candidate on the device it is given.
        """
        retained = {
            node_id: self.retained[node_id].committed_to(device)
            for node_id, device in placements.items()
        }
        residency = dict(self.residency)
        for node_id in self.order:
            carrier = graph.carrier(node_id)
            if carrier in placements:
                residency[node_id] = placements[carrier]
        return replace(self, placements=dict(placements), residency=residency, retained=retained)

    def check(self, graph: Graph) -> None:
        """Refuse a graph that has changed since the plan was made.

        Raises
        ------
        PlanError
            If the graph's topology generation is not the plan's.
        """
        if graph.topology_generation != self.topology_generation:
            raise PlanError(
                f"the plan was made for topology generation {self.topology_generation} and the "
                f"graph is at {graph.topology_generation}: compile it again"
            )
