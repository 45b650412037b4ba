"""Passes of one's own: a pathfinder that offers a fused kernel, an optimizer that drops dear arms.

Run it from anywhere: ``python examples/custom_passes.py``. It plans a small network for the
desktop of ``tables/desktop.json``, whose numbers come from datasheets, and prints each recorded
decision with its arms.
"""

from dataclasses import dataclass
from pathlib import Path

from fuel_gpu import Device, InvalidBranchError, load_table
from fuel_gpu.calibration.rates import device_rates
from fuel_gpu.graph.arena import Graph, Node, NodeId, TensorType
from fuel_gpu.graph.branches import ArmPrice
from fuel_gpu.graph.collapse import drop_arm
from fuel_gpu.graph.lowering import lower
from fuel_gpu.kernels.binding import Kernel, default_bindings
from fuel_gpu.planner import (
    OptimizationContext,
    PassRegistry,
    PlanOptions,
    TableTransfers,
    optimize_graph,
)

CPU, CUDA = Device("cpu", 0), Device("cuda", 0)
TABLE = Path(__file__).parent / "tables" / "desktop.json"
FUSED = Kernel("cuda.fused_matmul_relu", "cuda", "float32")


class FuseMatMulRelu:
    """Offer one kernel for a product and the Relu behind it, where somebody has that kernel.

    Arm 0 is the two nodes, arm 1 the fused one. Its price is the product's: the Relu then works
    on values that are still in registers.
    """

    name = "FuseMatMulRelu"

    def propose(self, graph: Graph, context: OptimizationContext) -> None:
        """Record a branch for each product whose only reader is a Relu on the same device."""
        for relu in context.order:
            if graph.node(relu).op != "Relu":
                continue
            (product,) = graph.node(relu).inputs
            readers = [n for n in context.order if relu in graph.node(n).inputs]
            if graph.node(product).op == "MatMul" and len(readers) == 1:
                self._offer(graph, context, product, relu, readers[0])

    def _offer(
        self,
        graph: Graph,
        context: OptimizationContext,
        product: NodeId,
        relu: NodeId,
        reader: NodeId,
    ) -> None:
        sets = [context.plan.decision_set(node_id) for node_id in (product, relu)]
        winners = [choices.winner for choices in sets if choices is not None]
        if len(winners) < 2 or winners[0] is None or winners[1] is None:
            return
        device = winners[0].device
        inputs, result = graph.node(product).inputs, graph.node(relu).type
        fused = Node("MatMulRelu", inputs, result, name=f"{graph.node(product).name}+relu")
        input_types = tuple(graph.node(value).type for value in inputs)
        if device != winners[1].device or not context.bindings.kernels(
            fused, input_types, device.backend
        ):
            return
        needed = result.bytes + sum(t.bytes for t in input_types)
        apart_ns, fused_ns = winners[0].time_ns + winners[1].time_ns, winners[0].time_ns
        arm = graph.push(fused)
        graph.placements[arm] = device
        graph.target_backends[arm] = device.backend
        builder = graph.open_branch(inputs[0])
        builder.add_arm(relu, ArmPrice(device, device.backend, apart_ns, needed + result.bytes))
        builder.add_arm(arm, ArmPrice(device, device.backend, fused_ns, needed))
        try:
            builder.finalize_branches(graph, reader)
        except InvalidBranchError:
            return  # something else reads the product: the two nodes are no route of their own


@dataclass(frozen=True)
class DropDearArms:
    """Discard a further arm that costs over `factor` times what arm 0 costs."""

    factor: float
    name: str = "DropDearArms"

    def prune(self, graph: Graph, context: OptimizationContext) -> None:
        """Drop the dear arms of each branch that is not under the cycle guard; arm 0 stays."""
        for branch_id, branch in list(graph.branches.items()):
            chosen = branch.prices[0]
            if chosen is None or not context.cycle_guard.isdisjoint({branch_id, *branch.arms}):
                continue
            for arm in reversed(range(1, len(branch.arms))):
                price = branch.prices[arm]
                if price is not None and price.time_ns > self.factor * chosen.time_ns:
                    drop_arm(graph, branch_id, arm)


def build_network(layers: int = 3, rows: int = 512, width: int = 2048) -> Graph:
    """Build products with square weights, each followed by a Relu, and a Softmax at the end."""
    graph = Graph()
    activations = TensorType("float32", (rows, width))
    last = graph.push(Node("input", (), activations, kind="input", name="x"))
    for k in range(layers):
        square = TensorType("float32", (width, width))
        weight = graph.push(Node("weight", (), square, kind="weight", name=f"w{k}"))
        product = graph.push(Node("MatMul", (last, weight), activations, name=f"product{k}"))
        last = graph.push(Node("Relu", (product,), activations, name=f"relu{k}"))
    graph.outputs = [graph.push(Node("Softmax", (last,), activations, name="softmax"))]
    return graph


def main() -> None:
    """Plan the network with both passes beside the shipped ones, and print what is decided."""
    table = load_table(TABLE)
    devices = (CPU, CUDA)
    graph = build_network()
    bindings = default_bindings().with_kernel(FUSED, ["MatMulRelu"])
    options = PlanOptions(
        devices=devices,
        rates={device: device_rates(table, device) for device in devices},
        pinned_device=CPU,
        input_residency={0: CPU},
        estimator=TableTransfers(table),
        exit_device=CPU,
    )
    passes = (
        PassRegistry.default_passes()
        .with_pathfinder(FuseMatMulRelu())
        .with_optimizer(DropDearArms(factor=10))
    )
    plan = optimize_graph(graph, bindings, options, passes)

    for branch_id, branch in graph.branches.items():
        ends = f"{graph.node(branch.diverge).name} -> {graph.node(branch.reconverge).name}"
        print(f"decision {branch_id}: {ends}")
        for arm, (exit_id, price) in enumerate(zip(branch.arms, branch.prices, strict=True)):
            if price is not None:
                name = graph.node(exit_id).name
                print(f"  arm {arm}: {name} on {price.device}, {price.time_ns} ns")
    fused = {
        branch_id: arm
        for branch_id, branch in graph.branches.items()
        for arm, exit_id in enumerate(branch.arms)
        if graph.node(exit_id).op == "MatMulRelu"
    }
    route = lower(graph, plan.order, fused)
    print("as planned:", *(graph.node(n).name for n in lower(graph, plan.order).order))
    print("with the fused kernel:", *(graph.node(n).name for n in route.order))


if __name__ == "__main__":
    main()
