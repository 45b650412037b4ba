"""The walk of the specification as the plainest loop: one set, one row and one rule at a time."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from placement_oracle import OracleDP, plus

from fuel_gpu.device import Device
from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.kernels.binding import default_bindings
from fuel_gpu.kernels.costs import operation_cost
from fuel_gpu.kernels.precision import CostEstimate
from fuel_gpu.planner.alternative_set import AlternativeSet
from fuel_gpu.planner.candidate import Candidate, Rates
from fuel_gpu.planner.judge import size_class
from fuel_gpu.planner.options import PlanOptions
from fuel_gpu.planner.placement_dp import ChainInput


@dataclass
class NaivePlan:
    graph: Graph
    options: PlanOptions
    dp: OracleDP = field(default_factory=OracleDP)
    alias: dict[NodeId, NodeId] = field(default_factory=dict)
    device: dict[NodeId, Device] = field(default_factory=dict)
    sets: dict[NodeId, AlternativeSet] = field(default_factory=dict)

    def walk(self, order: tuple[NodeId, ...]) -> None:
        for node_id in order:
            node = self.graph.node(node_id)
            if node.kind == "view":
                self.alias[node_id] = self.resolve(node.inputs[0])
            elif node.kind == "copy":
                self.close(node_id, self.graph.placements[node_id])
            elif node.kind == "kernel":
                self.decide(node_id)
        if self.options.estimator is not None:
            self.commit(
                self.dp.finish(
                    self.options.exit_device,
                    lambda n: self.graph.node(n).type.bytes,  # type: ignore[arg-type]  # ids here
                    self.options.estimator,
                )
            )

    def resolve(self, node_id: NodeId) -> NodeId:
        return self.alias.get(node_id, node_id)

    def commit(self, made: object) -> None:
        self.device.update(made)  # type: ignore[call-overload]  # pairs of node and device

    def residency(self, node_id: NodeId) -> Device | None:
        node = self.graph.node(node_id)
        if node.kind == "copy" or node_id in self.graph.placements:
            return self.graph.placements[node_id]
        if node_id in self.options.input_residency:
            return self.options.input_residency[node_id]
        if node_id in self.device:
            return self.device[node_id]
        if node.kind == "view":
            return self.residency(node.inputs[0])
        return None

    def candidates(self, node_id: NodeId, device: Device) -> list[Candidate]:
        node = self.graph.node(node_id)
        types = tuple(self.graph.node(i).type for i in node.inputs)
        cost = operation_cost(self.graph, node_id)
        bindings = default_bindings()
        rows = self.options.rates[device]
        found = []
        for kernel in bindings.kernels(node, types, device.backend):
            if kernel.dtype not in rows:
                continue
            overhead = rows[kernel.dtype].launch_ns * cost.launches
            static = CostEstimate(cost.flops, cost.bytes_moved, overhead)
            if self.options.judge is not None:
                measured = self.options.judge.measured_latency_ns(
                    node.op,
                    types[0].dtype,
                    size_class(types[0].elements),
                    device.backend,
                    kernel.name,
                )
                if measured is not None:
                    static = CostEstimate(0, 0, measured)
            rates = Rates(rows[kernel.dtype].flops_per_ns, rows["float32"].bytes_per_ns)
            found.append(
                Candidate(
                    device,
                    kernel.backend,
                    static,
                    bindings.precision(kernel, self.graph, node_id),
                    0,
                    kernel.name,
                    rates,
                )
            )
        return found

    def decide(self, node_id: NodeId) -> None:
        node = self.graph.node(node_id)
        estimator = self.options.estimator
        if node_id in self.graph.placements:
            devices = [self.graph.placements[node_id]]
        else:
            assert self.options.pinned_device is not None
            devices = [self.options.pinned_device]
            if estimator and node.writes_input is None and self.options.allow_cost_placement:
                devices += [d for d in self.options.devices if d not in devices]
        made = AlternativeSet([c for d in devices for c in self.candidates(node_id, d)])
        listed = list(dict.fromkeys(c.device for c in made))
        fixed: list[tuple[Device, int]] = []
        chained: dict[NodeId, list[int]] = {}
        for value in node.inputs:
            size = self.graph.node(value).type.bytes
            where = self.residency(value)
            row = self.resolve(value)
            if where is not None:
                fixed.append((where, size))
            elif self.dp.is_open(row):
                chained.setdefault(row, []).append(size)
        if estimator is not None:
            for index, candidate in enumerate(made.alternatives):
                inbound = 0
                for where, size in fixed:
                    inbound = plus(
                        inbound, estimator.estimate_transfer_ns(where, candidate.device, size)
                    )
                made.set_inbound_transfer_ns(index, inbound)
        made.rank_by_cost()
        made.retain_per_device_frontier(self.options.keep)
        self.sets[node_id] = made
        if estimator is not None and len(listed) > 1:
            costs = [(d, min(c.composite_ns for c in made if c.device == d)) for d in listed]
            inputs: list[ChainInput[Hashable]] = [
                ChainInput(row, sizes) for row, sizes in chained.items()
            ]
            self.dp.push_row(node_id, costs, fixed, inputs, estimator)
        else:
            assert made.winner is not None
            self.close(node_id, made.winner.device)
            self.device[node_id] = made.winner.device

    def close(self, node_id: NodeId, device: Device) -> None:
        edges: dict[NodeId, list[int]] = {}
        for value in self.graph.node(node_id).inputs:
            row = self.resolve(value)
            if self.dp.is_open(row):
                edges.setdefault(row, []).append(self.graph.node(value).type.bytes)
        for row, sizes in edges.items():
            assert self.options.estimator is not None
            self.commit(self.dp.close_toward(row, device, sizes, self.options.estimator))
