"""Compares two tables: which figures changed by more than their noise, which devices changed."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeVar

import msgspec
import numpy as np

from fuel_gpu.calibration.curves import CurveTimes
from fuel_gpu.calibration.sampling import FEWEST_FOR_INTERVAL
from fuel_gpu.calibration.table import Machine, Provenance, Table, Transfer

DEFAULT_THRESHOLD: Final = 0.1
"""The least relative change that counts."""

_SIZES_OF_LINES: Final = (4096, 32 * 2**20)
"""Where curves are compared that no points were taken for."""

_UNSTEADY: Final = ("drift", "bimodal")
_MIDDLE: Final = (0.1, 0.9)
"""Quantiles that enclose both kinds of bimodal samples, each a fifth of them at least."""

_UNITS: Final = {"copy": "ns", "compute": "FLOP/ns", "launch": "ns"}
_BANDWIDTH: Final = "byte/ns"
"""Unit of all other quantities."""

_LEAST: Final = 1e-9
"""Stands for a launch of 0 ns where a ratio is taken."""

K = TypeVar("K")
Kind = Literal["slower", "faster", "same", "appeared", "disappeared", "changed"]


class Figure(msgspec.Struct, frozen=True):
    """A figure as one of the tables has it.

    Parameters
    ----------
    value
        The figure.
    low, high
        Where it lies with its noise; the value itself where nothing was measured.
    """

    value: float
    low: float
    high: float
    provenance: Provenance


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two tables.

    Parameters
    ----------
    kind
        ``slower``, ``faster`` or ``same`` for a figure in both tables; ``appeared`` or
        ``disappeared`` for what is in one only; ``changed`` for a name or a driver.
    quantity
        ``copy``, ``both ways`` (two copies at once), ``compute``, ``memory``, ``memory of node 1``
        (a NUMA node's) or ``launch`` for a figure, or ``copies`` for all of a pair's; ``device``;
        ``name``, ``driver`` or ``machine``.
    src, dst, memory, bytes, dtype
        What it is of; empty where that has no meaning. A rate's device is `src`.
    unit, old, new
        The figure in both tables.
    old_text, new_text
        What the tables say where there is no figure.
    factor
        How many times as long it takes now; 1 where nothing is compared.
    """

    kind: Kind
    quantity: str
    src: str = ""
    dst: str = ""
    memory: str = ""
    bytes: int | None = None
    dtype: str = ""
    unit: str = ""
    old: Figure | None = None
    new: Figure | None = None
    old_text: str = ""
    new_text: str = ""
    factor: float = 1.0


class Comparison(msgspec.Struct, frozen=True):
    """All that differs: devices and pairs first, then figures, the largest change in front.

    Parameters
    ----------
    compared
        How many figures both tables have.
    threshold
        The least relative change that counts.
    """

    changes: tuple[Change, ...]
    compared: int
    threshold: float

    @property
    def got_slower(self) -> bool:
        """Whether anything takes longer than it did."""
        return any(change.kind == "slower" for change in self.changes)


def compare(old: Table, new: Table, *, threshold: float = DEFAULT_THRESHOLD) -> Comparison:
    """Tell what changed between two calibrations.

    A figure changed if its two intervals do not overlap and the longer time exceeds the
    shorter by more than `threshold`. Samples that drifted, or fell into two kinds, have more noise
    than their interval says: the middle 80 % of them stand for it. So have fewer than
    six: their range counts three times as wide. Figures without samples, such as a datasheet's,
    are compared by value. Copies are compared at the sizes that both tables have; by their curves
    if there are none.

    Parameters
    ----------
    threshold
        At least 0; 0.1 is 10 %.
    """
    figures = [
        *_copies(old, new, threshold),
        *_both_ways(old, new, threshold),
        *_rates(old, new, threshold),
    ]
    found = [change for change in figures if change.kind != "same"]
    found.sort(key=lambda change: -abs(math.log(change.factor)))
    return Comparison((*_parts(old, new), *found), len(figures), threshold)


def _parts(old: Table, new: Table) -> Iterator[Change]:
    """Differences in what the tables are about: machine, devices, pairs, dtypes."""
    if old.machine.fingerprint != new.machine.fingerprint:
        yield _other("machine", "", _name(old.machine), _name(new.machine))
    before, now = {d.id: d for d in old.devices}, {d.id: d for d in new.devices}
    for kind, name in _in_one_only(before, now):
        old_text, new_text = (all_[name].name if name in all_ else "" for all_ in (before, now))
        yield Change(kind=kind, quantity="device", src=name, old_text=old_text, new_text=new_text)
    both = before.keys() & now.keys()
    for name in sorted(both):
        if before[name].name != now[name].name:
            yield _other("name", name, before[name].name, now[name].name)
        if before[name].driver != now[name].driver:
            yield _other("driver", name, before[name].driver, now[name].driver)
    for kind, (src, dst, memory) in _in_one_only(_transfers(old), _transfers(new)):
        if {src, dst} <= both:
            yield Change(kind=kind, quantity="copies", src=src, dst=dst, memory=memory)
    for kind, (src, dst, memory) in _in_one_only(_duplexes(old), _duplexes(new)):
        if {src, dst} <= both:
            yield Change(kind=kind, quantity="both ways", src=src, dst=dst, memory=memory)
    for kind, (quantity, device, dtype) in _in_one_only(_rate_figures(old), _rate_figures(new)):
        if device in both and quantity != "launch":  # of a launch every dtype has the same
            yield Change(kind=kind, quantity=quantity, src=device, dtype=dtype)


