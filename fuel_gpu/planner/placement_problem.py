"""A placement problem as plain arrays: one graph, priced under any number of scenarios."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.errors import UsageError

Indices = NDArray[np.int64]
Times = NDArray[np.uint64]

MAX_SLOTS = 255
"""A choice of slot is kept in one byte."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Closings:
    """Rows that a reader closes because its own device is already decided.

    Parameters
    ----------
    row
        int64 (closings,): the row that is closed. Where it is not open, nothing happens.
    after
        int64 (closings,): how many rows were pushed before; never falling.
    crossing_ns
        uint64 (closings, slots, scenarios): the time from the row's slot to that reader.
    """

    row: Indices
    after: Indices
    crossing_ns: Times


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacementProblem:
    """The rows of a placement DP in topological order, and their times in each scenario.

    The structure is NumPy arrays; the times may be NumPy's or CuPy's. The scenario axis comes last,
    so that the arithmetic runs along it in memory; its length is that of `cost_ns`, or 1 in any
    other array that all scenarios share. A slot is a position in a row's own list of devices,
    preferred first: among equals the lowest slot is taken.

    Parameters
    ----------
    first_edge
        int64 (rows + 1,): row ``r`` reads the edges ``first_edge[r] : first_edge[r + 1]``.
    producer
        int64 (edges,): the row that an edge reads, below its reader. There is one edge between two
        rows; where a value is read twice, its crossing is priced twice.
    crossing
        int64 (edges,): the entry of `crossing_ns` that prices an edge.
    cost_ns
        uint64 (rows, slots, scenarios): each row's own time, with the transfers of inputs whose
        residency is known beforehand. Not read at slots that are not available.
    crossing_ns
        uint64 (crossings, slots, slots, scenarios): from the producer's slot to the reader's slot.
    exit_ns
        uint64 (rows, slots, scenarios): the way out of rows that no row chains; None without one.
    available
        bool (rows, slots, scenarios): where a row can run at all, somewhere in every scenario;
        None where every row can run at every slot.
    closings
        The closed rows; None where there are none.

    Raises
    ------
    UsageError
        Where an array has another type or shape or an index is out of range; it names the array.
    """

    first_edge: Indices
    producer: Indices
    crossing: Indices
    cost_ns: Times
    crossing_ns: Times
    exit_ns: Times | None = None
    available: NDArray[np.bool_] | None = None
    closings: Closings | None = None

    def __post_init__(self) -> None:
        _check_shape("cost_ns", self.cost_ns, (None, None, None))
        if not 1 <= self.slots <= MAX_SLOTS:
            raise UsageError(f"cost_ns has {self.slots} slots; a row has 1 to {MAX_SLOTS}")
        rows, slots, scenarios = self.rows, self.slots, (1, self.scenarios)
        _check_shape("crossing_ns", self.crossing_ns, (None, slots, slots, scenarios))
        if self.exit_ns is not None:
            _check_shape("exit_ns", self.exit_ns, (rows, slots, scenarios))
        if self.available is not None:
            _check_shape("available", self.available, (rows, slots, scenarios), np.bool_)
            runs = self.available.any(axis=1)
            if not bool(runs.all()):
                row, scenario = divmod(int((~runs).argmax()), runs.shape[1])
                raise UsageError(f"available leaves row {row} no slot in scenario {scenario}")
        self._check_edges()
        if self.closings is not None:
            self._check_closings(self.closings)

    @property
    def rows(self) -> int:
        """How many rows."""
        return int(self.cost_ns.shape[0])

    @property
    def slots(self) -> int:
        """How many slots a row has."""
        return int(self.cost_ns.shape[1])

    @property
    def scenarios(self) -> int:
        """How many scenarios."""
        return int(self.cost_ns.shape[2])

    def _check_edges(self) -> None:
        _check_array("producer", self.producer)
        edges = self.producer.size
        _check_indices("first_edge", self.first_edge, self.rows + 1, edges + 1)
        _check_indices("producer", self.producer, edges, self.rows)
        _check_indices("crossing", self.crossing, edges, int(self.crossing_ns.shape[0]))
        counts = np.diff(self.first_edge)
        if self.first_edge[0] != 0 or self.first_edge[-1] != edges or counts.min(initial=0) < 0:
            raise UsageError(f"first_edge must rise from 0 to the number of edges, {edges}")
        reader = np.repeat(np.arange(self.rows), counts)
        late = np.flatnonzero(self.producer >= reader)
        if len(late):
            raise UsageError(
                f"producer[{late[0]}] is row {self.producer[late[0]]}, which does not come before "
                f"its reader, row {reader[late[0]]}: give the rows in topological order"
            )
        pairs = np.sort(reader * self.rows + self.producer)
        twice = pairs[1:][pairs[1:] == pairs[:-1]]
        if len(twice):
            raise UsageError(
                f"row {twice[0] // self.rows} reads row {twice[0] % self.rows} by several edges: "
                "give one, with the sum of their crossings"
            )

    def _check_closings(self, closings: Closings) -> None:
        if not isinstance(closings, Closings):
            raise UsageError(f"closings: {closings!r:.60} is no Closings")
        _check_array("closings.row", closings.row)
        count = closings.row.size
        _check_indices("closings.row", closings.row, count, self.rows)
        _check_indices("closings.after", closings.after, count, self.rows + 1)
        if np.any(np.diff(closings.after) < 0):
            raise UsageError("closings.after falls: give the closings in the order they happen")
        shape = (count, self.slots, (1, self.scenarios))
        _check_shape("closings.crossing_ns", closings.crossing_ns, shape)


def _check_array(name: str, array: object) -> None:
    if not all(hasattr(array, each) for each in ("dtype", "shape", "ndim")):
        raise UsageError(
            f"{name} is a {type(array).__name__}; it must be an array: make one with numpy.array"
        )


def _check_shape(
    name: str,
    array: Any,
    wanted: tuple[int | tuple[int, int] | None, ...],
    dtype: type[np.generic] = np.uint64,
) -> None:
    """Hold an array to a type and a shape; an axis may be any length, one, or one of two."""
    _check_array(name, array)
    fits = array.dtype == dtype and array.ndim == len(wanted)
    if not fits or not all(
        axis is None or length == axis or (isinstance(axis, tuple) and length in axis)
        for length, axis in zip(array.shape, wanted, strict=True)
    ):
        axes = ", ".join(
            "any" if a is None else " or ".join(map(str, a)) if isinstance(a, tuple) else str(a)
            for a in wanted
        )
        raise UsageError(
            f"{name} is {array.dtype} of shape {tuple(array.shape)}; "
            f"it must be {np.dtype(dtype)} of shape ({axes})"
        )


def _check_indices(name: str, indices: Indices, count: int, bound: int) -> None:
    _check_array(name, indices)
    if indices.dtype != np.int64 or indices.shape != (count,):
        raise UsageError(
            f"{name} is {indices.dtype} of shape {indices.shape}; "
            f"it must be int64 of shape ({count},)"
        )
    if count and not 0 <= indices.min() <= indices.max() < bound:
        wrong = int(np.argmax((indices < 0) | (indices >= bound)))
        raise UsageError(f"{name}[{wrong}] is {indices[wrong]}; it must be in 0 .. {bound - 1}")
