"""The choice between finished placements: the DP's, the baselines', or one that fits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fuel_gpu.planner.baselines import all_on, greedy
from fuel_gpu.planner.fit import (
    Pool,
    excesses,
    fitting_placement,
    oversized_step,
    step_bytes,
)
from fuel_gpu.planner.min_cut import best_by_cuts
from fuel_gpu.planner.pricing import Transfer, total_ns
from fuel_gpu.planner.problem import Problem


@dataclass(frozen=True, slots=True)
class Baseline:
    """A placement that a person would think of, and its price.

    Parameters
    ----------
    name
        A device, for everything on it, or ``greedy``.
    total_ns
        Its predicted time; None where it cannot run.
    reason
        Why it cannot run.
    """

    name: str
    total_ns: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """The placement that was chosen.

    Parameters
    ----------
    name
        Where it comes from: ``placement-dp``, a baseline's name, ``min-cut`` (the best of those,
        its steps divided anew between two devices at a time), or ``fitted`` (to the memory).
    placement
        A device's position for each step; None if nothing fits.
    total_ns
        Its predicted time.
    fastest
        The fastest placement that was found, whether it fits or not.
    baselines
        What the baselines would take.
    lower_bound_ns
        With two devices a time that no placement falls below; None with more.
    """

    name: str
    placement: tuple[int, ...] | None
    total_ns: int
    fastest: tuple[int, ...]
    baselines: tuple[Baseline, ...]
    lower_bound_ns: int | None


def choose(
    problem: Problem,
    dp: Sequence[int],
    pins: Mapping[int, int],
    transfer: Transfer,
    pools: Sequence[Pool],
    *,
    cold: bool = False,
) -> Choice:
    """Price the DP's placement and the baselines with every edge, and take the best that fits.

    The best one is then improved by minimum cuts: over two devices nothing faster exists. Where
    that exceeds a device's memory, work is moved until it fits.

    Parameters
    ----------
    dp
        The DP's placement.
    pins
        Steps that must run on a device; the baselines keep them.
    """
    proposals: dict[str, Sequence[int] | None] = {"placement-dp": dp}
    for k, device in enumerate(problem.devices):
        proposals[str(device)] = all_on(problem, k, pins)
    proposals["greedy"] = greedy(problem, transfer, pins)
    fitting: list[tuple[int, str, Sequence[int]]] = []
    fastest: tuple[int, Sequence[int]] | None = None
    baselines: list[Baseline] = []
    for name, placement in proposals.items():
        ns = None if placement is None else total_ns(problem, placement, transfer, cold=cold)
        reason = ""
        if placement is None or ns is None:
            reason = _cannot_run(problem, name, pools)
        else:
            if fastest is None or ns < fastest[0]:
                fastest = (ns, placement)
            over = excesses(problem, placement, pools)
            if over:
                reason = f"needs {over[0].bytes:,} bytes more than {over[0].pool.name} has"
            else:
                fitting.append((ns, name, placement))
        if name != "placement-dp":
            baselines.append(Baseline(name, None if reason else ns, reason))
    assert fastest is not None, "the DP's own placement always has a price"

    def price(name: str, placement: Sequence[int] | None) -> None:
        if placement is not None and not excesses(problem, placement, pools):
            ns = total_ns(problem, placement, transfer, cold=cold)
            if ns is not None:
                fitting.append((ns, name, placement))

    cut, bound_ns = best_by_cuts(problem, fastest[1], transfer, pins, cold=cold)
    price("min-cut", cut)
    hopeless = oversized_step(problem, pools, pins) is not None
    if not hopeless and (not fitting or fitting[-1][1] != "min-cut"):
        price("fitted", fitting_placement(problem, cut, pools, transfer, pins, cold=cold))
    if not fitting:
        return Choice("", None, 0, tuple(cut), tuple(baselines), bound_ns)
    ns, name, placement = min(fitting, key=lambda each: each[0])
    return Choice(name, tuple(placement), ns, tuple(cut), tuple(baselines), bound_ns)


def _cannot_run(problem: Problem, name: str, pools: Sequence[Pool]) -> str:
    """Say why everything on one device cannot run: nodes without a kernel, or too large for it."""
    column = next((k for k, device in enumerate(problem.devices) if str(device) == name), None)
    if column is None:
        return "a node can run on none of the devices"
    limits = [pool.limit_bytes for pool in pools if problem.devices[column] in pool.devices]
    stuck = [step for step, times in enumerate(problem.time_ns) if times[column] is None]
    large = sum(step_bytes(problem, s) > min(limits, default=1 << 64) for s in stuck)
    reasons = []
    if large:
        reasons.append(f"{large} of the nodes alone exceed its memory")
    if len(stuck) > large:
        reasons.append(f"{len(stuck) - large} of the nodes lack a kernel there")
    return " and ".join(reasons)
