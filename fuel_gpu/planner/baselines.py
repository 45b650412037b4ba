"""The placements that a person would think of: all on one device, and greedy node by node."""

from collections.abc import Mapping

from fuel_gpu.device import Device
from fuel_gpu.planner.pricing import Transfer
from fuel_gpu.planner.problem import Problem


def all_on(problem: Problem, device: int, pins: Mapping[int, int]) -> list[int] | None:
    """Put every step on one device, but for the pinned ones; None where it cannot run them."""
    placement = [pins.get(step, device) for step in range(len(problem.nodes))]
    runnable = all(problem.time_ns[s][d] is not None for s, d in enumerate(placement))
    return placement if runnable else None


def greedy(problem: Problem, transfer: Transfer, pins: Mapping[int, int]) -> list[int] | None:
    """Place the steps in order, each where its own time and the copies it causes are least.

    What later steps need is not looked at: this is how runtimes place today. Ties go to the
    device listed first.
    """
    placement: list[int] = []
    present: dict[int, set[Device]] = {}
    for step, times in enumerate(problem.time_ns):
        choices = [pins[step]] if step in pins else range(len(problem.devices))
        best: tuple[int, int] | None = None
        for d in choices:
            time_ns = times[d]
            if time_ns is None:
                continue
            device = problem.devices[d]
            for v in problem.reads[step]:
                value = problem.values[v]
                if not value.is_weight and value.bytes and device not in present.get(v, ()):
                    home = (
                        problem.entry
                        if value.producer is None
                        else problem.devices[placement[value.producer]]
                    )
                    if home != device:
                        time_ns += transfer(home, device, value.bytes)
            if best is None or time_ns < best[0]:
                best = (time_ns, d)
        if best is None:
            return None
        placement.append(best[1])
        for v in problem.reads[step]:
            present.setdefault(v, set()).add(problem.devices[best[1]])
    return placement
