"""What is measured on a device, in which order, for how long: a stream of finished records."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

import msgspec
import psutil

from fuel_gpu.calibration.backends import (
    ConnectedDevice,
    DuplexDevice,
    NodedDevice,
    OpenDevice,
    begin_watching,
    conditions_of,
)
from fuel_gpu.calibration.copy_sweep import measure_copies, size_bound_bytes
from fuel_gpu.calibration.duplex import measure_duplex
from fuel_gpu.calibration.effort import Budget, Effort
from fuel_gpu.calibration.kernel_trials import (
    Figure,
    measure_launch,
    measure_product,
    measure_stream,
    one_line,
)
from fuel_gpu.calibration.neighbours import Neighbours
from fuel_gpu.calibration.node_streams import measure_node_streams
from fuel_gpu.calibration.records import CopyMeasured, Doing, Note, RateMeasured, Record
from fuel_gpu.calibration.table import NodeStream, Rate
from fuel_gpu.device import HOST
from fuel_gpu.probes.report import DeviceInfo

_LAUNCH_WEIGHT, _COPIES_WEIGHT, _PRODUCT_WEIGHT, _STREAM_WEIGHT = 0.3, 3.0, 1.5, 1.0
_OTHER_COPIES_WEIGHT: Final = 1.5
"""For kinds of host memory after the first, which plans are priced with."""

_DUPLEX_WEIGHT: Final = 0.5

_PEER_SHARE: Final = 4
"""A pair of devices gets this part of one device's time."""


def measure_device(info: DeviceInfo, device: OpenDevice, effort: Effort) -> Iterator[Record]:
    """Measure launch, copies and rates, and give each figure as soon as it is there.

    A figure that fails costs itself and a note; a dtype whose results are wrong is left out.
    """
    kinds = device.host_memory_kinds
    weights = [_OTHER_COPIES_WEIGHT if index else _COPIES_WEIGHT for index in range(len(kinds))]
    duplex_kinds = device.duplex_memory_kinds if isinstance(device, DuplexDevice) else ()
    weight = _LAUNCH_WEIGHT + sum(weights)
    weight += _DUPLEX_WEIGHT * len(duplex_kinds)
    weight += (_PRODUCT_WEIGHT + _STREAM_WEIGHT) * len(info.dtypes)
    weight += _STREAM_WEIGHT * (len(device.memory_nodes) if isinstance(device, NodedDevice) else 0)
    budget = Budget(effort.budget_s, weight)
    neighbours = Neighbours()
    available = psutil.virtual_memory().available
    bound_bytes = size_bound_bytes(info, available)

    launch: Figure | None = None
    yield Doing(what="launch overhead", spent=budget.spent())
    try:
        launch = measure_launch(device, effort, budget.deadline(_LAUNCH_WEIGHT))
    except Exception as error:
        yield Note(text=f"launch overhead: {one_line(error)}; without it no rates are kept")
    ends = (str(HOST), info.id)
    for memory, share in zip(kinds, weights, strict=True):
        begin_watching(device)
        try:
            yield from measure_copies(
                ends,
                partial(device.copies, memory=memory),
                effort.copy_sizes_bytes,
                bound_bytes,
                effort,
                budget,
                share,
                conditions=partial(conditions_of, device),
            )
        except Exception as error:
            yield Note(text=f"copies, {memory}: {one_line(error)}")
    if isinstance(device, DuplexDevice):
        for memory in duplex_kinds:
            yield Doing(what=f"copies both ways at once, {memory}", spent=budget.spent())
            make, deadline = (
                partial(device.both_ways, memory=memory),
                budget.deadline(_DUPLEX_WEIGHT),
            )
            try:
                yield from measure_duplex(device, ends, memory, make, bound_bytes, effort, deadline)
            except Exception as error:
                yield Note(text=f"copies both ways at once, {memory}: {one_line(error)}")
    if launch is not None:
        for dtype in info.dtypes:
            yield from _measure_dtype(info, device, dtype, launch, effort, budget)
    if complaint := neighbours.complaint():
        yield Note(text=complaint)


