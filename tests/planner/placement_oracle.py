"""The plainest placement DP: dictionaries, one loop a rule, no sharing with the package's own."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from fuel_gpu.device import Device
from fuel_gpu.planner.placement_dp import ChainInput
from fuel_gpu.planner.transfer import TransferEstimator

MAX = 18446744073709551615
Commitments = list[tuple[Hashable, Device]]


def plus(a: int, b: int) -> int:
    """Add as a saturating 64-bit machine would."""
    return MAX if a + b > MAX else a + b


@dataclass
class OracleRow:
    node: Hashable
    devices: list[Device]
    best: list[int]
    back: list[list[tuple[Hashable, Device]]]
    status: str = "open"
    committed: Device | None = None


@dataclass
class OracleDP:
    rows: list[OracleRow] = field(default_factory=list)
    by_node: dict[Hashable, int] = field(default_factory=dict)
    terminal_ns: list[int] = field(default_factory=list)
    """What each terminal row cost in all, in the order in which they were committed."""

    def is_open(self, node: Hashable) -> bool:
        return node in self.by_node and self.rows[self.by_node[node]].status == "open"

    def committed_device(self, node: Hashable) -> Device | None:
        return self.rows[self.by_node[node]].committed if node in self.by_node else None

    def push_row(
        self,
        node: Hashable,
        device_costs: Sequence[tuple[Device, int]],
        fixed_inputs: Sequence[tuple[Device, int]],
        chain_inputs: Sequence[ChainInput[Hashable]],
        estimator: TransferEstimator,
    ) -> None:
        new = OracleRow(node, [], [], [])
        for device, cost in device_costs:
            total = cost
            for source, size in fixed_inputs:
                total = plus(total, estimator.estimate_transfer_ns(source, device, size))
            pointers = []
            for chain in chain_inputs:
                if chain.producer not in self.by_node:
                    continue
                producer = self.rows[self.by_node[chain.producer]]
                chosen, lowest = None, 0
                for source, best in zip(producer.devices, producer.best, strict=True):
                    time = best
                    for size in chain.edge_bytes:
                        time = plus(time, estimator.estimate_transfer_ns(source, device, size))
                    if chosen is None or time < lowest:
                        chosen, lowest = source, time
                if chosen is not None:
                    total = plus(total, lowest)
                    pointers.append((chain.producer, chosen))
            new.devices.append(device)
            new.best.append(total)
            new.back.append(pointers)
        for chain in chain_inputs:
            if self.is_open(chain.producer):
                self.rows[self.by_node[chain.producer]].status = "chained"
        self.by_node[node] = len(self.rows)
        self.rows.append(new)

    def close_toward(
        self,
        node: Hashable,
        consumer_device: Device,
        edge_bytes: Sequence[int],
        estimator: TransferEstimator,
    ) -> Commitments:
        made: Commitments = []
        if self.is_open(node):
            self._commit_at_lowest(self.by_node[node], consumer_device, edge_bytes, estimator, made)
        return made

    def finish(
        self,
        exit_device: Device | None,
        exit_bytes: Callable[[Hashable], int],
        estimator: TransferEstimator,
    ) -> Commitments:
        made: Commitments = []
        for index, row in enumerate(self.rows):
            if row.status == "open":
                self._commit_at_lowest(index, exit_device, [exit_bytes(row.node)], estimator, made)
        for index, row in enumerate(self.rows):
            if row.status != "committed":
                self._commit_at_lowest(index, None, [], estimator, made)
        return made

    def _commit_at_lowest(
        self,
        index: int,
        toward: Device | None,
        sizes: Sequence[int],
        estimator: TransferEstimator,
        made: Commitments,
    ) -> None:
        row = self.rows[index]
        chosen, lowest = None, 0
        for device, best in zip(row.devices, row.best, strict=True):
            time = best
            if toward is not None:
                for size in sizes:
                    time = plus(time, estimator.estimate_transfer_ns(device, toward, size))
            if chosen is None or time < lowest:
                chosen, lowest = device, time
        if chosen is None:
            return
        self.terminal_ns.append(lowest)
        waiting = [(index, chosen)]
        while waiting:
            at, device = waiting.pop()
            row = self.rows[at]
            if row.status == "committed":
                continue
            row.status = "committed"
            row.committed = device
            made.append((row.node, device))
            if device not in row.devices:
                continue
            for node, came_from in row.back[row.devices.index(device)]:
                waiting.append((self.by_node[node], came_from))
