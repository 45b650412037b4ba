"""The calibration table's data: devices, transfer curves, rates, raw samples and provenance.

Format history
--------------
1   first format
"""

from typing import Literal

import msgspec

from fuel_gpu.probes.report import DeviceInfo

FORMAT_VERSION = 1

Provenance = Literal["measured", "shared", "datasheet", "fallback"]
"""How a number was obtained; `shared` is measured on another device with the same equivalence key."""


class Machine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The machine that the numbers belong to."""

    fingerprint: str
    system: str = ""
    cpu: str = ""
    python: str = ""


class Point(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Copies of one size: the median and every sample, in nanoseconds."""

    bytes: int
    ns: int
    samples: tuple[int, ...] = ()


class Curve(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A monotone cost curve: knots (bytes, ns) joined by straight lines; past the last knot
    `tail_bytes_per_ns` goes on. `median_error` and `worst_error` are relative, over the points."""

    knot_bytes: tuple[int, ...]
    knot_ns: tuple[int, ...]
    tail_bytes_per_ns: float
    median_error: float
    worst_error: float


class Transfer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Copies from one device to another."""

    src: str
    dst: str
    memory: str = "pageable"
    points: tuple[Point, ...]
    curve: Curve
    provenance: Provenance


class Rate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one device does with one compute dtype; None where it was not obtained."""

    device: str
    dtype: str
    flops_per_ns: float | None
    bytes_per_ns: float | None
    launch_ns: int
    provenance: Provenance
    flops_samples: tuple[float, ...] = ()
    bytes_samples: tuple[float, ...] = ()
    launch_samples: tuple[int, ...] = ()


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine's calibration table."""

    version: int
    machine: Machine
    created: str
    devices: tuple[DeviceInfo, ...]
    transfers: tuple[Transfer, ...]
    rates: tuple[Rate, ...]
    notes: tuple[str, ...] = ()
