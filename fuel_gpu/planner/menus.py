"""Menus: the kernels and devices that nodes of one kind can choose from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.calibration.rates import Rates as DeviceRates
from fuel_gpu.calibration.table import Provenance, weakest
from fuel_gpu.device import Device
from fuel_gpu.dtypes import UNIT_ROUNDOFF
from fuel_gpu.errors import PlanError
from fuel_gpu.graph.arena import Graph, Node, NodeId, TensorType
from fuel_gpu.kernels.binding import BindingTable, Kernel, stored_dtype
from fuel_gpu.kernels.costs import OperationCost
from fuel_gpu.kernels.precision import CostEstimate, PrecisionGuarantee
from fuel_gpu.numbers import saturating_mul
from fuel_gpu.planner.candidate import Candidate, Rates, prior_rates
from fuel_gpu.planner.cost_vector import accuracy_class, precision_digits
from fuel_gpu.planner.options import PlanOptions


@dataclass(frozen=True, slots=True)
class Choice:
    """A kernel on a device, with the rates it is priced at and what it promises.

    `stored` is the dtype of the tensors, at whose memory rate the kernel reads and writes.
    """

    device: Device
    kernel: Kernel
    rates: Rates
    launch_ns: int
    precision: PrecisionGuarantee
    provenance: Provenance
    stored: str

    def candidate(self, cost: OperationCost, inbound_transfer_ns: int = 0) -> Candidate:
        """Price the choice for a node's work."""
        overhead_ns = saturating_mul(self.launch_ns, cost.launches)
        return Candidate(
            device=self.device,
            backend=self.kernel.backend,
            static_cost=CostEstimate(cost.flops, cost.bytes_moved, overhead_ns),
            precision=self.precision,
            inbound_transfer_ns=inbound_transfer_ns,
            kernel_source=self.kernel.name,
            rates=self.rates,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Menu:
    """The choices that nodes of one kind share, the decision device's first, and their columns.

    A graph has few menus, however many nodes: the candidates of all its nodes are the menus'
    columns, taken once a node. Arrays have shape (choices,).
    """

    choices: tuple[Choice, ...]
    device_codes: NDArray[np.int32]
    backend_codes: NDArray[np.int32]
    flops_per_ns: NDArray[np.float64]
    bytes_per_ns: NDArray[np.float64]
    launch_ns: NDArray[np.uint64]
    digits: NDArray[np.uint8]
    accuracy: NDArray[np.uint8]


def build_menu(
    choices: tuple[Choice, ...], device_codes: Mapping[Device, int], backends: dict[str, int]
) -> Menu:
    """Turn choices into columns; `backends` gains a code for each backend first seen here."""
    return Menu(
        choices=choices,
        device_codes=np.array([device_codes[c.device] for c in choices], np.int32),
        backend_codes=np.array(
            [backends.setdefault(c.kernel.backend, len(backends)) for c in choices], np.int32
        ),
        flops_per_ns=np.array([c.rates.flops_per_ns for c in choices], np.float64),
        bytes_per_ns=np.array([c.rates.bytes_per_ns for c in choices], np.float64),
        launch_ns=np.array([c.launch_ns for c in choices], np.uint64),
        digits=np.array([precision_digits(c.precision) for c in choices], np.uint8),
        accuracy=np.array([accuracy_class(c.precision) for c in choices], np.uint8),
    )


def devices_for(graph: Graph, node_id: NodeId, options: PlanOptions) -> tuple[Device, ...]:
    """List the devices that a node may be placed on, its decision device first.

    The decision device is the node's explicit placement, else the pinned device, else its
    backend's device 0. Others follow where transfers can be priced, unless the node is placed
    explicitly, overwrites an input, or cost placement is switched off.

    Raises
    ------
    PlanError
        If nothing says where to decide the node.
    """
    node = graph.node(node_id)
    placed = graph.placements.get(node_id)
    if placed is not None:
        return (placed,)
    decision = options.pinned_device
    if decision is None and node_id in graph.target_backends:
        decision = Device(graph.target_backends[node_id], 0)
    if decision is None:
        raise PlanError(
            f"node {describe(node_id, node)} has no decision device: give it a placement or a "
            "backend, or pin the plan to a device"
        )
    stays = (
        options.estimator is None
        or node.writes_input is not None
        or not options.allow_cost_placement
    )
    return (decision,) if stays else tuple(dict.fromkeys([decision, *options.devices]))


def choices_on(
    devices: Sequence[Device],
    graph: Graph,
    node_id: NodeId,
    input_types: tuple[TensorType, ...],
    bindings: BindingTable,
    options: PlanOptions,
) -> tuple[Choice, ...]:
    """List the kernels that can run a node on `devices`, in that order.

    A device has a compute dtype if its rates list it; the node's own dtype it always has, priced
    at its float32 row where it has no row of its own. Memory traffic goes at the rate of the
    dtype in which the tensors are stored.
    """
    node = graph.node(node_id)
    stored = stored_dtype(node, input_types)
    own = UNIT_ROUNDOFF.get(stored)
    choices: list[Choice] = []
    for device in devices:
        rows = options.rates.get(device)
        priced: dict[str, tuple[Rates, int, Provenance]] = {}
        for kernel in bindings.kernels(node, input_types, device.backend):
            if rows is not None and kernel.dtype != stored and kernel.dtype not in rows:
                continue
            roundoff = UNIT_ROUNDOFF.get(kernel.dtype)
            if not options.narrower and own is not None and roundoff is not None and roundoff > own:
                continue
            if kernel.dtype not in priced:
                priced[kernel.dtype] = choice_rates(device, rows, kernel.dtype, stored)
            rates, launch_ns, provenance = priced[kernel.dtype]
            precision = bindings.precision(kernel, graph, node_id)
            choices.append(Choice(device, kernel, rates, launch_ns, precision, provenance, stored))
    return tuple(choices)


def describe(node_id: NodeId, node: Node) -> str:
    """Name a node for an error: its name or id, and its operation."""
    return f"{node.name or node_id} ({node.op})"


def choice_rates(
    device: Device, rows: Mapping[str, DeviceRates] | None, dtype: str, stored: str
) -> tuple[Rates, int, Provenance]:
    """Give the rates, launch overhead (ns) and provenance of a kernel.

    Parameters
    ----------
    rows
        The device's rates by compute dtype; priors where there are none.
    dtype, stored
        What the kernel computes in, and what its tensors are stored in.
    """
    if not rows:
        return prior_rates(device.backend), 0, "fallback"
    compute = rows.get(dtype) or rows["float32"]
    memory = rows.get(stored) or rows["float32"]
    rates = Rates(compute.flops_per_ns, memory.bytes_per_ns)
    return rates, compute.launch_ns, weakest(compute.provenance, memory.provenance)
