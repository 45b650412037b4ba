"""The calibration table's data: devices, transfer curves, rates, raw samples and provenance.

Format history
--------------
1   first format: devices, transfers, rates, notes; `duplex` (copies both ways at once), and the
    `conditions` (link, clocks, throttling) under which a figure was measured, and the streaming
    rate of each NUMA node (`nodes`)
"""

from typing import Final, Literal, get_args

import msgspec

from fuel_gpu.probes.report import DeviceInfo

FORMAT_VERSION = 1

INCOMPLETE: Final = "incomplete"
"""Begins what says that measuring was stopped: a rate's flag, a transfer's or the table's note."""

Provenance = Literal["measured", "shared", "datasheet", "fallback"]
"""How a number was obtained; `shared`: measured on a device with the same equivalence key."""


def weakest(*provenances: Provenance) -> Provenance:
    """Give the provenance of a figure made of several: the one furthest from a measurement."""
    return max(provenances, key=get_args(Provenance).index)


class Machine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The machine that the numbers belong to."""

    fingerprint: str
    system: str = ""
    cpu: str = ""
    python: str = ""


class Conditions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a device's own counters said while something was measured; None for what none tells.

    Parameters
    ----------
    link_generation, link_width
        Of the device's PCI Express link under that load: the best that was seen. What it is at
        idle, the probe's reading in the device's `details` says.
    sm_clock_mhz, memory_clock_mhz
        Lowest and highest clock that was seen.
    throttled
        Why the device held back its clocks, in words; empty if it did not.
    """

    link_generation: int | None = None
    link_width: int | None = None
    sm_clock_mhz: tuple[int, int] | None = None
    memory_clock_mhz: tuple[int, int] | None = None
    throttled: tuple[str, ...] = ()


class Point(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Copies of one size: their time, its confidence interval and every sample, in nanoseconds.

    The time is the samples' trimmed mean, the interval the sittings': see `summarize_sittings`.

    `flags` names what the samples show: ``drift``, ``bimodal``, ``unsettled``.
    """

    bytes: int
    ns: int
    samples: tuple[int, ...] = ()
    interval: tuple[int, int] | None = None
    flags: tuple[str, ...] = ()


class Curve(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A monotone cost curve over size.

    Straight lines join the knots (bytes, ns); below the first knot its time holds; past the last
    one each byte costs ``1 / tail_bytes_per_ns``. `median_error` and `worst_error` are relative:
    each inner point predicted by a fit without it (None where nothing was measured).
    """

    knot_bytes: tuple[int, ...]
    knot_ns: tuple[int, ...]
    tail_bytes_per_ns: float
    median_error: float | None = None
    worst_error: float | None = None


class Transfer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Copies from one device to another.

    Parameters
    ----------
    memory
        Host memory that the copy used: ``pageable``, ``pinned``, ``mapped`` or ``shared``; between
        two cards ``peer`` (directly) or ``staged`` (by the driver, through the host). What is
        mapped: by OpenCL the device's buffer itself, so that writing and reading it count; by
        Vulkan a staging buffer, from which the bytes are then copied.
    size_bound_bytes
        The largest copy that was allowed on the device (a share of its memory, or its largest
        allocation); None where nothing was measured.
    measured
        When, as an ISO 8601 time; empty where nothing was measured.
    conditions
        Of the copies both ways, in which they were measured together.
    """

    src: str
    dst: str
    memory: str = "pageable"
    points: tuple[Point, ...]
    curve: Curve
    provenance: Provenance
    size_bound_bytes: int | None = None
    measured: str = ""
    notes: str = ""
    conditions: Conditions | None = None


class Duplex(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Copies from one device to another and back at the same time.

    Parameters
    ----------
    ends
        Ids of the two devices.
    memory
        As a `Transfer` has it.
    bytes
        Size of the copy in each direction.
    bytes_per_ns
        Bytes of both directions together over the time until both are done.
    samples, interval
        One figure a run, and the figure's 95 % confidence interval.
    copy_engines
        How many copies the device says that it does beside its kernels; with one, copies take
        turns.
    """

    ends: tuple[str, str]
    memory: str
    bytes: int
    bytes_per_ns: float
    provenance: Provenance
    samples: tuple[float, ...] = ()
    interval: tuple[float, float] | None = None
    flags: tuple[str, ...] = ()
    copy_engines: int | None = None
    measured: str = ""
    conditions: Conditions | None = None


class NodeStream(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Streaming through the memory of one NUMA node, by the processors beside it.

    Parameters
    ----------
    node
        Its number.
    cpus
        The processors, as the kernel writes a set of them (``0-3,8``).
    bytes_per_ns
        Bytes read plus written.
    """

    node: int
    cpus: str
    bytes_per_ns: float
    samples: tuple[float, ...] = ()
    interval: tuple[float, float] | None = None
    flags: tuple[str, ...] = ()


class Rate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one device does with one compute dtype; None where it was not obtained.

    Parameters
    ----------
    flops_per_ns
        A matrix product's rate, a multiply-accumulate counted as two.
    bytes_per_ns
        Streaming through the device's memory, bytes read plus bytes written.
    launch_ns
        What starting a kernel costs before it does any work.
    flops_samples, bytes_samples, launch_samples
        One figure a run, in the order in which they were taken.
    flops_interval, bytes_interval, launch_interval
        95 % confidence interval of the figure.
    flops_kernel, bytes_kernel
        Which variant of the kernel did best, by which clock where there are two, at what size.
    flags
        What the samples and the conditions show, such as ``flops: drift`` or ``bytes: throttled``.
    flops_conditions, bytes_conditions, launch_conditions
        Under which each was measured.
    nodes
        The processor's streaming in each of its NUMA nodes by itself, where there are several;
        with the first dtype only, since memory does not care.
    """

    device: str
    dtype: str
    flops_per_ns: float | None
    bytes_per_ns: float | None
    launch_ns: int
    provenance: Provenance
    flops_samples: tuple[float, ...] = ()
    bytes_samples: tuple[float, ...] = ()
    launch_samples: tuple[int, ...] = ()
    flops_interval: tuple[float, float] | None = None
    bytes_interval: tuple[float, float] | None = None
    launch_interval: tuple[int, int] | None = None
    flops_kernel: str = ""
    bytes_kernel: str = ""
    flags: tuple[str, ...] = ()
    flops_conditions: Conditions | None = None
    bytes_conditions: Conditions | None = None
    launch_conditions: Conditions | None = None
    nodes: tuple[NodeStream, ...] = ()
    measured: str = ""
    notes: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine's calibration table."""

    version: int
    machine: Machine
    created: str
    devices: tuple[DeviceInfo, ...]
    transfers: tuple[Transfer, ...]
    rates: tuple[Rate, ...]
    duplex: tuple[Duplex, ...] = ()
    notes: tuple[str, ...] = ()
    engine_crossover: int | None = None
