"""Transfer times between devices: from the table's curves, through the host, or by class."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.calibration.curves import CurveTimes, line_curve
from fuel_gpu.calibration.table import Curve, Provenance, Table, Transfer, weakest
from fuel_gpu.device import HOST, Device
from fuel_gpu.numbers import U64_MAX, saturate, saturating_add

PATH_CLASSES: Final[dict[str, Curve]] = {
    "peer": line_curve(15_000, 12.0),
    "shared memory": line_curve(2_000, 20.0),
    "device copy": line_curve(30_000, 8.0),
    "staged through the host": line_curve(60_000, 4.0),
}
"""What to assume of a path that was not measured, by how the two devices are connected."""

_MEMORY_PREFERENCE: Final = ("pageable", "mapped", "shared", "pinned")


@dataclass(frozen=True, slots=True)
class PathSource:
    """How the time of a pair of devices is obtained.

    Parameters
    ----------
    provenance
        The weakest of the numbers that it rests on; None where there is nothing to copy.
    path
        ``same device``, ``direct``, ``through cpu:0``, or the class that it falls back to.
    """

    provenance: Provenance | None
    path: str

    def __str__(self) -> str:
        return self.path if self.provenance is None else f"{self.provenance}, {self.path}"


@dataclass(frozen=True, slots=True)
class _Direct:
    times: CurveTimes
    provenance: Provenance


class TableTransfers:
    """Estimates how long copies between the devices of a table take.

    A pair in the table is priced from its curve; where it was measured from both kinds of host
    memory, from the pageable one, which is what an ordinary array lies in. A pair that is not, but
    whose two legs through the host are, costs both legs. Anything else is priced by class.
    """

    def __init__(self, table: Table) -> None:
        self._in_host_memory = {d.device for d in table.devices if d.unified_memory}
        self._nvlinked = {d.device for d in table.devices if d.details.get("nvlinks")}
        chosen: dict[tuple[Device, Device], Transfer] = {}
        for transfer in sorted(table.transfers, key=_preference, reverse=True):
            chosen[Device.parse(transfer.src), Device.parse(transfer.dst)] = transfer
        self._direct = {
            pair: _Direct(CurveTimes(t.curve), t.provenance) for pair, t in chosen.items()
        }
        self._legs: dict[tuple[Device, Device], tuple[tuple[CurveTimes, ...], PathSource]] = {}

    def estimate_transfer_ns(self, src: Device, dst: Device, bytes: int) -> int:
        """Nanoseconds to copy `bytes` from `src` to `dst`.

        0 when they are the same device. Never raises, never falls as bytes grow, saturates at
        2**64 - 1.
        """
        if src == dst:
            return 0
        legs, _ = self._path(src, dst)
        size = saturate(int(bytes))
        if len(legs) == 1:
            return legs[0].at(size)
        return saturating_add(*(leg.at(size) for leg in legs))

    def estimate_transfer_ns_array(
        self, src: Device, dst: Device, bytes_array: NDArray[np.uint64]
    ) -> NDArray[np.uint64]:
        """Nanoseconds for an array of sizes; uint64 in and out, same shape, same integers."""
        if src == dst:
            return np.zeros_like(bytes_array)
        legs, _ = self._path(src, dst)
        total = legs[0].at_array(bytes_array)
        for leg in legs[1:]:
            more = leg.at_array(bytes_array)
            sums = total + more
            total = np.where(sums < more, np.uint64(U64_MAX), sums)
        return total

    def provenance_of(self, src: Device, dst: Device) -> PathSource:
        """How the pair's time is obtained."""
        if src == dst:
            return PathSource(None, "same device")
        return self._path(src, dst)[1]

    def _path(self, src: Device, dst: Device) -> tuple[tuple[CurveTimes, ...], PathSource]:
        found = self._legs.get((src, dst))
        if found is None:
            found = self._legs[src, dst] = self._find(src, dst)
        return found

    def _find(self, src: Device, dst: Device) -> tuple[tuple[CurveTimes, ...], PathSource]:
        if (direct := self._direct.get((src, dst))) is not None:
            return (direct.times,), PathSource(direct.provenance, "direct")
        up, down = self._direct.get((src, HOST)), self._direct.get((HOST, dst))
        if up is not None and down is not None:
            provenance = weakest(up.provenance, down.provenance)
            return (up.times, down.times), PathSource(provenance, f"through {HOST}")
        name = self._class_of(src, dst)
        return (CurveTimes(PATH_CLASSES[name]),), PathSource("fallback", name)

    def _class_of(self, src: Device, dst: Device) -> str:
        if all(device.is_host or device in self._in_host_memory for device in (src, dst)):
            return "shared memory"
        if src.is_host or dst.is_host:
            return "device copy"
        if src in self._nvlinked and dst in self._nvlinked:
            return "peer"
        return "staged through the host"


def _preference(transfer: Transfer) -> int:
    """0 for the kind of host memory to price with first."""
    known = transfer.memory in _MEMORY_PREFERENCE
    return _MEMORY_PREFERENCE.index(transfer.memory) if known else len(_MEMORY_PREFERENCE)
