"""The columns that ranking and retention read, and the marks that they leave on each row."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CostColumns:
    """Candidates as arrays, those of a node adjacent and nodes ascending.

    Parameters
    ----------
    time_ns, host_bytes, device_bytes
        (n,) uint64.
    precision, accuracy
        (n,) uint8, higher is better.
    device
        (n,) unsigned codes of devices.
    pair
        (n,) unsigned codes of (device, backend).
    no_device, no_pair
        Codes of the same dtypes that no row has.
    """

    time_ns: Any
    host_bytes: Any
    device_bytes: Any
    precision: Any
    accuracy: Any
    device: Any
    pair: Any
    no_device: int
    no_pair: int


@dataclass(frozen=True, slots=True)
class Marks:
    """What is known of each row; rows that are not kept may hold anything but in `kept`.

    Parameters
    ----------
    kept
        bool: the row stays.
    rank
        Integers, unique in a node and below its size: the ranked order of its kept rows.
    listed
        uint8, how a row came to its device's list: 0 by the frontier, 1 as the best of a
        (device, backend) that had none there, 2 as the winner alone. The crowding cap breaks
        ties by it, then by rank.
    """

    kept: Any
    rank: Any
    listed: Any
