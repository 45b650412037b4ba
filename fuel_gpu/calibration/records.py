"""What a measuring child tells its parent, one JSON line each."""

from typing import Literal

import msgspec

from fuel_gpu.calibration.table import Conditions, Duplex, Point, Rate
from fuel_gpu.probes.report import DeviceInfo


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """The kernel that did best, and the size to measure it at: a matrix's n, or an array's bytes."""

    kernel: str
    size: int


class Agenda(msgspec.Struct, frozen=True, kw_only=True):
    """What a device's first sitting found: later ones measure that again, and nothing else.

    Parameters
    ----------
    copy_sizes_bytes
        Sizes that arrived, by kind of host memory.
    duplex
        Kinds of host memory that were copied both ways at once.
    products, streams
        The best kernels by dtype.
    noded
        The dtype with which each memory node was streamed; empty for none.
    """

    copy_sizes_bytes: dict[str, tuple[int, ...]] = {}
    duplex: tuple[str, ...] = ()
    products: dict[str, Chosen] = {}
    streams: dict[str, Chosen] = {}
    noded: str = ""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the parent asks for: all of a device, or some copies only.

    Parameters
    ----------
    peer
        Measure copies between `device` and this one, and nothing else.
    sizes_bytes
        Measure copies of these sizes between the host and `device`, and nothing else.
    agenda
        What an earlier sitting found; None in the first.
    """

    device: DeviceInfo
    full: bool = False
    peer: DeviceInfo | None = None
    sizes_bytes: tuple[int, ...] = ()
    agenda: Agenda | None = None


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

    `whole` is false while some of its figures are still to be measured. `product` and `stream` are
    the kernels that its figures were measured with.
    """

    rate: Rate
    whole: bool = True
    product: Chosen | None = None
    stream: Chosen | None = None


class DuplexMeasured(msgspec.Struct, frozen=True, kw_only=True, tag="duplex"):
    """Copies both ways at once."""

    duplex: Duplex


Quantity = Literal["flops", "bytes", "nodes", "duplex"]


class Wrong(msgspec.Struct, frozen=True, kw_only=True, tag="wrong"):
    """Results of what an earlier sitting measured were wrong now: that figure is not to be trusted.

    `of` is the dtype of a rate, the kind of memory of copies both ways.
    """

    quantity: Quantity
    of: str


class OthersBusy(msgspec.Struct, frozen=True, kw_only=True, tag="busy"):
    """How many cores other processes kept busy during a sitting."""

    cores: float


class Note(msgspec.Struct, frozen=True, kw_only=True, tag="note"):
    """Something that could not be measured, and why."""

    text: str


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag="finished"):
    """The child has measured all it was asked for; not `whole` if an error stopped it."""

    whole: bool = True


Record = (
    Doing
    | CopyMeasured
    | Swept
    | RateMeasured
    | DuplexMeasured
    | Wrong
    | OthersBusy
    | Note
    | Finished
)
