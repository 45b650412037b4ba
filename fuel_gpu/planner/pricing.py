"""The predicted time of a finished placement: every step, and every copy once per destination."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fuel_gpu.device import HOST, Device
from fuel_gpu.numbers import saturating_add
from fuel_gpu.planner.problem import Problem, Value

Placement = Sequence[int]
"""A device's position for each step."""

Transfer = Callable[[Device, Device, int], int]
"""``(src, dst, bytes)`` to nanoseconds."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A value that crosses from one device to another, once, however many steps there read it.

    Parameters
    ----------
    value
        Position in the problem's values.
    step
        The first step on the destination that reads it; the number of steps where only the
        caller does, after the last of them.
    """

    value: int
    src: Device
    dst: Device
    bytes: int
    ns: int
    step: int


def residency(problem: Problem, placement: Placement, value: Value) -> Device:
    """Where the value is first: its producer's device, else where the inputs lie."""
    if value.producer is None:
        return HOST if value.is_weight else problem.entry
    return problem.devices[placement[value.producer]]


def destinations(problem: Problem, placement: Placement, value: Value) -> dict[Device, int]:
    """The devices on which the value is wanted, each with the first step that wants it there."""
    wanted: dict[Device, int] = {}
    for step in value.readers:
        wanted.setdefault(problem.devices[placement[step]], step)
    if value.is_output:
        wanted.setdefault(problem.exit, len(problem.nodes))
    return wanted


def copies(
    problem: Problem, placement: Placement, transfer: Transfer, *, cold: bool = False
) -> Iterator[Copy]:
    """List the copies that the placement needs, in the order of the values.

    Parameters
    ----------
    transfer
        Prices a copy.
    cold
        Also upload the weights from the host; otherwise they lie where they are used already.
    """
    for position, value in enumerate(problem.values):
        if value.bytes == 0 or (value.is_weight and not cold):
            continue
        src = residency(problem, placement, value)
        for dst, step in destinations(problem, placement, value).items():
            if dst != src:
                ns = transfer(src, dst, value.bytes)
                yield Copy(position, src, dst, value.bytes, ns, step)


def total_ns(
    problem: Problem, placement: Placement, transfer: Transfer, *, cold: bool = False
) -> int | None:
    """Sum the steps' times and the copies, saturating; None where a step cannot run there."""
    total = 0
    for step, device in enumerate(placement):
        time_ns = problem.time_ns[step][device]
        if time_ns is None:
            return None
        total += time_ns
    total += sum(copy.ns for copy in copies(problem, placement, transfer, cold=cold))
    return saturating_add(total)
