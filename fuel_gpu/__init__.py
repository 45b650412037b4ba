"""fuel-gpu places each operation of a compute graph from numbers measured on this machine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fuel_gpu.device import Device
from fuel_gpu.errors import (
    CalibrationError,
    FuelGpuError,
    InvalidBranchError,
    ModelError,
    PlanError,
    TableError,
    UsageError,
)

if TYPE_CHECKING:
    from fuel_gpu.calibration.calibrate import calibrate
    from fuel_gpu.calibration.table_file import load_table, save_table
    from fuel_gpu.graph.onnx_reader import load_onnx
    from fuel_gpu.planner.plan import plan
    from fuel_gpu.planner.scenarios import plan_scenarios
    from fuel_gpu.probes.machine import probe

__all__ = [
    "CalibrationError",
    "Device",
    "FuelGpuError",
    "InvalidBranchError",
    "ModelError",
    "PlanError",
    "TableError",
    "UsageError",
    "calibrate",
    "load_onnx",
    "load_table",
    "plan",
    "plan_scenarios",
    "probe",
    "save_table",
]

# Found on first use: the children that probe a driver import this package too, and need none of it.
_FOUND_IN = {
    "calibrate": "fuel_gpu.calibration.calibrate",
    "load_onnx": "fuel_gpu.graph.onnx_reader",
    "load_table": "fuel_gpu.calibration.table_file",
    "plan": "fuel_gpu.planner.plan",
    "plan_scenarios": "fuel_gpu.planner.scenarios",
    "probe": "fuel_gpu.probes.machine",
    "save_table": "fuel_gpu.calibration.table_file",
}


def __getattr__(name: str) -> Any:
    if name not in _FOUND_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_FOUND_IN[name]), name)
