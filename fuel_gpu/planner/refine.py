"""Local search on a finished placement: move single steps while that lowers the predicted time."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from fuel_gpu.device import Device
from fuel_gpu.planner.pricing import Transfer, destinations, residency
from fuel_gpu.planner.problem import Problem


def refine(
    problem: Problem,
    placement: Sequence[int],
    transfer: Transfer,
    pins: Mapping[int, int],
    *,
    cold: bool = False,
    admits: Callable[[Sequence[int]], bool] | None = None,
) -> list[int]:
    """Move one step at a time to the device where the whole takes least, until no move helps.

    A move is priced by what it changes: the step's own time and the copies of the values that it
    reads and writes. After a move the steps that share those values are looked at again. The
    DP prices only the first reader of a value; this prices all of them.

    Parameters
    ----------
    placement
        Where to start; not changed.
    pins
        Steps that stay.
    cold
        Whether the weights' upload counts.
    admits
        Asked of each placement that would be better; False keeps the step where it is.

    Returns
    -------
    list of int
        A placement that takes no longer than the one given.
    """
    current = list(placement)
    memo: dict[tuple[Device, Device, int], int] = {}

    def crossing_ns(src: Device, dst: Device, size: int) -> int:
        key = (src, dst, size)
        if key not in memo:
            memo[key] = transfer(src, dst, size)
        return memo[key]

    def around_ns(step: int) -> int:
        """The step's own time and the copies of all that it touches."""
        time_ns = problem.time_ns[step][current[step]]
        assert time_ns is not None
        for v in {*problem.reads[step], *problem.writes[step]}:
            value = problem.values[v]
            if value.bytes == 0 or (value.is_weight and not cold):
                continue
            src = residency(problem, current, value)
            for dst in destinations(problem, current, value):
                if dst != src:
                    time_ns += crossing_ns(src, dst, value.bytes)
        return time_ns

    waiting = deque(step for step in range(len(current)) if step not in pins)
    queued = set(waiting)
    while waiting:
        step = waiting.popleft()
        queued.discard(step)
        here, least_ns = current[step], around_ns(step)
        best = here
        for device, time_ns in enumerate(problem.time_ns[step]):
            if device == here or time_ns is None:
                continue
            current[step] = device
            ns = around_ns(step)
            if ns < least_ns and (admits is None or admits(current)):
                best, least_ns = device, ns
        current[step] = best
        if best != here:
            for neighbour in _sharing(problem, step):
                if neighbour not in queued and neighbour not in pins:
                    waiting.append(neighbour)
                    queued.add(neighbour)
    return current


def _sharing(problem: Problem, step: int) -> set[int]:
    """Steps that read or write a value that this one touches."""
    steps: set[int] = set()
    for v in (*problem.reads[step], *problem.writes[step]):
        value = problem.values[v]
        if not value.is_weight:
            steps.update(value.readers)
            if value.producer is not None:
                steps.add(value.producer)
    return steps
