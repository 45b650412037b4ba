"""The lock-step drive: its order, its counts, and what a failing pass leaves behind."""

from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Any

import pytest
from given_plans import chain, context

from fuel_gpu.errors import PlanError, UsageError
from fuel_gpu.graph.arena import Graph
from fuel_gpu.planner.frontier_convergence import FrontierConvergenceOptimizer
from fuel_gpu.planner.pass_registry import PassRegistry
from fuel_gpu.planner.passes import OptimizationContext
from fuel_gpu.planner.placement_fork import PlacementForkPathfinder


@dataclass
class Recorder:
    """Both a pathfinder and an optimizer; it writes its name down, and may add a node."""

    name: str
    log: list[str] = field(default_factory=list)
    adds: bool = False
    fails: Exception | None = None

    def propose(self, graph: Graph, context: OptimizationContext) -> None:
        self.log.append(self.name)
        if self.adds:
            graph.push(replace(graph.node(1), name=self.name))
        if self.fails is not None:
            # A cycle: as bad as a pass can leave a graph.
            graph.replace(1, replace(graph.node(1), inputs=(2,)))
            graph.outputs.clear()
            raise self.fails

    prune = propose


def drive(registry: PassRegistry, graph: Graph) -> None:
    registry.run_lockstep(graph, context(graph, {}))


def test_every_optimizer_runs_after_every_pathfinder() -> None:
    log: list[str] = []
    registry = PassRegistry()
    for name in ("pf1", "pf2"):
        registry = registry.with_pathfinder(Recorder(name, log))
    for name in ("opt1", "opt2"):
        registry = registry.with_optimizer(Recorder(name, log))
    drive(registry, chain(2))
    assert log == ["pf1", "opt1", "opt2", "pf2", "opt1", "opt2"]


def test_without_a_pathfinder_no_optimizer_runs() -> None:
    log: list[str] = []
    drive(PassRegistry().with_optimizer(Recorder("opt", log)), chain(2))
    assert log == []


def test_the_builder_methods_leave_the_registry_they_are_called_on() -> None:
    empty = PassRegistry()
    full = empty.with_pathfinder(Recorder("pf")).with_optimizer(Recorder("opt"))
    assert (empty.pathfinder_count, empty.optimizer_count) == (0, 0)
    assert (full.pathfinder_count, full.optimizer_count) == (1, 1)


def test_the_default_passes_are_a_fork_and_a_convergence() -> None:
    shipped = PassRegistry.default_passes()
    assert (shipped.pathfinder_count, shipped.optimizer_count) == (1, 1)
    assert [each.name for each in shipped.pathfinders] == ["PlacementForkSeed"]
    assert [each.name for each in shipped.optimizers] == ["FrontierConvergence"]


@pytest.mark.parametrize("failing", ["pathfinder", "optimizer"])
@pytest.mark.parametrize("error", [PlanError("no route"), ValueError("a slip in the pass")])
def test_the_first_failing_pass_ends_the_drive_and_is_named(failing: str, error: Exception) -> None:
    log: list[str] = []
    culprit = Recorder("culprit", log, fails=error)
    registry = PassRegistry().with_pathfinder(Recorder("before", log, adds=True))
    if failing == "pathfinder":
        registry = registry.with_pathfinder(culprit).with_optimizer(Recorder("opt", log))
    else:
        registry = registry.with_optimizer(culprit).with_optimizer(Recorder("opt", log))
    graph = chain(2)
    with pytest.raises(type(error)) as raised:
        drive(registry.with_pathfinder(Recorder("after", log)), graph)
    assert raised.value is error
    assert error.__notes__[-1].startswith("raised by the pass culprit")
    assert log == (
        ["before", "opt", "culprit"] if failing == "pathfinder" else ["before", "culprit"]
    )
    # What the culprit did is undone, what the pass before it did stays, and the graph plans.
    assert [node.name for node in graph.nodes] == ["x", "f1", "f2", "before"]
    assert graph.topological_order() == (0, 1, 2)
    assert graph.topology_generation == 0


def test_the_context_is_read_only() -> None:
    given = context(chain(2), {})
    assert given.order == (0, 1, 2)
    assert given.cycle_guard == frozenset()
    with pytest.raises(FrozenInstanceError):
        given.order = ()  # type: ignore[misc]  # that it is refused is the point


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "None is no {0}: it needs a name and a method {1}"),
        (object(), "<object object at .* is no {0}"),
        ("PlacementForkSeed", "'PlacementForkSeed' is no {0}"),
        (PlacementForkPathfinder, "PlacementForkPathfinder is a class: give an instance"),
        (FrontierConvergenceOptimizer, "FrontierConvergenceOptimizer is a class"),
    ],
)
def test_what_is_no_pass_is_refused(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match="pathfinder: " + message.format("pathfinder", "propose")):
        PassRegistry().with_pathfinder(given)
    with pytest.raises(UsageError, match="optimizer: " + message.format("optimizer", "prune")):
        PassRegistry().with_optimizer(given)


def test_a_pathfinder_is_no_optimizer() -> None:
    forks: Any = PlacementForkPathfinder()
    with pytest.raises(UsageError, match=r"optimizer: .* is no optimizer"):
        PassRegistry(optimizers=(forks,))
