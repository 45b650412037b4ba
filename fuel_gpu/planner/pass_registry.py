"""The pass driver: every optimizer after every pathfinder, in lock step."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from fuel_gpu.errors import UsageError
from fuel_gpu.graph.arena import Graph
from fuel_gpu.planner.frontier_convergence import FrontierConvergenceOptimizer
from fuel_gpu.planner.passes import OptimizationContext, Optimizer, Pathfinder
from fuel_gpu.planner.placement_fork import PlacementForkPathfinder


@dataclass(frozen=True, slots=True)
class PassRegistry:
    """Passes in the order in which they run; the builder methods give a new registry.

    Raises
    ------
    UsageError
        If one is no pass; from the builder methods too.
    """

    pathfinders: tuple[Pathfinder, ...] = ()
    optimizers: tuple[Optimizer, ...] = ()

    def __post_init__(self) -> None:
        for pathfinder in self.pathfinders:
            _check_pass("pathfinder", pathfinder, "propose")
        for optimizer in self.optimizers:
            _check_pass("optimizer", optimizer, "prune")

    @classmethod
    def default_passes(cls) -> "PassRegistry":
        """Give the shipped passes: placement forks, then convergence."""
        return (
            cls()
            .with_pathfinder(PlacementForkPathfinder())
            .with_optimizer(FrontierConvergenceOptimizer())
        )

    def with_pathfinder(self, pathfinder: Pathfinder) -> "PassRegistry":
        """Give a registry that runs this pathfinder after the others."""
        return replace(self, pathfinders=(*self.pathfinders, pathfinder))

    def with_optimizer(self, optimizer: Optimizer) -> "PassRegistry":
        """Give a registry that runs this optimizer after the others."""
        return replace(self, optimizers=(*self.optimizers, optimizer))

    @property
    def pathfinder_count(self) -> int:
        """How many pathfinders there are."""
        return len(self.pathfinders)

    @property
    def optimizer_count(self) -> int:
        """How many optimizers there are."""
        return len(self.optimizers)

    def run_lockstep(self, graph: Graph, context: OptimizationContext) -> None:
        """Run each pathfinder and, right after it, every optimizer.

        So an optimizer sees what the pathfinders before it added, and the routes never pile up.

        Raises
        ------
        Exception
            Whatever the first failing pass raised, with a note that names the pass. The drive
            ends there: what that pass did is undone, so the graph plans as before it; what the
            passes before it did stays.
        """
        for pathfinder in self.pathfinders:
            with _undone_on_failure(graph, pathfinder.name):
                pathfinder.propose(graph, context)
            for optimizer in self.optimizers:
                with _undone_on_failure(graph, optimizer.name):
                    optimizer.prune(graph, context)


def _check_pass(argument: str, given: object, method: str) -> None:
    if isinstance(given, type):
        raise UsageError(f"{argument}: {given.__name__} is a class: give an instance")
    named = isinstance(getattr(given, "name", None), str)
    if not named or not callable(getattr(given, method, None)):
        raise UsageError(
            f"{argument}: {given!r:.60} is no {argument}: it needs a name and a method {method}"
        )


@contextmanager
def _undone_on_failure(graph: Graph, name: str) -> Iterator[None]:
    before = graph.copy()
    try:
        yield
    except BaseException as error:
        graph.restore(before)
        error.add_note(f"raised by the pass {name}; what it did to the graph is undone")
        raise
