"""Plans with given candidates, for the tests of passes and of route picking."""

from collections.abc import Mapping
from dataclasses import dataclass

from fuel_gpu.device import HOST, Device
from fuel_gpu.graph.arena import Graph, NodeId, TensorType
from fuel_gpu.graph.arena import Node as ArenaNode
from fuel_gpu.kernels.binding import BindingTable
from fuel_gpu.kernels.precision import UNAUDITED, CostEstimate
from fuel_gpu.planner.alternative_set import AlternativeSet
from fuel_gpu.planner.candidate import Candidate
from fuel_gpu.planner.execution_plan import ExecutionPlan
from fuel_gpu.planner.options import PlanOptions
from fuel_gpu.planner.passes import OptimizationContext

VECTOR = TensorType("float32", (4,))  # 16 bytes
CUDA, OTHER_CUDA, OPENCL = Device("cuda", 0), Device("cuda", 1), Device("opencl", 0)


def chain(length: int) -> Graph:
    """Build input 0 and kernels 1 to `length`, each reading the one before; the last is given."""
    graph = Graph()
    last = graph.push(ArenaNode("input", (), VECTOR, kind="input", name="x"))
    for step in range(1, length + 1):
        last = graph.push(ArenaNode("Relu", (last,), VECTOR, name=f"f{step}"))
    graph.outputs = [last]
    return graph


def candidate(device: Device, time_ns: int, backend: str = "") -> Candidate:
    """Make a candidate that takes that long and whose inputs are there."""
    return Candidate(device, backend or device.backend, CostEstimate(0, 0, time_ns), UNAUDITED)


@dataclass(frozen=True, slots=True, eq=False)
class GivenPlan(ExecutionPlan):
    """A plan whose decision sets are given, by node."""

    sets: Mapping[NodeId, tuple[Candidate, ...]]

    def decision_set(self, node_id: NodeId) -> AlternativeSet | None:
        """Give the node's candidates."""
        given = self.sets.get(node_id)
        return None if given is None else AlternativeSet.from_candidates(given)


def context(
    graph: Graph,
    sets: Mapping[NodeId, tuple[Candidate, ...]],
    *,
    guard: frozenset[NodeId] = frozenset(),
    options: PlanOptions | None = None,
) -> OptimizationContext:
    """Make the context of a plan in which each node lies where its first candidate is."""
    order = graph.topological_order()
    placements = {node_id: given[0].device for node_id, given in sets.items()}
    residency = {n: placements.get(n, HOST) for n in order}
    plan = GivenPlan(order, placements, residency, graph.topology_generation, {}, sets)
    return OptimizationContext(order, plan, guard, BindingTable(), options)
