"""All candidates of all decision points as arrays, ranked and retained at once."""

from dataclasses import dataclass, fields
from typing import Any, Final

from fuel_gpu.arrays.engine import Engine, EngineName, choose_engine, given_array, is_on_gpu, run
from fuel_gpu.arrays.ordering import (
    dense_ranks,
    lexicographic_order,
    number_dtype,
    numbered_runs,
    ordered_codes,
    span,
)
from fuel_gpu.errors import UsageError
from fuel_gpu.numbers import whole_number
from fuel_gpu.planner.alternative_set import KEEP_PER_DEVICE
from fuel_gpu.planner.cost_columns import CostColumns, Marks
from fuel_gpu.planner.cost_vector import MOST_DIGITS, AccuracyClass
from fuel_gpu.planner.crowded_buckets import cap_crowded_buckets
from fuel_gpu.planner.large_nodes import mark_large_nodes
from fuel_gpu.planner.small_nodes import LARGEST, mark_small_nodes

_DTYPES: Final = {
    "time_ns": "uint64",
    "host_bytes": "uint64",
    "device_bytes": "uint64",
    "precision": "uint8",
    "accuracy": "uint8",
}

_MOST: Final = {"precision": MOST_DIGITS, "accuracy": AccuracyClass.EXACT.rank()}
"""The best that a kernel can promise."""


@dataclass(frozen=True, slots=True)
class CandidateTable:
    """One row a candidate; the candidates of a node are its alternative set.

    Parameters
    ----------
    node
        (n,) integers: which decision point the candidate is for. Any numbers, in any order.
    device
        (n,) integers: a code for the device where the result will lie.
    backend
        (n,) integers: a code for how the kernel is driven.
    time_ns
        (n,) uint64: roofline and inbound transfer, nanoseconds.
    host_bytes, device_bytes
        (n,) uint64: bytes moved in each memory tier.
    precision
        (n,) uint8: digits promised, 0 to 18; higher is better.
    accuracy
        (n,) uint8: accuracy class, 0 to 4; higher is better.
    """

    node: Any
    device: Any
    backend: Any
    time_ns: Any
    host_bytes: Any
    device_bytes: Any
    precision: Any
    accuracy: Any

    def __len__(self) -> int:
        return len(self.node)


@dataclass(frozen=True, slots=True)
class Retained:
    """What each node keeps.

    Parameters
    ----------
    rows
        (kept,) int64 indices into the table: nodes in ascending order, within a node ranked, the
        winner first.
    nodes
        (nodes,) int64, the nodes in ascending order.
    node_starts
        (nodes + 1,) int64: node ``nodes[i]`` keeps ``rows[node_starts[i]:node_starts[i + 1]]``.
    """

    rows: Any
    nodes: Any
    node_starts: Any


def rank_and_retain(
    table: CandidateTable,
    keep: int = KEEP_PER_DEVICE,
    *,
    engine: EngineName | Engine | None = None,
    crossover: int | None = None,
) -> Retained:
    """Rank every node's candidates, and keep each device's frontier, at most `keep` of it.

    Equal, node for node, to `AlternativeSet.rank_by_cost` and `retain_per_device_frontier`. Nodes
    of up to 16 candidates take a fixed number of passes over blocks of nodes; larger ones are
    sorted. Beside the table it takes about 40 bytes a candidate; 60 to 90 a candidate of a large
    node, and 120 where all of it lies on frontiers that are cut; 40 more where the nodes are not in
    ascending order.

    Parameters
    ----------
    table
        The candidates.
    keep
        Bound for each (node, device); 0 counts as 1. As nothing is stranded, a device with more
        backends than that keeps one of each, and the winner.

    engine, crossover
        Where to run, as `fuel_gpu.arrays.engine.choose_engine` takes them; the crossover is in
        candidates.

    Returns
    -------
    Retained
        Where the table lies.

    Raises
    ------
    UsageError
        If a column has another length, dtype or range than the table's docstring says, or `keep`
        is no whole number from 0.
    """
    keep = max(whole_number(keep, "keep"), 1)
    if not isinstance(table, CandidateTable):
        raise UsageError(f"table: {table!r:.60} is no CandidateTable")
    names = [field.name for field in fields(table)]
    table = CandidateTable(*(given_array(getattr(table, n), f"column {n}") for n in names))
    on_gpu = is_on_gpu(table.node)
    chosen = choose_engine(engine, work=len(table), crossover=crossover, on_gpu=on_gpu)

    def program(engine: Engine) -> Retained:
        kept = _rank_and_retain(_checked(table, engine), keep, engine)
        if on_gpu:
            return kept
        return Retained(*map(engine.give_out, (kept.rows, kept.nodes, kept.node_starts)))

    return run(program, chosen)


