"""One (kernel, device, backend, precision, cost) that could run a node, and its roofline time."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fuel_gpu.arrays.placement_steps import plus
from fuel_gpu.calibration import rates as calibrated
from fuel_gpu.device import Device
from fuel_gpu.kernels.precision import (
    PRIMITIVE_DETERMINISTIC_CPU,
    REFERENCE,
    UNAUDITED,
    CostEstimate,
    PrecisionGuarantee,
)
from fuel_gpu.numbers import U64_MAX, floor_divide_by_rate, saturate, saturating_add

__all__ = [
    "CPU_PRIOR",
    "GPU_PRIOR",
    "PRIMITIVE_DETERMINISTIC_CPU",
    "REFERENCE",
    "UNAUDITED",
    "Candidate",
    "CostEstimate",
    "PrecisionGuarantee",
    "Rates",
    "composite_ns",
    "composite_ns_arrays",
    "prior_rates",
    "usable_rates",
]


@dataclass(frozen=True, slots=True)
class Rates:
    """How fast a device computes and moves its memory.

    Parameters
    ----------
    flops_per_ns
        Floating-point operations in a nanosecond (GFLOP/s).
    bytes_per_ns
        Bytes read or written in a nanosecond (GB/s).
    """

    flops_per_ns: float
    bytes_per_ns: float


CPU_PRIOR: Final = Rates(calibrated.CPU_PRIOR.flops_per_ns, calibrated.CPU_PRIOR.bytes_per_ns)
GPU_PRIOR: Final = Rates(calibrated.GPU_PRIOR.flops_per_ns, calibrated.GPU_PRIOR.bytes_per_ns)


def prior_rates(backend: str) -> Rates:
    """Give the rates assumed for a backend whose device nobody measured."""
    return CPU_PRIOR if backend == "cpu" else GPU_PRIOR


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel on a device that could run a node.

    Parameters
    ----------
    device
        Where the result will lie.
    backend
        How the kernel is driven; two backends can share a device.
    static_cost
        What the kernel costs by counting, or overhead alone once it was measured.
    precision
        What the kernel promises about its result.
    inbound_transfer_ns
        Nanoseconds until the inputs have arrived at the device.
    kernel_source
        Names the kernel among the backend's; the judge's key.
    rates
        The device's measured rates; None stands for the backend's priors.
    strided_input
        Whether the kernel reads strided inputs in place, without a contiguous copy.
    """

    device: Device
    backend: str
    static_cost: CostEstimate
    precision: PrecisionGuarantee
    inbound_transfer_ns: int = 0
    kernel_source: str = ""
    rates: Rates | None = None
    strided_input: bool = False

    @property
    def composite_ns(self) -> int:
        """The kernel's roofline time, without the transfer, in nanoseconds."""
        rates = self.rates or prior_rates(self.backend)
        return composite_ns(self.static_cost, rates.flops_per_ns, rates.bytes_per_ns)

    @property
    def time_ns(self) -> int:
        """Roofline time and inbound transfer in series, in nanoseconds, saturating."""
        return saturating_add(self.composite_ns, saturate(self.inbound_transfer_ns))


def usable_rates(flops_per_ns: float, bytes_per_ns: float) -> Rates:
    """Replace a rate that is not finite or not positive by the CPU's prior."""
    return Rates(
        _usable(flops_per_ns, CPU_PRIOR.flops_per_ns),
        _usable(bytes_per_ns, CPU_PRIOR.bytes_per_ns),
    )


def composite_ns(cost: CostEstimate, flops_per_ns: float, bytes_per_ns: float) -> int:
    """Roofline time of a kernel: the slower of compute and memory, plus the launch.

    ``max(flops // flops_per_ns, bytes // bytes_per_ns) + kernel_overhead_ns``, each division
    floored on its own in float64, all saturating at 2**64 - 1.

    Parameters
    ----------
    cost
        What the kernel does.
    flops_per_ns, bytes_per_ns
        The device's rates; one that is not finite or not positive counts as the CPU's prior.
    """
    compute = floor_divide_by_rate(
        saturate(cost.flops), _usable(flops_per_ns, CPU_PRIOR.flops_per_ns)
    )
    memory = floor_divide_by_rate(
        saturate(cost.bytes_moved), _usable(bytes_per_ns, CPU_PRIOR.bytes_per_ns)
    )
    return saturating_add(max(compute, memory), saturate(cost.kernel_overhead_ns))


def composite_ns_arrays(
    flops: Any,
    bytes_moved: Any,
    kernel_overhead_ns: Any,
    flops_per_ns: Any,
    bytes_per_ns: Any,
    *,
    xp: Any,
) -> Any:
    """Roofline times of many kernels, equal to `composite_ns` of each to the last bit.

    Parameters
    ----------
    flops, bytes_moved, kernel_overhead_ns
        uint64 arrays, one element a kernel.
    flops_per_ns, bytes_per_ns
        float64 arrays that broadcast against them.
    xp
        NumPy or CuPy, whichever made the arrays.

    Returns
    -------
    uint64 array
        Nanoseconds, saturating at 2**64 - 1.
    """
    compute = _floor_divide_by_rate(flops, flops_per_ns, CPU_PRIOR.flops_per_ns, xp)
    memory = _floor_divide_by_rate(bytes_moved, bytes_per_ns, CPU_PRIOR.bytes_per_ns, xp)
    work = xp.maximum(compute, memory)
    return plus(xp, work, kernel_overhead_ns)


def _usable(rate: float, prior: float) -> float:
    return rate if math.isfinite(rate) and rate > 0.0 else prior


def _floor_divide_by_rate(amount: Any, rate: Any, prior: float, xp: Any) -> Any:
    usable = xp.where(xp.isfinite(rate) & (rate > 0.0), rate, prior)
    with np.errstate(over="ignore"):  # infinity is what saturation starts from
        quotient = xp.floor(amount.astype(xp.float64) / usable)
    too_large = quotient >= 2.0**64
    floored = xp.where(too_large, 0.0, quotient).astype(xp.uint64)
    return xp.where(too_large, xp.uint64(U64_MAX), floored)
