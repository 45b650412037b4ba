"""What a table may hold: values that are possible, ids that exist, curves that never fall."""

import math
from collections.abc import Iterable, Iterator
from datetime import datetime

from fuel_gpu.calibration.table import FORMAT_VERSION, Curve, Duplex, Point, Rate, Table, Transfer
from fuel_gpu.device import Device
from fuel_gpu.dtypes import ITEMSIZE_BITS, UNIT_ROUNDOFF
from fuel_gpu.errors import UsageError
from fuel_gpu.numbers import U64_MAX

_SLOWEST_PER_NS, _FASTEST_FLOPS_PER_NS, _FASTEST_BYTES_PER_NS = 1e-6, 1e9, 1e6
"""1 kFLOP/s or kB/s; 1 exaFLOP/s; 1 PB/s: no device is outside, a slip of the unit is."""

_LONGEST_LAUNCH_NS = 60 * 10**9

_LARGEST_MEMORY_BYTES = 2**60
"""An exbibyte: no device has as much."""

_DTYPES = ITEMSIZE_BITS.keys() | UNIT_ROUNDOFF.keys()


def impossible_value(table: Table) -> str | None:
    """Say which value of a table cannot be, with its path; None if all can."""
    return next(_problems(table), None)


def _problems(table: Table) -> Iterator[str]:
    if table.version != FORMAT_VERSION:
        yield f"version is {table.version}, want {FORMAT_VERSION} - at `$.version`"
    yield from _date_problems(table.created, "$.created")
    ids = [d.id for d in table.devices]
    for i, device in enumerate(table.devices):
        where = f"$.devices[{i}]"
        yield from _id_problems(device.id, f"{where}.id")
        if device.backend != device.id.partition(":")[0]:
            yield f"backend {device.backend!r} is not that of {device.id} - at `{where}.backend`"
        yield from _size_problems(device.memory_bytes, f"{where}.memory_bytes")
        yield from _size_problems(
            device.largest_allocation_bytes, f"{where}.largest_allocation_bytes"
        )
    yield from _repeated(ids, "$.devices", "id")
    for i, transfer in enumerate(table.transfers):
        yield from _transfer_problems(transfer, ids, f"$.transfers[{i}]")
    yield from _repeated(
        (f"{t.src} -> {t.dst} ({t.memory})" for t in table.transfers), "$.transfers", "pair"
    )
    for i, rate in enumerate(table.rates):
        yield from _rate_problems(rate, ids, f"$.rates[{i}]")
    yield from _repeated((f"{r.device} {r.dtype}" for r in table.rates), "$.rates", "device, dtype")
    for i, duplex in enumerate(table.duplex):
        yield from _duplex_problems(duplex, ids, f"$.duplex[{i}]")
    names = (f"{' and '.join(sorted(d.ends))} ({d.memory})" for d in table.duplex)
    yield from _repeated(names, "$.duplex", "pair")


def _id_problems(name: str, where: str) -> Iterator[str]:
    try:
        canonical = str(Device.parse(name))
    except UsageError as error:
        yield f"{error} - at `{where}`"
        return
    if canonical != name:
        yield f"{name!r} should be written {canonical!r} - at `{where}`"


def _repeated(names: Iterable[str], where: str, what: str) -> Iterator[str]:
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name in seen:
            yield f"{what} {name} occurs twice - at `{where}[{i}]`"
        seen.add(name)


def _unknown(name: str, ids: list[str], where: str) -> Iterator[str]:
    if name not in ids:
        yield f"{name!r} is none of the table's devices ({', '.join(ids)}) - at `{where}`"


def _transfer_problems(transfer: Transfer, ids: list[str], where: str) -> Iterator[str]:
    yield from _unknown(transfer.src, ids, f"{where}.src")
    yield from _unknown(transfer.dst, ids, f"{where}.dst")
    if transfer.src == transfer.dst:
        yield f"{transfer.src} copies to itself - at `{where}.dst`"
    yield from _size_problems(transfer.size_bound_bytes, f"{where}.size_bound_bytes")
    yield from _date_problems(transfer.measured, f"{where}.measured")
    yield from _point_problems(transfer.points, f"{where}.points")
    yield from _curve_problems(transfer.curve, f"{where}.curve")


def _point_problems(points: tuple[Point, ...], where: str) -> Iterator[str]:
    for i, point in enumerate(points):
        if not 0 < point.bytes <= U64_MAX:
            yield f"bytes is {point.bytes}, not positive - at `{where}[{i}].bytes`"
        if not 0 < point.ns <= U64_MAX:
            yield f"ns is {point.ns}, not positive - at `{where}[{i}].ns`"
        if any(not 0 <= ns <= U64_MAX for ns in point.samples):
            yield f"a sample is below zero - at `{where}[{i}].samples`"
        if i and point.bytes <= points[i - 1].bytes:
            yield f"sizes must ascend - at `{where}[{i}].bytes`"
        yield from _interval_problems(point.interval, f"{where}[{i}].interval")


