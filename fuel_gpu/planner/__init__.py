"""The planner: candidates, retained, placed, plan."""

from fuel_gpu.calibration.transfers import TableTransfers
from fuel_gpu.device import Device
from fuel_gpu.kernels.precision import (
    PRIMITIVE_DETERMINISTIC_CPU,
    REFERENCE,
    UNAUDITED,
    CostEstimate,
    PrecisionGuarantee,
)
from fuel_gpu.planner.alternative_set import KEEP_PER_DEVICE, AlternativeSet, DecisionContext
from fuel_gpu.planner.candidate import Candidate
from fuel_gpu.planner.candidate_table import CandidateTable, Retained, rank_and_retain
from fuel_gpu.planner.compile import compile_plan
from fuel_gpu.planner.cost_vector import CostVector
from fuel_gpu.planner.crowding import crowding_cap
from fuel_gpu.planner.execution_plan import ExecutionPlan
from fuel_gpu.planner.filters import (
    Filter,
    apply_filter_chain,
    precision_floor,
    prefer_bit_stable,
    prefer_strided_input,
)
from fuel_gpu.planner.frontier import pareto_mask
from fuel_gpu.planner.frontier_convergence import FrontierConvergenceOptimizer
from fuel_gpu.planner.judge import Judge
from fuel_gpu.planner.optimize import optimize_graph
from fuel_gpu.planner.options import PlanOptions
from fuel_gpu.planner.pass_registry import PassRegistry
from fuel_gpu.planner.passes import OptimizationContext, Optimizer, Pathfinder
from fuel_gpu.planner.placement_batch import place_batch
from fuel_gpu.planner.placement_dp import ChainInput, PlacementDP
from fuel_gpu.planner.placement_fork import PlacementForkPathfinder
from fuel_gpu.planner.placement_problem import PlacementProblem
from fuel_gpu.planner.plan import Plan, plan
from fuel_gpu.planner.route_picking import DeviceTelemetry, RoutePicker, pick_arms
from fuel_gpu.planner.scenarios import ScenarioPlans, plan_scenarios
from fuel_gpu.planner.transfer import TransferEstimator

__all__ = [
    "KEEP_PER_DEVICE",
    "PRIMITIVE_DETERMINISTIC_CPU",
    "REFERENCE",
    "UNAUDITED",
    "AlternativeSet",
    "Candidate",
    "CandidateTable",
    "ChainInput",
    "CostEstimate",
    "CostVector",
    "DecisionContext",
    "Device",
    "DeviceTelemetry",
    "ExecutionPlan",
    "Filter",
    "FrontierConvergenceOptimizer",
    "Judge",
    "OptimizationContext",
    "Optimizer",
    "PassRegistry",
    "Pathfinder",
    "PlacementDP",
    "PlacementForkPathfinder",
    "PlacementProblem",
    "Plan",
    "PlanOptions",
    "PrecisionGuarantee",
    "Retained",
    "RoutePicker",
    "ScenarioPlans",
    "TableTransfers",
    "TransferEstimator",
    "apply_filter_chain",
    "compile_plan",
    "crowding_cap",
    "optimize_graph",
    "pareto_mask",
    "pick_arms",
    "place_batch",
    "plan",
    "plan_scenarios",
    "precision_floor",
    "prefer_bit_stable",
    "prefer_strided_input",
    "rank_and_retain",
]
