"""What calibration tells its caller while it runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceStarted:
    """A device's measuring begins: the `index`-th of `count`, from 1."""

    device: str
    name: str
    index: int
    count: int


@dataclass(frozen=True, slots=True)
class RoundStarted:
    """All devices are measured once more, in fresh processes: the `index`-th of `count` times."""

    index: int
    count: int


@dataclass(frozen=True, slots=True)
class Measuring:
    """What is being measured now, and which share of the whole time is spent (0 to 1)."""

    device: str
    what: str
    spent: float


@dataclass(frozen=True, slots=True)
class DeviceEnded:
    """A device's measuring is over; `notes` say what could not be measured.

    It is not `whole` if its process crashed, hung or failed before all was tried.
    """

    device: str
    notes: tuple[str, ...]
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Ctrl-C: what is finished is kept, and nothing more is measured."""

    device: str


Event = DeviceStarted | RoundStarted | Measuring | DeviceEnded | Interrupted