def measure_peer(
    info: DeviceInfo, device: ConnectedDevice, other: DeviceInfo, effort: Effort
) -> Iterator[Record]:
    """Measure copies between two devices of one backend, one way at a time and both at once."""
    available = psutil.virtual_memory().available
    bound_bytes = min(size_bound_bytes(info, available), size_bound_bytes(other, available))
    budget = Budget(effort.budget_s / _PEER_SHARE, _COPIES_WEIGHT + _DUPLEX_WEIGHT)
    ends, memory = (info.id, other.id), ""
    begin_watching(device)
    for record in measure_copies(
        ends,
        partial(device.peer_copies, other),
        effort.copy_sizes_bytes,
        bound_bytes,
        effort,
        budget,
        _COPIES_WEIGHT,
        conditions=partial(conditions_of, device),
    ):
        memory = record.memory if isinstance(record, CopyMeasured) else memory
        yield record
    if memory:
        what = f"copies both ways at once, {memory}"
        yield Doing(what=what, spent=budget.spent())
        make, deadline = partial(device.peer_both_ways, other), budget.deadline(_DUPLEX_WEIGHT)
        yield from measure_duplex(device, ends, memory, make, bound_bytes, effort, deadline)


def measure_sizes(
    info: DeviceInfo, device: OpenDevice, sizes_bytes: Sequence[int], effort: Effort
) -> Iterator[Record]:
    """Measure copies of some sizes and nothing else."""
    kinds = device.host_memory_kinds
    budget = Budget(effort.budget_s / 2, _COPIES_WEIGHT * len(kinds))
    bound_bytes = size_bound_bytes(info, psutil.virtual_memory().available)
    for memory in kinds:
        yield from measure_copies(
            (str(HOST), info.id),
            partial(device.copies, memory=memory),
            sizes_bytes,
            bound_bytes,
            effort,
            budget,
            _COPIES_WEIGHT,
            refine=False,
        )


def _measure_dtype(
    info: DeviceInfo,
    device: OpenDevice,
    dtype: str,
    launch: Figure,
    effort: Effort,
    budget: Budget,
) -> Iterator[Record]:
    notes: list[str] = []
    yield Doing(what=f"matrix product, {dtype}", spent=budget.spent())
    flops = _attempt(
        lambda: measure_product(
            info, device, dtype, effort, budget.deadline(_PRODUCT_WEIGHT), notes
        ),
        f"matrix product, {dtype}",
        notes,
    )
    if flops is not None:
        yield RateMeasured(rate=_rate(info, dtype, launch, flops, None), whole=False)
    yield Doing(what=f"streaming, {dtype}", spent=budget.spent())
    moved = _attempt(
        lambda: measure_stream(info, device, dtype, effort, budget.deadline(_STREAM_WEIGHT), notes),
        f"streaming, {dtype}",
        notes,
    )
    if flops is not None or moved is not None:
        rate = _rate(info, dtype, launch, flops, moved)
        yield RateMeasured(rate=rate)
        if isinstance(device, NodedDevice) and device.memory_nodes and dtype == info.dtypes[0]:
            yield Doing(what="streaming in each memory node", spent=budget.spent())
            nodes = _node_streams(info, device, dtype, effort, budget, notes)
            yield RateMeasured(rate=msgspec.structs.replace(rate, nodes=nodes))
    yield from (Note(text=text) for text in notes)


def _node_streams(
    info: DeviceInfo,
    device: NodedDevice,
    dtype: str,
    effort: Effort,
    budget: Budget,
    notes: list[str],
) -> tuple[NodeStream, ...]:
    weight = _STREAM_WEIGHT * len(device.memory_nodes)
    try:
        return measure_node_streams(info, device, dtype, effort, budget.deadline(weight))
    except Exception as error:
        notes.append(f"streaming in each memory node: {one_line(error)}")
        return ()


def _attempt(
    measure: Callable[[], "Figure | None"], what: str, notes: list[str]
) -> "Figure | None":
    try:
        return measure()
    except Exception as error:
        notes.append(f"{what}: {one_line(error)}")
        return None


def _rate(
    info: DeviceInfo, dtype: str, launch: Figure, flops: Figure | None, moved: Figure | None
) -> Rate:
    flags = [f"launch: {flag}" for flag in launch.flags]
    flags += [f"flops: {flag}" for flag in flops.flags] if flops else []
    flags += [f"bytes: {flag}" for flag in moved.flags] if moved else []
    return Rate(
        device=info.id,
        dtype=dtype,
        flops_per_ns=flops.summary.median if flops else None,
        bytes_per_ns=moved.summary.median if moved else None,
        launch_ns=round(launch.summary.median),
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
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
    )
