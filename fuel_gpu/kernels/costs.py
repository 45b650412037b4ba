"""What an operation costs: FLOPs and bytes moved, by its operator's formula."""

from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from fuel_gpu.errors import PlanError
from fuel_gpu.graph.arena import Graph, Node, NodeId, TensorType
from fuel_gpu.kernels import (
    costs_contrib,
    costs_elementwise,
    costs_movement,
    costs_products,
    costs_recurrent,
    costs_reductions,
)
from fuel_gpu.kernels.arity import least_inputs
from fuel_gpu.kernels.operands import FlopFormula, Operands
from fuel_gpu.numbers import saturate

FLOPS: Final[dict[str, FlopFormula]] = {
    **costs_elementwise.FLOPS,
    **costs_movement.FLOPS,
    **costs_products.FLOPS,
    **costs_recurrent.FLOPS,
    **costs_reductions.FLOPS,
    **costs_contrib.FLOPS,
}
"""FLOPs by operator, over all families."""


NO_FORMULA: Final = "its operator has no formula: only its bytes are counted"
SHAPE_IS_BOUND: Final = "a shape depends on data: the most that it can be"
UNKNOWN_TRIPS: Final = "one iteration of a loop whose trip count is unknown"
MOST_TRIPS: Final = "every iteration of a loop that a condition may skip"


@dataclass(frozen=True, slots=True)
class OperationCost:
    """What one operation does, whatever device does it.

    Parameters
    ----------
    flops
        Floating-point operations, a multiply-accumulate counted as two.
    bytes_moved
        Bytes of each distinct input read once and of every output written.
    launches
        Kernels launched: 1, but for control flow those of its bodies, times its trips.
    estimate
        Why the figures are only an estimate; empty if they are not.
    """

    flops: int
    bytes_moved: int
    launches: int = 1
    estimate: str = ""

    @property
    def estimated(self) -> bool:
        """Whether the operator has no formula, or a shape or trip count is only assumed."""
        return bool(self.estimate)


_FREE: Final = OperationCost(0, 0, launches=0)


def operation_cost(graph: Graph, node_id: NodeId) -> OperationCost:
    """Price a node by its operator, attributes and shapes; only kernels cost anything.

    A nested graph is priced from its body: If by the dearer branch, Loop and Scan by the body
    times the trip count; they launch at least one kernel. Figures saturate at 2**64 - 1.

    Raises
    ------
    PlanError
        If inputs are missing or their shapes do not fit the operator, as in a damaged model.
    """
    node = graph.node(node_id)
    if node.kind != "kernel":
        return _FREE
    if node.bodies:
        return _nested(node)
    operands = operands_of(graph, node_id)
    formula = FLOPS.get(node.op)
    if formula and len(operands.inputs) < least_inputs(node.op):
        raise PlanError(
            f"node {node.name or node_id} ({node.op}) cannot be priced: it has "
            f"{len(operands.inputs)} input(s) and needs at least {least_inputs(node.op)}"
        )
    moved = costs_movement.BYTES.get(node.op)
    try:
        flops = formula(operands) if formula else 0
        moved_bytes = moved(operands) if moved else _all_bytes(graph, node, operands.outputs)
    except (ArithmeticError, LookupError, ValueError) as error:
        shapes = ", ".join(str(list(t.shape)) for t in operands.inputs)
        raise PlanError(
            f"node {node.name or node_id} ({node.op}) cannot be priced: inputs of shape {shapes} "
            f"do not fit its operator ({error}); the model is damaged, export it again"
        ) from error
    reasons = [
        *([] if formula else [NO_FORMULA]),
        *([SHAPE_IS_BOUND] if node.attributes.get("shape_is_bound") else []),
    ]
    return OperationCost(saturate(flops), saturate(moved_bytes), 1, "; ".join(reasons))


def operands_of(graph: Graph, node_id: NodeId) -> Operands:
    """Gather a node with the types that it reads and writes."""
    node = graph.node(node_id)
    inputs = tuple(graph.node(i).type for i in node.inputs)
    return Operands(node, inputs, (node.type, *_picked(graph).get(node_id, ())))


def _all_bytes(graph: Graph, node: Node, outputs: tuple[TensorType, ...]) -> int:
    distinct = {graph.storage(i): graph.node(i).type.bytes for i in node.inputs}
    return sum(distinct.values()) + sum(t.bytes for t in outputs)


def _nested(node: Node) -> OperationCost:
    bodies = [graph_cost(body) for body in node.bodies]
    reasons = [c.estimate for c in bodies]
    if node.op == "If":
        # On any device a branch takes the longer of its arithmetic and its traffic, so that the
        # larger of each makes the dearer branch's time, whatever the rates are.
        return OperationCost(
            max(c.flops for c in bodies),
            max(c.bytes_moved for c in bodies),
            max(1, *(c.launches for c in bodies)),
            _joined(reasons),
        )
    trips = node.attributes.get("trip_count")
    if trips is None:
        reasons.append(UNKNOWN_TRIPS)
    elif node.attributes.get("trip_count_is_bound"):
        reasons.append(MOST_TRIPS)
    times = 1 if trips is None else int(trips)
    return OperationCost(
        saturate(sum(c.flops for c in bodies) * times),
        saturate(sum(c.bytes_moved for c in bodies) * times),
        max(saturate(sum(c.launches for c in bodies) * times), 1),
        _joined(reasons),
    )


def graph_cost(graph: Graph) -> OperationCost:
    """Sum the cost of every node that the graph's outputs need."""
    costs = [operation_cost(graph, node_id) for node_id in graph.topological_order()]
    return OperationCost(
        saturate(sum(c.flops for c in costs)),
        saturate(sum(c.bytes_moved for c in costs)),
        saturate(sum(c.launches for c in costs)),
        _joined([c.estimate for c in costs]),
    )


def _joined(reasons: list[str]) -> str:
    """Name each reason once, in the order in which they came."""
    each = (reason for joined in reasons if joined for reason in joined.split("; "))
    return "; ".join(dict.fromkeys(each))


@dataclass(frozen=True, slots=True)
class _Picks:
    stamp: tuple[int, int]
    types: dict[NodeId, tuple[TensorType, ...]]


_PICKS: WeakKeyDictionary[Graph, _Picks] = WeakKeyDictionary()


def _picked(graph: Graph) -> dict[NodeId, tuple[TensorType, ...]]:
    """Types of the further outputs by producer, found once for each state of a graph."""
    stamp = (len(graph), graph.topology_generation)
    found = _PICKS.get(graph)
    if found is None or found.stamp != stamp:
        types: dict[NodeId, tuple[TensorType, ...]] = {}
        for node in graph.nodes:
            if node.kind == "pick":
                producer = node.inputs[0]
                types[producer] = (*types.get(producer, ()), node.type)
        found = _PICKS[graph] = _Picks(stamp, types)
    return found.types
