"""The carry-forward placement DP: one row a node, the cheapest arrival on every device.

A greedy choice per node can neither pay for a crossing with a whole segment of faster operations,
nor see that a fast operation strands its result far from where it is needed next. So each node
keeps, for every device that could run it, the lowest accumulated time of arriving there:

    best[d] = cost[d] + Σ over fixed inputs of  transfer(where it lies → d)
                      + Σ over chained producers of  min over d' of (best'[d'] + transfer(d' → d))

and the devices are decided backwards, from the terminal rows (which also price the way out).

This is exact where every value has one reader: on chains and on trees that join. Where it is not,
the first reader chains the row, later readers price nothing for that edge, and branches that share
an ancestor are merged as if they were independent. Every argmin takes the first-listed device among
equals, so a row lists its preferred device first. Times are integers that saturate at 2**64 - 1.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import add
from typing import Generic, Literal, TypeVar

from fuel_gpu.device import Device
from fuel_gpu.errors import UsageError
from fuel_gpu.numbers import U64_MAX
from fuel_gpu.planner.transfer import TransferEstimator

NodeT = TypeVar("NodeT", bound=Hashable)
_Devices = tuple[Device, ...]


@dataclass(frozen=True, slots=True)
class ChainInput(Generic[NodeT]):
    """The edges from one producer's row into a new row.

    Parameters
    ----------
    producer
        The node whose row feeds the new one; views are resolved by the caller.
    edge_bytes
        The bytes of each edge: a value read twice stands, and is priced, twice.
    """

    producer: NodeT
    edge_bytes: Sequence[int]


@dataclass(slots=True)
class _Row(Generic[NodeT]):
    node: NodeT
    devices: _Devices
    best_ns: list[int]
    arrivals: list[tuple[NodeT, list[Device]]]
    """For each chained producer, its device for each device of this row."""
    status: Literal["open", "chained", "committed"] = "open"
    device: Device | None = None


class PlacementDP(Generic[NodeT]):
    """The rows of a topological walk, and the devices committed so far.

    Node ids are any hashable. Nothing here raises on an odd call: an edge from a node without a row
    prices nothing, a row without devices is never committed, and a node pushed again answers for
    its newest row.

    Examples
    --------
    Two nodes in a chain. A copy takes 10 ns and a quarter of one for each byte; the input, 400
    bytes, lies in the host's memory, and the result, 40 bytes, is wanted there.

    >>> class Link:
    ...     def estimate_transfer_ns(self, src, dst, bytes):
    ...         return 0 if src == dst else 10 + bytes // 4
    >>> link, cpu, cuda = Link(), Device("cpu"), Device("cuda")
    >>> dp = PlacementDP()
    >>> dp.push_row("a", [(cpu, 100), (cuda, 20)], [(cpu, 400)], [], link)
    >>> dp.push_row("b", [(cpu, 100), (cuda, 20)], [], [ChainInput("a", [400])], link)
    >>> [(node, str(device)) for node, device in dp.finish(cpu, lambda node: 40, link)]
    [('b', 'cuda:0'), ('a', 'cuda:0')]

    That takes 110 + 20 + 20 + 20 = 170 ns, and all on the processor 200, though ``a`` alone is
    faster there: 100 against 130.
    """

    def __init__(self) -> None:
        self._rows: list[_Row[NodeT]] = []
        self._newest: dict[NodeT, _Row[NodeT]] = {}
        self._aliases: dict[NodeT, NodeT] = {}
        self._estimator: TransferEstimator | None = None
        self._crossings: dict[tuple[_Devices, _Devices, tuple[int, ...]], list[list[int]]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no row was ever pushed."""
        return not self._rows

    def resolve(self, node: NodeT) -> NodeT:
        """Give the node whose row stands for `node`: itself unless it is an alias."""
        return self._aliases.get(node, node)

    def add_alias(self, view: NodeT, src: NodeT) -> None:
        """Let `view` stand for the row of `src`, itself resolved first."""
        self._aliases[view] = self.resolve(src)

    def is_open(self, node: NodeT) -> bool:
        """Whether `node` (already resolved) has a row that nothing has chained or committed."""
        row = self._newest.get(node)
        return row is not None and row.status == "open"

    def committed_device(self, node: NodeT) -> Device | None:
        """Give the device decided for `node` (already resolved), or None."""
        row = self._newest.get(node)
        return None if row is None else row.device

    def push_row(
        self,
        node: NodeT,
        device_costs: Sequence[tuple[Device, int]],
        fixed_inputs: Sequence[tuple[Device, int]],
        chain_inputs: Sequence[ChainInput[NodeT]],
        estimator: TransferEstimator,
    ) -> None:
        """Open a row for `node` and chain the producers that feed it.

        Parameters
        ----------
        device_costs
            The node's own time in ns on each device that could run it, preferred device first.
        fixed_inputs
            Residency and bytes of each input edge whose residency is already known.
        chain_inputs
            The producers whose device is still undecided.
        estimator
            Prices the crossings.

        Raises
        ------
        UsageError
            If the bytes of a chained input are no list, one number for each edge.
        """
        devices = tuple([device for device, _ in device_costs])
        totals = [cost_ns for _, cost_ns in device_costs]
        for source, size in fixed_inputs:
            for k, (ns,) in enumerate(self._crossing_ns((source,), devices, (size,), estimator)):
                totals[k] += ns
        arrivals = []
        for chain in chain_inputs:
            producer = self._newest.get(chain.producer)
            if producer is None or not producer.devices:
                continue
            came_from = []
            for k, inbound_ns in enumerate(
                self._crossing_ns(producer.devices, devices, chain.edge_bytes, estimator)
            ):
                first, lowest_ns = _first_lowest(list(map(add, producer.best_ns, inbound_ns)))
                totals[k] += lowest_ns
                came_from.append(producer.devices[first])
            arrivals.append((chain.producer, came_from))
        for chain in chain_inputs:
            producer = self._newest.get(chain.producer)
            if producer is not None and producer.status == "open":
                producer.status = "chained"
        row = _Row(node, devices, [min(total, U64_MAX) for total in totals], arrivals)
        self._rows.append(row)
        self._newest[node] = row

    def close_toward(
        self,
        node: NodeT,
        consumer_device: Device,
        edge_bytes: Sequence[int],
        estimator: TransferEstimator,
    ) -> list[tuple[NodeT, Device]]:
        """Commit an open row, and all behind it, for a reader whose device is already decided.

        Returns
        -------
        list of (node, device)
            What was committed, in order; empty when `node` has no open row.
        """
        row = self._newest.get(node)
        if row is None or row.status != "open" or not row.devices:
            return []
        (outbound,) = self._crossing_ns(row.devices, (consumer_device,), edge_bytes, estimator)
        first, _ = _first_lowest(list(map(add, row.best_ns, outbound)))
        return self._commit(row, row.devices[first])

    def finish(
        self,
        exit_device: Device | None,
        exit_bytes: Callable[[NodeT], int],
        estimator: TransferEstimator,
    ) -> list[tuple[NodeT, Device]]:
        """Commit every remaining row.

        Parameters
        ----------
        exit_device
            Where the results are wanted; None leaves the way out unpriced.
        exit_bytes
            Gives the size of an open node's result.

        Returns
        -------
        list of (node, device)
            What was committed, in order: each open row, followed by the rows behind it.
        """
        commitments: list[tuple[NodeT, Device]] = []
        for row in self._rows:
            if row.status == "open" and row.devices:
                leaving_ns = row.best_ns
                if exit_device is not None:
                    sizes = (exit_bytes(row.node),)
                    (out,) = self._crossing_ns(row.devices, (exit_device,), sizes, estimator)
                    leaving_ns = list(map(add, leaving_ns, out))
                first, _ = _first_lowest(leaving_ns)
                commitments += self._commit(row, row.devices[first])
        for row in self._rows:  # left over: rows hidden from their readers by a repeated push
            if row.status != "committed" and row.devices:
                first, _ = _first_lowest(row.best_ns)
                commitments += self._commit(row, row.devices[first])
        return commitments

    def _crossing_ns(
        self,
        sources: _Devices,
        targets: _Devices,
        edge_bytes: Sequence[int],
        estimator: TransferEstimator,
    ) -> list[list[int]]:
        """Copy times as ``[target][source]``, summed over the edges; asked once and kept."""
        if estimator is not self._estimator:
            self._estimator = estimator
            self._crossings = {}
        try:
            key = (sources, targets, tuple(edge_bytes))
        except TypeError:
            raise UsageError(
                f"edge_bytes: {edge_bytes!r:.60} is no list; give the bytes of each edge, such as "
                "[4096]"
            ) from None
        found = self._crossings.get(key)
        if found is None:
            price = estimator.estimate_transfer_ns
            found = self._crossings[key] = [
                [sum([price(source, target, size) for size in edge_bytes]) for source in sources]
                for target in targets
            ]
        return found

    def _commit(self, row: _Row[NodeT], device: Device) -> list[tuple[NodeT, Device]]:
        """Commit `row`, then what it came from: depth first, the last-listed producer first."""
        commitments = []
        stack = [(row, device)]
        while stack:
            row, device = stack.pop()
            if row.status == "committed":
                continue
            row.status = "committed"
            row.device = device
            commitments.append((row.node, device))
            if device in row.devices:
                k = row.devices.index(device)
                stack += [(self._newest[node], came_from[k]) for node, came_from in row.arrivals]
        return commitments


def _first_lowest(times_ns: list[int]) -> tuple[int, int]:
    """Position and value of the lowest time, saturated; the first among equals."""
    lowest_ns = min(times_ns)
    if lowest_ns >= U64_MAX:
        return 0, U64_MAX
    return times_ns.index(lowest_ns), lowest_ns
