"""The long form of a table: every figure in a row of its own, with interval and provenance."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fuel_gpu.calibration.table import Duplex, NodeStream, Point, Provenance, Rate, Table, Transfer


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a table.

    Parameters
    ----------
    kind
        ``copy``, ``both ways`` (two copies at once), ``compute``, ``memory``, ``launch``, or
        ``memory of node 1`` for a NUMA node; ``latency`` and ``bandwidth`` of a copy that the
        table gives by these two and not by points.
    src, dst
        The devices of a copy; a rate's device and nothing.
    memory, bytes, dtype
        What a copy was of, or a rate is in; empty where that has no meaning.
    value, unit
        The figure.
    low, high
        Its 95 % confidence interval; None where nothing was measured.
    samples
        How many runs.
    flags
        What the samples show, separated by spaces.
    kernel
        Which kernel reached a rate, and at what size.
    measured
        When, as an ISO 8601 time; empty where nothing was measured.
    """

    kind: str
    src: str
    dst: str = ""
    memory: str = ""
    bytes: int | None = None
    dtype: str = ""
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    samples: int = 0
    provenance: Provenance
    flags: str = ""
    kernel: str = ""
    measured: str = ""


def figures(table: Table) -> Iterator[Figure]:
    """Every figure of a table: copies by pair and size, then rates by device and dtype."""
    for transfer in table.transfers:
        if transfer.points:
            yield from (_copy(transfer, point) for point in transfer.points)
        else:
            yield _line(transfer, "latency", transfer.curve.knot_ns[0], "ns")
            yield _line(transfer, "bandwidth", transfer.curve.tail_bytes_per_ns, "byte/ns")
    yield from map(_both_ways, table.duplex)
    for rate in table.rates:
        if rate.flops_per_ns is not None:
            yield _rate(
                *(rate, "compute", "flops", rate.flops_per_ns, "FLOP/ns"),
                *(rate.flops_interval, rate.flops_samples, rate.flops_kernel),
            )
        if rate.bytes_per_ns is not None:
            yield _rate(
                *(rate, "memory", "bytes", rate.bytes_per_ns, "byte/ns"),
                *(rate.bytes_interval, rate.bytes_samples, rate.bytes_kernel),
            )
        yield _rate(
            *(rate, "launch", "launch", rate.launch_ns, "ns"),
            *(rate.launch_interval, rate.launch_samples, ""),
        )
        yield from (_node(rate, stream) for stream in rate.nodes)


def _copy(transfer: Transfer, point: Point) -> Figure:
    low, high = point.interval or (None, None)
    return Figure(
        kind="copy",
        src=transfer.src,
        dst=transfer.dst,
        memory=transfer.memory,
        bytes=point.bytes,
        value=point.ns,
        unit="ns",
        low=low,
        high=high,
        samples=len(point.samples),
        provenance=transfer.provenance,
        flags=" ".join(point.flags),
        measured=transfer.measured,
    )


def _both_ways(duplex: Duplex) -> Figure:
    low, high = duplex.interval or (None, None)
    return Figure(
        kind="both ways",
        src=duplex.ends[0],
        dst=duplex.ends[1],
        memory=duplex.memory,
        value=duplex.bytes_per_ns,
        unit="byte/ns",
        low=low,
        high=high,
        samples=len(duplex.samples),
        provenance=duplex.provenance,
        flags=" ".join(duplex.flags),
        measured=duplex.measured,
    )


def _node(rate: Rate, stream: NodeStream) -> Figure:
    low, high = stream.interval or (None, None)
    return Figure(
        kind=f"memory of node {stream.node}",
        src=rate.device,
        dtype=rate.dtype,
        value=stream.bytes_per_ns,
        unit="byte/ns",
        low=low,
        high=high,
        samples=len(stream.samples),
        provenance=rate.provenance,
        flags=" ".join(stream.flags),
        kernel=f"processors {stream.cpus}",
        measured=rate.measured,
    )


def _line(transfer: Transfer, kind: str, value: float, unit: str) -> Figure:
    return Figure(
        kind=kind,
        src=transfer.src,
        dst=transfer.dst,
        memory=transfer.memory,
        value=value,
        unit=unit,
        provenance=transfer.provenance,
        measured=transfer.measured,
    )


def _rate(
    rate: Rate,
    kind: str,
    prefix: str,
    value: float,
    unit: str,
    interval: tuple[float, float] | None,
    samples: Sequence[float],
    kernel: str,
) -> Figure:
    low, high = interval or (None, None)
    flags = [f.removeprefix(f"{prefix}: ") for f in rate.flags if f.startswith(f"{prefix}: ")]
    return Figure(
        kind=kind,
        src=rate.device,
        dtype=rate.dtype,
        value=value,
        unit=unit,
        low=low,
        high=high,
        samples=len(samples),
        provenance=rate.provenance,
        flags=" ".join(flags),
        kernel=kernel,
        measured=rate.measured,
    )
