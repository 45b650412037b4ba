"""What one sitting measures on a device, in which order, for how long: a stream of records."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import msgspec
import psutil

from fuel_gpu.calibration.backends import (
    ConnectedDevice,
    DuplexDevice,
    NodedDevice,
    OpenDevice,
    Workload,
    begin_watching,
    conditions_of,
)
from fuel_gpu.calibration.copy_sweep import measure_copies, size_bound_bytes
from fuel_gpu.calibration.duplex import measure_duplex
from fuel_gpu.calibration.effort import Budget, Effort
from fuel_gpu.calibration.figures import Figure, rate_of
from fuel_gpu.calibration.kernel_trials import (
    WrongResult,
    best_product,
    best_stream,
    measure_launch,
    measure_rate,
    one_line,
    same_again,
)
from fuel_gpu.calibration.neighbours import Neighbours
from fuel_gpu.calibration.node_streams import measure_node_streams
from fuel_gpu.calibration.records import (
    Agenda,
    Chosen,
    CopyMeasured,
    Doing,
    Note,
    OthersBusy,
    Quantity,
    RateMeasured,
    Record,
    Wrong,
)
from fuel_gpu.calibration.table import NodeStream
from fuel_gpu.device import HOST
from fuel_gpu.probes.report import DeviceInfo
from fuel_gpu.sizes import size_text

_LAUNCH_WEIGHT, _COPIES_WEIGHT, _PRODUCT_WEIGHT, _STREAM_WEIGHT = 0.3, 5.0, 1.5, 1.0
_DUPLEX_WEIGHT: Final = 0.5

_PEER_SHARE: Final = 4
"""A pair of devices gets this part of one device's time."""

_SIZES_SHARE: Final = 2
"""Some sizes alone get this part of a sitting."""


def measure_device(
    info: DeviceInfo, device: OpenDevice, effort: Effort, agenda: Agenda | None = None
) -> Iterator[Record]:
    """Measure launch, copies and rates, and give each figure as soon as it is there.

    A figure that fails costs itself and a note; a dtype whose results are wrong is left out.

    Parameters
    ----------
    agenda
        What the first sitting found worth measuring; None in the first.
    """
    kinds = device.host_memory_kinds
    duplex_kinds = device.duplex_memory_kinds if isinstance(device, DuplexDevice) else ()
    dtypes = info.dtypes
    nodes = device.memory_nodes if isinstance(device, NodedDevice) else ()
    if agenda is not None:
        kinds = tuple(kind for kind in kinds if kind in agenda.copy_sizes_bytes)
        duplex_kinds = agenda.duplex
        dtypes = tuple(d for d in dtypes if d in agenda.products or d in agenda.streams)
        nodes = nodes if agenda.noded else ()
    weight = _LAUNCH_WEIGHT + _COPIES_WEIGHT * len(kinds) + _DUPLEX_WEIGHT * len(duplex_kinds)
    weight += (_PRODUCT_WEIGHT + _STREAM_WEIGHT) * len(dtypes) + _STREAM_WEIGHT * len(nodes)
    budget = Budget(effort.sitting_s(first=agenda is None), weight)
    neighbours = Neighbours()
    bound_bytes = size_bound_bytes(info, psutil.virtual_memory().available)

    launch: Figure | None = None
    yield Doing(what="launch overhead", spent=budget.spent())
    try:
        launch = measure_launch(device, effort, budget.deadline(_LAUNCH_WEIGHT))
    except Exception as error:
        yield Note(text=f"launch overhead: {one_line(error)}; without it no rates are kept")
    ends = (str(HOST), info.id)
    for memory in kinds:
        begin_watching(device)
        try:
            yield from measure_copies(
                ends,
                partial(device.copies, memory=memory),
                agenda.copy_sizes_bytes[memory] if agenda else effort.copy_sizes_bytes,
                bound_bytes,
                effort,
                budget,
                _COPIES_WEIGHT,
                check=agenda is None,
                refine=agenda is None,
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
        for dtype in dtypes:
            yield from _measure_dtype(info, device, dtype, launch, effort, budget, agenda)
    yield OthersBusy(cores=neighbours.cores())


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
    info: DeviceInfo,
    device: OpenDevice,
    sizes_bytes: Sequence[int],
    effort: Effort,
    agenda: Agenda | None = None,
) -> Iterator[Record]:
    """Measure copies of some sizes and nothing else; of those on the agenda if there is one."""
    kinds = device.host_memory_kinds
    if agenda is not None:
        kinds = tuple(kind for kind in kinds if kind in agenda.copy_sizes_bytes)
    seconds = effort.sitting_s(first=agenda is None) / _SIZES_SHARE
    budget = Budget(seconds, _COPIES_WEIGHT * len(kinds))
    bound_bytes = size_bound_bytes(info, psutil.virtual_memory().available)
    for memory in kinds:
        yield from measure_copies(
            (str(HOST), info.id),
            partial(device.copies, memory=memory),
            agenda.copy_sizes_bytes[memory] if agenda else sizes_bytes,
            bound_bytes,
            effort,
            budget,
            _COPIES_WEIGHT,
            check=agenda is None,
            refine=False,
        )


