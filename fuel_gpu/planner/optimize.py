"""`optimize_graph`: plan a graph, then let the passes record and prune its decisions."""

from fuel_gpu.graph.arena import Graph
from fuel_gpu.kernels.binding import BindingTable
from fuel_gpu.planner.compile import compile_plan
from fuel_gpu.planner.execution_plan import ExecutionPlan
from fuel_gpu.planner.options import PlanOptions
from fuel_gpu.planner.pass_registry import PassRegistry
from fuel_gpu.planner.passes import OptimizationContext


def optimize_graph(
    graph: Graph,
    bindings: BindingTable,
    options: PlanOptions,
    passes: PassRegistry | None = None,
) -> ExecutionPlan:
    """Order the graph, compile its plan, and run the passes over both in lock step.

    The passes work on the graph: its recorded decisions are in ``graph.branches`` afterwards.
    The whole graph is optimized before it runs, so nothing is under the cycle guard.

    Parameters
    ----------
    passes
        None for `PassRegistry.default_passes`.

    Returns
    -------
    ExecutionPlan
        The plan of the graph as the passes left it: compiled once, and again if a pass changed
        what the outputs are computed from.

    Raises
    ------
    PlanError
        As for `compile_plan`, or from a pass; the graph still plans then.
    """
    registry = PassRegistry.default_passes() if passes is None else passes
    order = graph.topological_order()
    plan = compile_plan(graph, order, bindings, options)
    context = OptimizationContext(order, plan, frozenset(), bindings, options)
    registry.run_lockstep(graph, context)
    if graph.topology_generation == plan.topology_generation:
        return plan
    return compile_plan(graph, graph.topological_order(), bindings, options)
