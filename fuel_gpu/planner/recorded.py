"""The decisions that a finished plan records: branches with each arm's price."""

from dataclasses import dataclass

from fuel_gpu.graph.arena import NodeId
from fuel_gpu.graph.branches import ArmPrice
from fuel_gpu.planner.pass_registry import PassRegistry
from fuel_gpu.planner.passes import OptimizationContext
from fuel_gpu.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """A node whose placement is a genuine choice, and the price of each arm.

    Parameters
    ----------
    node
        The node that arm 0 ends with: the plan's own placement.
    diverge, reconverge
        Where the routes part and meet.
    arms
        What each arm costs, arm 0 first: its kernel's time and its copies with every other node
        where the plan has it.
    """

    node: NodeId
    diverge: NodeId
    reconverge: NodeId
    arms: tuple[ArmPrice, ...]


def recorded_decisions(plan: Plan) -> tuple[RecordedDecision, ...]:
    """Run the shipped passes over a copy of the plan's graph and list the branches they record."""
    graph = plan.graph.copy()
    order = plan.execution.order
    context = OptimizationContext(order, plan.execution, frozenset(), plan.bindings, plan.options)
    PassRegistry.default_passes().run_lockstep(graph, context)
    return tuple(
        RecordedDecision(
            node=branch.arms[0],
            diverge=branch.diverge,
            reconverge=branch.reconverge,
            arms=tuple(price for price in branch.prices if price is not None),
        )
        for branch_id, branch in graph.branches.items()
        if branch_id not in plan.graph.branches
    )