def _other(quantity: str, device: str, old: str, new: str) -> Change:
    return Change(kind="changed", quantity=quantity, src=device, old_text=old, new_text=new)


def _copies(old: Table, new: Table, threshold: float) -> Iterator[Change]:
    before, now = _transfers(old), _transfers(new)
    for key in before:
        if key not in now:
            continue
        src, dst, memory = key
        for size in _sizes(before[key], now[key]):
            where = Change(
                kind="same", quantity="copy", src=src, dst=dst, memory=memory, bytes=size
            )
            figures = _copy_figure(before[key], size), _copy_figure(now[key], size)
            yield _judged(where, *figures, threshold)


def _both_ways(old: Table, new: Table, threshold: float) -> Iterator[Change]:
    before, now = _duplexes(old), _duplexes(new)
    for key in before:
        if key in now:
            src, dst, memory = key
            where = Change(kind="same", quantity="both ways", src=src, dst=dst, memory=memory)
            yield _judged(where, before[key], now[key], threshold)


def _rates(old: Table, new: Table, threshold: float) -> Iterator[Change]:
    before, now = _rate_figures(old), _rate_figures(new)
    launches: dict[str, list[Change]] = {}
    for key in before:
        if key not in now:
            continue
        quantity, device, dtype = key
        where = Change(kind="same", quantity=quantity, src=device, dtype=dtype)
        change = _judged(where, before[key], now[key], threshold)
        if quantity == "launch":
            launches.setdefault(device, []).append(change)
        else:
            yield change
    for changes in launches.values():
        if len({(change.old, change.new) for change in changes}) == 1:
            yield msgspec.structs.replace(changes[0], dtype="")  # measured once for all dtypes
        else:
            yield from changes


def _judged(where: Change, old: Figure, new: Figure, threshold: float) -> Change:
    """Give the change with both figures in it, and what kind it is."""
    unit = _UNITS.get(where.quantity, _BANDWIDTH)
    times = (old.value, new.value) if unit == "ns" else (new.value, old.value)
    factor = max(times[1], _LEAST) / max(times[0], _LEAST)
    overlap = old.low <= new.high and new.low <= old.high
    if overlap or max(factor, 1 / factor) <= 1 + threshold:
        kind: Kind = "same"
    else:
        kind = "slower" if factor > 1 else "faster"
    return msgspec.structs.replace(where, kind=kind, unit=unit, old=old, new=new, factor=factor)


def _sizes(old: Transfer, new: Transfer) -> list[int]:
    """Give the sizes that both have; if they share none, those of either."""
    before, now = {p.bytes for p in old.points}, {p.bytes for p in new.points}
    return sorted((before & now) or (before | now) or _SIZES_OF_LINES)


def _copy_figure(transfer: Transfer, size: int) -> Figure:
    for point in transfer.points:
        if point.bytes == size:
            return _figure(
                point.ns, point.interval, point.samples, point.flags, transfer.provenance
            )
    ns = CurveTimes(transfer.curve).at(size)
    return _figure(ns, None, (), (), transfer.provenance)


def _rate_figures(table: Table) -> dict[tuple[str, str, str], Figure]:
    """Give a table's rates by quantity, device and dtype."""
    found: dict[tuple[str, str, str], Figure] = {}
    for rate in table.rates:
        for quantity, value, interval, samples, prefix in (
            ("compute", rate.flops_per_ns, rate.flops_interval, rate.flops_samples, "flops: "),
            ("memory", rate.bytes_per_ns, rate.bytes_interval, rate.bytes_samples, "bytes: "),
            ("launch", rate.launch_ns, rate.launch_interval, rate.launch_samples, "launch: "),
        ):
            if value is not None:
                flags = [f.removeprefix(prefix) for f in rate.flags if f.startswith(prefix)]
                found[quantity, rate.device, rate.dtype] = _figure(
                    value, interval, samples, flags, rate.provenance
                )
        for node in rate.nodes:
            found[f"memory of node {node.node}", rate.device, rate.dtype] = _figure(
                node.bytes_per_ns, node.interval, node.samples, node.flags, rate.provenance
            )
    return found


def _figure(
    value: float,
    interval: tuple[float, float] | None,
    samples: Sequence[float],
    flags: Sequence[str],
    provenance: Provenance,
) -> Figure:
    bounds = [value, *(interval or ())]
    if samples and any(flag in _UNSTEADY for flag in flags):
        bounds += np.quantile(samples, _MIDDLE).tolist()
    if 0 < len(samples) < FEWEST_FOR_INTERVAL:
        # Student's t makes 95 % of three samples three times as wide as their range.
        width = max(samples) - min(samples)
        bounds += [min(samples) - width, max(samples) + width]
    return Figure(value, min(bounds), max(bounds), provenance)


def _transfers(table: Table) -> dict[tuple[str, str, str], Transfer]:
    return {(t.src, t.dst, t.memory): t for t in table.transfers}


def _duplexes(table: Table) -> dict[tuple[str, str, str], Figure]:
    """Give copies both ways at once by their ends and the kind of memory."""
    return {
        (*d.ends, d.memory): _figure(d.bytes_per_ns, d.interval, d.samples, d.flags, d.provenance)
        for d in table.duplex
    }


def _in_one_only(old: Mapping[K, object], new: Mapping[K, object]) -> Iterator[tuple[Kind, K]]:
    """Give the keys that only one of the tables has."""
    yield from (("disappeared", key) for key in old if key not in new)
    yield from (("appeared", key) for key in new if key not in old)


def _name(machine: Machine) -> str:
    return machine.cpu or machine.fingerprint
