"""What a measuring child tells its parent, one JSON line each."""

import msgspec

from fuel_gpu.calibration.table import Conditions, Duplex, Point, Rate
from fuel_gpu.probes.report import DeviceInfo


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the parent asks for: all of a device, or some copies only.

    Parameters
    ----------
    peer
        Measure copies between `device` and this one, and nothing else.
    sizes_bytes
        Measure copies of these sizes between the host and `device`, and nothing else.
    """

    device: DeviceInfo
    full: bool = False
    peer: DeviceInfo | None = None
    sizes_bytes: tuple[int, ...] = ()


class Doing(msgspec.Struct, frozen=True, kw_only=True, tag="doing"):
    """What is being measured from now on, and which share of the device's budget is spent."""

    what: str
    spent: float


class CopyMeasured(msgspec.Struct, frozen=True, kw_only=True, tag="copy"):
    """Copies of one size in one direction; a later record of the same replaces it."""

    src: str
    dst: str
    memory: str
    size_bound_bytes: int
    point: Point
    measured: str
    conditions: Conditions | None = None


class Swept(msgspec.Struct, frozen=True, kw_only=True, tag="swept"):
    """Copies in one direction have been measured at all sizes, for as long as they were to be."""

    src: str
    dst: str
    memory: str


class RateMeasured(msgspec.Struct, frozen=True, kw_only=True, tag="rate"):
    """A device's rate in one dtype; a later record of the same dtype replaces it.

    `whole` is false while some of its figures are still to be measured.
    """

    rate: Rate
    whole: bool = True


class DuplexMeasured(msgspec.Struct, frozen=True, kw_only=True, tag="duplex"):
    """Copies both ways at once."""

    duplex: Duplex


class Note(msgspec.Struct, frozen=True, kw_only=True, tag="note"):
    """Something that could not be measured, and why."""

    text: str


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag="finished"):
    """The child has measured all it was asked for; not `whole` if an error stopped it."""

    whole: bool = True


Record = Doing | CopyMeasured | Swept | RateMeasured | DuplexMeasured | Note | Finished
