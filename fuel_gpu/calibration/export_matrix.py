"""The matrix form of a table: bandwidth at a size and latency, for all pairs of devices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fuel_gpu.calibration.curves import CurveTimes
from fuel_gpu.calibration.table import Provenance, Table, Transfer, weakest
from fuel_gpu.device import HOST
from fuel_gpu.numbers import saturating_add

MATRIX_SIZE_BYTES: Final = 32 * 2**20
_SMALLEST_COPY_BYTES: Final = 4096
"""The size of the latencies where no table entry says which its smallest copy is."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The time of one copy between two devices.

    Parameters
    ----------
    ns
        Nanoseconds.
    provenance
        The weakest of the numbers that it rests on.
    basis
        How it follows from them: nothing for a time that stands in the table itself, ``fitted``
        between sizes, ``extrapolated`` past them, ``through cpu:0`` for the sum of two copies.
    """

    ns: int
    provenance: Provenance
    basis: tuple[str, ...]

    @property
    def is_measured(self) -> bool:
        """Whether exactly this copy was timed."""
        return self.provenance == "measured" and not self.basis

    def __str__(self) -> str:
        return ", ".join((self.provenance, *self.basis))


@dataclass(frozen=True, slots=True)
class Matrix:
    """All ordered pairs of a table's devices, for one kind of host memory.

    Parameters
    ----------
    memory
        The kind of host memory; empty if no copy of the table starts or ends there.
    devices
        Rows (from) and columns (to).
    bandwidth_bytes, latency_bytes
        The sizes of the copies whose times the two matrices hold.
    bandwidth_cells, latency_cells
        A row a source; None on the diagonal and where nothing is known of a pair.
    """

    memory: str
    devices: tuple[str, ...]
    bandwidth_bytes: int
    latency_bytes: int
    bandwidth_cells: tuple[tuple[Cell | None, ...], ...]
    latency_cells: tuple[tuple[Cell | None, ...], ...]

    def bytes_per_ns(self, row: int, column: int) -> float | None:
        """Bandwidth of the pair to six digits; a byte a nanosecond is a GB/s."""
        cell = self.bandwidth_cells[row][column]
        return None if cell is None else float(f"{self.bandwidth_bytes / cell.ns:.6g}")


def matrices(table: Table, bandwidth_bytes: int = MATRIX_SIZE_BYTES) -> list[Matrix]:
    """Give a matrix for each kind of host memory in the table, in the table's order.

    The latency is the time of the largest of the pairs' smallest copies, so that one size holds
    for all of them.
    """
    ids = tuple(device.id for device in table.devices)
    smallest = [t.points[0].bytes for t in table.transfers if t.points]
    latency_bytes = max(smallest, default=_SMALLEST_COPY_BYTES)
    made = []
    for memory in host_memory_kinds(table) or ("",):
        paths = Paths(table, (memory,))
        made.append(
            Matrix(
                memory=memory,
                devices=ids,
                bandwidth_bytes=bandwidth_bytes,
                latency_bytes=latency_bytes,
                bandwidth_cells=paths.cells(ids, bandwidth_bytes),
                latency_cells=paths.cells(ids, latency_bytes),
            )
        )
    return made


def host_memory_kinds(table: Table) -> tuple[str, ...]:
    """Kinds of host memory that the table's copies start or end in."""
    return tuple(dict.fromkeys(t.memory for t in table.transfers if _touches_host(t)))


class Paths:
    """Times of copies between a table's devices, direct or by two copies through the host.

    Parameters
    ----------
    table
        Whose copies.
    memories
        Kinds of host memory to take, the one that counts first in front; others are left out.
    """

    def __init__(self, table: Table, memories: Sequence[str]) -> None:
        self._direct: dict[tuple[str, str], Transfer] = {}
        for transfer in sorted(table.transfers, key=lambda t: _rank(t, memories)):
            if not _touches_host(transfer) or transfer.memory in memories:
                self._direct.setdefault((transfer.src, transfer.dst), transfer)

    def cells(self, ids: Sequence[str], size_bytes: int) -> tuple[tuple[Cell | None, ...], ...]:
        """Give every ordered pair of devices; None on the diagonal and where nothing is known."""
        return tuple(tuple(self.cell(src, dst, size_bytes) for dst in ids) for src in ids)

    def cell(self, src: str, dst: str, size_bytes: int) -> Cell | None:
        """Give one pair's time; None between a device and itself, or where nothing is known."""
        if src == dst:
            return None
        if (direct := self._direct.get((src, dst))) is not None:
            return _timed(direct, size_bytes)
        up, down = self._direct.get((src, str(HOST))), self._direct.get((str(HOST), dst))
        if up is None or down is None:
            return None
        legs = _timed(up, size_bytes), _timed(down, size_bytes)
        return Cell(
            ns=saturating_add(legs[0].ns, legs[1].ns),
            provenance=weakest(legs[0].provenance, legs[1].provenance),
            basis=tuple(dict.fromkeys((f"through {HOST}", *legs[0].basis, *legs[1].basis))),
        )


def _timed(transfer: Transfer, size_bytes: int) -> Cell:
    for point in transfer.points:
        if point.bytes == size_bytes:
            return Cell(point.ns, transfer.provenance, ())
    sizes = [point.bytes for point in transfer.points]
    inside = bool(sizes) and sizes[0] < size_bytes < sizes[-1]
    # A curve without points is all there is: nothing beside it would be exact.
    basis = () if not sizes else ("fitted",) if inside else ("extrapolated",)
    ns = max(1, CurveTimes(transfer.curve).at(size_bytes))
    return Cell(ns, transfer.provenance, basis)


def _touches_host(transfer: Transfer) -> bool:
    return str(HOST) in (transfer.src, transfer.dst)


def _rank(transfer: Transfer, memories: Sequence[str]) -> int:
    """Give 0 for the transfer to take first of those of a pair."""
    if transfer.memory in memories:
        return memories.index(transfer.memory)
    return len(memories) + (transfer.memory != "peer")
