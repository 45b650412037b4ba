"""What a pass is: pathfinders add routes to a graph, optimizers merge and discard them."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Protocol

from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.kernels.binding import BindingTable
from fuel_gpu.planner.execution_plan import ExecutionPlan
from fuel_gpu.planner.options import PlanOptions


@dataclass(frozen=True, slots=True)
class OptimizationContext:
    """What every pass of one drive reads; no pass changes it.

    Parameters
    ----------
    order
        The order that the plan was compiled over, producers first.
    plan
        The ranked and retained candidates of every decision point.
    cycle_guard
        Nodes on an active cycle or in a region that is running: no optimizer changes them. Empty
        where a whole graph is optimized before it runs.
    bindings
        The kernels that the plan was compiled with.
    options
        What the plan was compiled with: passes price transfers by its estimator and exit device.
        None leaves transfers as the plan's candidates have them.
    """

    order: Sequence[NodeId]
    plan: ExecutionPlan
    cycle_guard: Set[NodeId]
    bindings: BindingTable
    options: PlanOptions | None = None


class Pathfinder(Protocol):
    """Adds routes: it appends nodes and records branches, and removes nothing."""

    @property
    def name(self) -> str:
        """What people know the pass by."""
        ...

    def propose(self, graph: Graph, context: OptimizationContext) -> None:
        """Add routes to the graph.

        Raises
        ------
        PlanError
            If it cannot; the drive ends and what it did is undone.
        """
        ...


class Optimizer(Protocol):
    """Merges and discards routes.

    It never discards the last route of a decision and never changes a node under the context's
    cycle guard.
    """

    @property
    def name(self) -> str:
        """What people know the pass by."""
        ...

    def prune(self, graph: Graph, context: OptimizationContext) -> None:
        """Merge and discard routes of the graph.

        Raises
        ------
        PlanError
            If it cannot; the drive ends and what it did is undone.
        """
        ...