def _measure_dtype(
    info: DeviceInfo,
    device: OpenDevice,
    dtype: str,
    launch: Figure,
    effort: Effort,
    budget: Budget,
    agenda: Agenda | None,
) -> Iterator[Record]:
    notes: list[str] = []
    wrong: list[Wrong] = []

    def rate_by(
        quantity: Quantity,
        what: str,
        find: Callable[[], tuple[Chosen, Workload] | None],
        size: Callable[[int], str],
        deadline: float,
    ) -> tuple[Figure | None, Chosen | None]:
        try:
            if (found := find()) is not None:
                chosen, work = found
                kernel = f"{chosen.kernel}, {size(chosen.size)}"
                return measure_rate(device, work, kernel, effort, deadline), chosen
        except WrongResult:
            notes.append(f"{what}: wrong result after many runs, left out")
            wrong.append(Wrong(quantity=quantity, of=dtype))
        except Exception as error:
            notes.append(f"{what}: {one_line(error)}")
        return None, None

    def find_product(deadline: float) -> tuple[Chosen, Workload] | None:
        if agenda is None:
            return best_product(info, device, dtype, effort, deadline, notes)
        if (chosen := agenda.products.get(dtype)) is None:
            return None
        return chosen, same_again(chosen, dtype, device.product_kernels, device.product)

    def find_stream(deadline: float) -> tuple[Chosen, Workload] | None:
        if agenda is None:
            return best_stream(info, device, dtype, effort, deadline, notes)
        if (chosen := agenda.streams.get(dtype)) is None:
            return None
        return chosen, same_again(chosen, dtype, device.stream_kernels, device.stream)

    what = f"matrix product, {dtype}"
    yield Doing(what=what, spent=budget.spent())
    deadline = budget.deadline(_PRODUCT_WEIGHT)
    flops, product = rate_by(
        "flops", what, partial(find_product, deadline), lambda n: f"n {n}", deadline
    )
    if flops is not None:
        rate = rate_of(info.id, dtype, launch, flops, None)
        yield RateMeasured(rate=rate, whole=False, product=product)
    what = f"streaming, {dtype}"
    yield Doing(what=what, spent=budget.spent())
    deadline = budget.deadline(_STREAM_WEIGHT)
    moved, stream = rate_by("bytes", what, partial(find_stream, deadline), size_text, deadline)
    if flops is not None or moved is not None:
        rate = rate_of(info.id, dtype, launch, flops, moved)
        yield RateMeasured(rate=rate, product=product, stream=stream)
        noded = dtype == (agenda.noded if agenda else info.dtypes[0])
        if isinstance(device, NodedDevice) and device.memory_nodes and noded:
            yield Doing(what="streaming in each memory node", spent=budget.spent())
            nodes = _node_streams(info, device, dtype, effort, budget, notes, wrong)
            rate = msgspec.structs.replace(rate, nodes=nodes)
            yield RateMeasured(rate=rate, product=product, stream=stream)
    yield from wrong
    yield from (Note(text=text) for text in notes)


def _node_streams(
    info: DeviceInfo,
    device: NodedDevice,
    dtype: str,
    effort: Effort,
    budget: Budget,
    notes: list[str],
    wrong: list[Wrong],
) -> tuple[NodeStream, ...]:
    what = "streaming in each memory node"
    weight = _STREAM_WEIGHT * len(device.memory_nodes)
    try:
        return measure_node_streams(info, device, dtype, effort, budget.deadline(weight))
    except WrongResult:
        notes.append(f"{what}: wrong result after many runs, left out")
        wrong.append(Wrong(quantity="nodes", of=dtype))
    except Exception as error:
        notes.append(f"{what}: {one_line(error)}")
    return ()
