"""Peak memory of a placement on each device: resident weights and live values, step by step."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.device import Device
from fuel_gpu.planner.pricing import Placement, destinations, residency
from fuel_gpu.planner.problem import Problem


@dataclass(frozen=True, slots=True)
class Span:
    """A value's bytes on one device from a first to a last step, both included."""

    value: int
    device: Device
    first: int
    last: int


def live_spans(problem: Problem, placement: Placement) -> list[Span]:
    """Say where and when each value takes memory.

    A value lives where it is made until its last reader there, and until its last copy elsewhere
    has left; a copy lives from the first reader on its device to the last; an output lives to
    the end; a weight lives on every device that uses it throughout.
    """
    end = max(len(problem.nodes) - 1, 0)
    spans: list[Span] = []
    for position, value in enumerate(problem.values):
        wanted = destinations(problem, placement, value)
        if value.is_weight:
            spans.extend(Span(position, device, 0, end) for device in wanted)
            continue
        home = residency(problem, placement, value)
        first = value.producer or 0
        last_on: dict[Device, int] = {}
        for step in value.readers:
            last_on[problem.devices[placement[step]]] = step
        if value.is_output:
            last_on[problem.exit] = end
        departures = [min(step, end) for device, step in wanted.items() if device != home]
        last_home = max([first, last_on.get(home, first), *departures])
        spans.append(Span(position, home, first, last_home))
        spans.extend(
            Span(position, device, min(step, end), last_on[device])
            for device, step in wanted.items()
            if device != home
        )
    return spans


def usage_bytes(
    problem: Problem, placement: Placement, devices: tuple[Device, ...]
) -> NDArray[Any]:
    """Bytes in use at every step.

    Returns
    -------
    array of integers, shape (devices, steps)
        A step's inputs, its outputs, whatever else is alive, and the resident weights.
    """
    position = {device: k for k, device in enumerate(devices)}
    steps = max(len(problem.nodes), 1)
    whole = sum(value.bytes for value in problem.values) * len(devices)
    exact = np.int64 if whole < 2**63 else object  # Python's integers where 64 bits could overflow
    change = np.zeros((len(devices), steps + 1), exact)
    for span in live_spans(problem, placement):
        size = problem.values[span.value].bytes
        change[position[span.device], span.first] += size
        change[position[span.device], span.last + 1] -= size
    return np.cumsum(change, axis=1)[:, :steps]


def peak_bytes(
    problem: Problem, placement: Placement, devices: tuple[Device, ...]
) -> dict[Device, int]:
    """The largest number of bytes in use at once on each device."""
    usage = usage_bytes(problem, placement, devices)
    return {device: int(usage[k].max()) for k, device in enumerate(devices)}
