"""What `compile_plan` is told besides the graph: devices, rates, residency, floors, switches."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fuel_gpu.arrays.engine import Engine, EngineName
from fuel_gpu.calibration.rates import Rates as DeviceRates
from fuel_gpu.device import Device
from fuel_gpu.graph.arena import NodeId
from fuel_gpu.planner.alternative_set import KEEP_PER_DEVICE
from fuel_gpu.planner.filters import Filter
from fuel_gpu.planner.judge import Judge
from fuel_gpu.planner.transfer import TransferEstimator

if TYPE_CHECKING:
    from fuel_gpu.planner.execution_plan import ExecutionPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Options of `compile_plan`.

    Parameters
    ----------
    devices
        The devices that may be planned on, preferred first.
    rates
        For each device its rates by compute dtype; a device without any uses the priors.
    pinned_device
        The decision device of every node that has no explicit placement.
    input_residency
        Where given graph inputs lie.
    estimator
        Prices transfers; without one every node is decided on its decision device.
    judge
        Measured latencies that replace static costs.
    filters
        The chain applied to each node's alternatives, in order.
    keep
        Crowding cap for each device; 0 counts as 1.
    exit_device
        Where the outputs are wanted; None prices no exit.
    narrower
        Whether kernels may compute in a dtype narrower than the node's own.
    allow_cost_placement
        Whether a node may leave its decision device because it is cheaper elsewhere.
    require_transfer_pricing
        Refuse to plan without an estimator.
    reuse_plan
        Nodes that this plan covers are not planned again.
    engine, crossover
        Where the candidates are ranked and retained, as `fuel_gpu.arrays.engine.choose_engine`
        takes them.
    largest_step_bytes
        A node whose own inputs, outputs and weights exceed this has no candidate there.
    """

    devices: tuple[Device, ...]
    rates: Mapping[Device, Mapping[str, DeviceRates]] = field(default_factory=dict)
    pinned_device: Device | None = None
    input_residency: Mapping[NodeId, Device] = field(default_factory=dict)
    estimator: TransferEstimator | None = None
    judge: Judge | None = None
    filters: tuple[Filter, ...] = ()
    keep: int = KEEP_PER_DEVICE
    exit_device: Device | None = None
    narrower: bool = False
    allow_cost_placement: bool = True
    require_transfer_pricing: bool = False
    reuse_plan: "ExecutionPlan | None" = None
    engine: EngineName | Engine | None = None
    crossover: int | None = None
    largest_step_bytes: Mapping[Device, int] = field(default_factory=dict)
