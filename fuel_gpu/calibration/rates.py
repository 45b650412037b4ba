"""The rates to plan with: a device's measured ones, and priors where none were obtained."""

from dataclasses import dataclass
from typing import Final

from fuel_gpu.calibration.table import Provenance, Table
from fuel_gpu.device import Device


@dataclass(frozen=True, slots=True)
class Rates:
    """How fast a device computes and streams in one dtype.

    Parameters
    ----------
    flops_per_ns, bytes_per_ns
        FLOP and bytes (read plus written) a nanosecond; finite and positive.
    launch_ns
        What starting a kernel costs, nanoseconds.
    provenance
        The weakest of the three numbers' provenances.
    """

    flops_per_ns: float
    bytes_per_ns: float
    launch_ns: int
    provenance: Provenance


CPU_PRIOR: Final = Rates(1.0, 4.0, 1_000, "fallback")
GPU_PRIOR: Final = Rates(30.0, 40.0, 10_000, "fallback")
"""What to assume of a CPU, and of anything else, about which nothing is known."""


def prior_rates(device: Device) -> Rates:
    """Rates to assume of a device about which nothing is known."""
    return CPU_PRIOR if device.is_host else GPU_PRIOR


def device_rates(table: Table, device: Device) -> dict[str, Rates]:
    """Rates of a device by compute dtype; float32 is always among them.

    A number that the table lacks is the device's prior, and its dtype's provenance `fallback`.
    """
    prior = prior_rates(device)
    rates = {"float32": prior}
    for rate in table.rates:
        if Device.parse(rate.device) != device:
            continue
        incomplete = rate.flops_per_ns is None or rate.bytes_per_ns is None
        rates[rate.dtype] = Rates(
            prior.flops_per_ns if rate.flops_per_ns is None else rate.flops_per_ns,
            prior.bytes_per_ns if rate.bytes_per_ns is None else rate.bytes_per_ns,
            rate.launch_ns,
            "fallback" if incomplete else rate.provenance,
        )
    return rates


def rated_devices(table: Table) -> tuple[Device, ...]:
    """List the devices to plan on: those with rates, in the table's order, and no simulator."""
    rated = {Device.parse(rate.device) for rate in table.rates}
    return tuple(d.device for d in table.devices if not d.simulated and d.device in rated)