def _curve_problems(curve: Curve, where: str) -> Iterator[str]:
    sizes, times = curve.knot_bytes, curve.knot_ns
    if not sizes or len(sizes) != len(times):
        yield (
            f"{len(sizes)} knot_bytes and {len(times)} knot_ns, want as many of each and one at "
            f"least - at `{where}`"
        )
        return
    for i, (size, ns) in enumerate(zip(sizes, times, strict=True)):
        if not 0 <= size <= U64_MAX or (i and size <= sizes[i - 1]):
            yield f"knots must ascend from zero - at `{where}.knot_bytes[{i}]`"
        if not 0 <= ns <= U64_MAX or (i and ns < times[i - 1]):
            yield f"times must not fall as bytes grow - at `{where}.knot_ns[{i}]`"
    for name in ("median_error", "worst_error"):
        error = getattr(curve, name)
        if error is not None and not 0 <= error < math.inf:
            yield f"{name} is {error:g}, below zero or not finite - at `{where}.{name}`"
    yield from _figure(curve.tail_bytes_per_ns, _FASTEST_BYTES_PER_NS, f"{where}.tail_bytes_per_ns")


def _rate_problems(rate: Rate, ids: list[str], where: str) -> Iterator[str]:
    yield from _unknown(rate.device, ids, f"{where}.device")
    if rate.dtype not in _DTYPES:
        known = ", ".join(sorted(_DTYPES))
        yield f"{rate.dtype!r} is no dtype; known are {known} - at `{where}.dtype`"
    yield from _date_problems(rate.measured, f"{where}.measured")
    if rate.flops_per_ns is not None:
        yield from _figure(rate.flops_per_ns, _FASTEST_FLOPS_PER_NS, f"{where}.flops_per_ns")
    if rate.bytes_per_ns is not None:
        yield from _figure(rate.bytes_per_ns, _FASTEST_BYTES_PER_NS, f"{where}.bytes_per_ns")
    if not 0 <= rate.launch_ns <= _LONGEST_LAUNCH_NS:
        yield f"launch_ns is {rate.launch_ns}, not between 0 and a minute - at `{where}.launch_ns`"

    for i, node in enumerate(rate.nodes):
        yield from _figure(node.bytes_per_ns, _FASTEST_BYTES_PER_NS, f"{where}.nodes[{i}]")
        yield from _interval_problems(node.interval, f"{where}.nodes[{i}].interval")
    for name in ("flops", "bytes", "launch"):
        yield from _interval_problems(getattr(rate, f"{name}_interval"), f"{where}.{name}_interval")
        if any(not 0 <= sample < math.inf for sample in getattr(rate, f"{name}_samples")):
            yield f"a sample is below zero - at `{where}.{name}_samples`"


def _duplex_problems(duplex: Duplex, ids: list[str], where: str) -> Iterator[str]:
    for i, end in enumerate(duplex.ends):
        yield from _unknown(end, ids, f"{where}.ends[{i}]")
    if not 0 < duplex.bytes <= U64_MAX:
        yield f"bytes is {duplex.bytes}, not positive - at `{where}.bytes`"
    yield from _figure(duplex.bytes_per_ns, _FASTEST_BYTES_PER_NS, f"{where}.bytes_per_ns")
    yield from _interval_problems(duplex.interval, f"{where}.interval")
    if any(not 0 <= sample < math.inf for sample in duplex.samples):
        yield f"a sample is below zero - at `{where}.samples`"


def _size_problems(size_bytes: int | None, where: str) -> Iterator[str]:
    if size_bytes is not None and not 0 <= size_bytes <= _LARGEST_MEMORY_BYTES:
        yield f"{size_bytes} bytes is below zero or more than any device has - at `{where}`"


def _date_problems(date: str, where: str) -> Iterator[str]:
    """Find a date that is none; an empty one says that nobody knows."""
    try:
        datetime.fromisoformat(date or "2000-01-01")
    except ValueError:
        yield f"{date!r} is no ISO 8601 time - at `{where}`"


def _interval_problems(interval: tuple[float, float] | None, where: str) -> Iterator[str]:
    if interval is not None and not 0 <= interval[0] <= interval[1] < math.inf:
        yield f"{list(interval)} is no interval from low to high - at `{where}`"


def _figure(value: float, fastest: float, where: str) -> Iterator[str]:
    if not math.isfinite(value) or not _SLOWEST_PER_NS <= value <= fastest:
        yield (
            f"{value:g} per nanosecond is not between {_SLOWEST_PER_NS:g} and {fastest:g} "
            f"- at `{where}`"
        )