def _rank_and_retain(table: CandidateTable, keep: int, engine: Engine) -> Retained:
    xp = engine.xp
    if not len(table):
        empty = xp.zeros(0, dtype=xp.int64)
        return Retained(empty, empty, xp.zeros(1, dtype=xp.int64))
    node = table.node
    order = None
    if not bool((node[1:] >= node[:-1]).all()):
        order = lexicographic_order([ordered_codes(node, xp)], xp)
        node = node[order]
    columns = _columns(table, order, xp)
    starts, counts, number = numbered_runs(node, engine)
    largest = int(counts.max())
    rank_dtype = xp.uint8 if largest <= LARGEST else number_dtype(largest - 1, engine)
    marks = Marks(
        xp.zeros(node.size, dtype=bool),
        xp.zeros(node.size, dtype=rank_dtype),
        xp.zeros(node.size, dtype=xp.uint8),
    )
    mark_small_nodes(columns, starts, counts, marks, engine)
    if largest > LARGEST:
        rows = _rows_of_large(counts, number, xp)
        mark_large_nodes(columns, rows, number[rows], marks, engine)
    if largest > keep:
        cap_crowded_buckets(columns, number, counts, keep, marks, engine)
    node_starts = xp.zeros(starts.size + 1, dtype=xp.int64)
    up_to = xp.cumsum(marks.kept, dtype=number_dtype(node.size, engine))
    node_starts[1:] = up_to[starts + counts - 1]
    del up_to
    kept = xp.flatnonzero(marks.kept)
    slots = xp.full(node.size, -1, dtype=xp.int64)
    place = starts[number[kept]]
    place += marks.rank[kept]
    slots[place] = kept
    del kept, place
    rows = slots[slots >= 0]
    return Retained(rows if order is None else order[rows], node[starts], node_starts)


def _checked(table: CandidateTable, engine: Engine) -> CandidateTable:
    """Make every column an array of its dtype."""
    xp = engine.xp
    columns = []
    for field in fields(table):
        column = engine.take_in(getattr(table, field.name))
        dtype = _DTYPES.get(field.name)
        if column.shape != (len(table),) or column.dtype.kind not in "ui":
            raise UsageError(
                f"column {field.name} must be {len(table)} integers, one a candidate, "
                f"not shape {column.shape} of {column.dtype}"
            )
        if dtype is not None and column.dtype != dtype:
            largest = xp.iinfo(dtype).max
            if column.size and (int(column.min()) < 0 or int(column.max()) > largest):
                raise UsageError(f"column {field.name} has a value that {dtype} does not hold")
            column = column.astype(dtype)
        most = _MOST.get(field.name)
        if most is not None and column.size and int(column.max()) > most:
            row = int(column.argmax())
            raise UsageError(
                f"column {field.name} has {int(column[row])} in row {row}: it goes from 0 to {most}"
            )
        columns.append(column)
    return CandidateTable(*columns)


def _rows_of_large(counts: Any, number: Any, xp: Any) -> Any:
    """Rows of the nodes that are not small, as an index that takes all rows without a copy."""
    large = counts > LARGEST
    return slice(None) if bool(large.all()) else xp.flatnonzero(large[number])


def _columns(table: CandidateTable, order: Any | None, xp: Any) -> CostColumns:
    device, devices = _small_codes(table.device, order, xp)
    backend, backends = _small_codes(table.backend, order, xp)
    wide = _code_dtype(devices * backends, xp)
    pair = device.astype(wide) * wide(backends) + backend
    if wide is xp.uint64:
        pair = dense_ranks(pair, xp)
    pairs = span(pair) + 1
    return CostColumns(
        time_ns=_in_order(table.time_ns, order),
        host_bytes=_in_order(table.host_bytes, order),
        device_bytes=_in_order(table.device_bytes, order),
        precision=_in_order(table.precision, order),
        accuracy=_in_order(table.accuracy, order),
        device=device,
        pair=pair.astype(_code_dtype(pairs, xp)),
        no_device=devices,
        no_pair=pairs,
    )


def _small_codes(column: Any, order: Any | None, xp: Any) -> tuple[Any, int]:
    """Order-preserving codes in few bits, and how many there may be."""
    codes = ordered_codes(_in_order(column, order), xp)
    if span(codes) >= 4096:
        codes = dense_ranks(codes, xp)
    many = span(codes) + 1
    return codes.astype(_code_dtype(many, xp)), many


def _code_dtype(unused: int, xp: Any) -> Any:
    if unused < 256:
        return xp.uint8
    return xp.uint16 if unused < 65536 else xp.uint64


def _in_order(column: Any, order: Any | None) -> Any:
    return column if order is None else column[order]
