"""One measured quantity, what its samples say over all sittings, and the rates made of such."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from fuel_gpu.calibration.sampling import Summary, summarize_sittings
from fuel_gpu.calibration.table import Conditions, NodeStream, Rate


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured quantity: its samples by sitting, what they say, by which kernel, and how."""

    sittings: tuple[tuple[float, ...], ...]
    summary: Summary
    kernel: str
    conditions: Conditions | None

    @property
    def samples(self) -> tuple[float, ...]:
        """Of all sittings, in the order in which they were taken."""
        return tuple(itertools.chain(*self.sittings))

    @property
    def flags(self) -> tuple[str, ...]:
        """What the samples show, and ``throttled`` where the device's counters do."""
        return (*self.summary.flags, *throttled_flag(self.conditions))


def figure(
    sittings: Sequence[Sequence[float]],
    *,
    width: float,
    kernel: str = "",
    conditions: Conditions | None = None,
) -> Figure:
    """Make a figure of the samples of one or more sittings.

    Parameters
    ----------
    width
        Half the interval's width relative to the median that counts as settled.
    """
    summary = summarize_sittings(sittings, width=width)
    return Figure(tuple(map(tuple, sittings)), summary, kernel, conditions)


def throttled_flag(conditions: Conditions | None) -> tuple[str, ...]:
    """Give the flag of a figure whose device held back its clocks."""
    return ("throttled",) if conditions is not None and conditions.throttled else ()


def joint_conditions(several: Iterable[Conditions | None]) -> Conditions | None:
    """Give what was seen under any of several conditions: the best link, the clocks' range."""
    seen = [one for one in several if one is not None]
    if not seen:
        return None
    links = [(one.link_generation, one.link_width) for one in seen]
    generation, width = max(links, key=lambda link: (link[0] or 0, link[1] or 0))
    return Conditions(
        link_generation=generation,
        link_width=width,
        sm_clock_mhz=_range(one.sm_clock_mhz for one in seen),
        memory_clock_mhz=_range(one.memory_clock_mhz for one in seen),
        throttled=tuple(dict.fromkeys(why for one in seen for why in one.throttled)),
    )


def _range(ranges: Iterable[tuple[int, int] | None]) -> tuple[int, int] | None:
    known = [one for one in ranges if one is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def rate_of(
    device: str, dtype: str, launch: Figure, flops: Figure | None, moved: Figure | None
) -> Rate:
    """Make a measured rate of its figures."""
    flags = [f"launch: {flag}" for flag in launch.flags]
    flags += [f"flops: {flag}" for flag in flops.flags] if flops else []
    flags += [f"bytes: {flag}" for flag in moved.flags] if moved else []
    return Rate(
        device=device,
        dtype=dtype,
        flops_per_ns=flops.summary.value if flops else None,
        bytes_per_ns=moved.summary.value if moved else None,
        launch_ns=round(launch.summary.value),
        provenance="measured",
        flops_samples=flops.samples if flops else (),
        bytes_samples=moved.samples if moved else (),
        launch_samples=tuple(round(ns) for ns in launch.samples),
        flops_interval=flops.summary.interval if flops else None,
        bytes_interval=moved.summary.interval if moved else None,
        launch_interval=(round(launch.summary.interval[0]), round(launch.summary.interval[1])),
        flops_kernel=flops.kernel if flops else "",
        bytes_kernel=moved.kernel if moved else "",
        flags=tuple(flags),
        flops_conditions=flops.conditions if flops else None,
        bytes_conditions=moved.conditions if moved else None,
        launch_conditions=launch.conditions,
        measured=now(),
    )


def node_stream(node: int, cpus: str, moved: Figure) -> NodeStream:
    """Make a node's streaming rate of its figure."""
    return NodeStream(
        node=node,
        cpus=cpus,
        bytes_per_ns=moved.summary.value,
        samples=moved.samples,
        interval=moved.summary.interval,
        flags=moved.flags,
    )


def now() -> str:
    """When a figure was measured: an ISO 8601 time."""
    return datetime.now(UTC).isoformat(timespec="seconds")
