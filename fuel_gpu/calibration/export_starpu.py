"""StarPU's bus files: bandwidths and latencies between memory nodes, as matrices of numbers."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fuel_gpu.calibration.export_matrix import Cell, Paths, host_memory_kinds
from fuel_gpu.calibration.table import Table
from fuel_gpu.sizes import size_text

_SIZE_BYTES: Final = 32 * 2**20
"""StarPU takes its bandwidths from copies of this size."""

_LATENCY_BYTES: Final = 1

_NODE_BACKENDS: Final = ("cpu", "cuda", "opencl")
"""StarPU numbers its memory nodes by kind, in this order."""

_MEMORY_ORDER: Final = ("pinned", "mapped", "pageable")
"""StarPU pins the memory that it copies from, and measures from pinned memory itself."""


def starpu_files(table: Table, host: str) -> tuple[dict[str, str], list[str]]:
    """Give the texts of ``<host>.bandwidth`` and ``<host>.latency``, and what they leave out.

    Parameters
    ----------
    table
        Whose copies.
    host
        The name under which StarPU looks for its files: the machine's host name without its
        domain, or what STARPU_HOSTNAME says.

    Notes
    -----
    Lines of comment with a ``#`` in front, then a row a source node: bandwidths in MB/s (bytes a
    microsecond), latencies in microseconds, 0 on the diagonal, nan where nothing is known, tabs
    between. Format: StarPU 1.3 and 1.4, ``src/core/perfmodel/perfmodel_bus.c``, and the files that
    ``starpu_calibrate_bus`` writes. StarPU's reader loses the last number of a row that is shorter
    than the most nodes it was built for, so a row and a column of nan follow.
    """
    nodes = sorted(
        (d for d in table.devices if d.backend in _NODE_BACKENDS),
        key=lambda d: (_NODE_BACKENDS.index(d.backend), d.device.index),
    )
    left_out = [
        f"{d.id} is left out: StarPU has no memory node for the backend {d.backend}"
        for d in table.devices
        if d.backend not in _NODE_BACKENDS
    ]
    known = host_memory_kinds(table)
    preferred = [kind for kind in _MEMORY_ORDER if kind in known]
    paths = Paths(table, [*preferred, *(kind for kind in known if kind not in preferred)])
    ids = [node.id for node in nodes]
    bandwidths = paths.cells(ids, _SIZE_BYTES)
    latencies = paths.cells(ids, _LATENCY_BYTES)
    doubts = list(_doubts(ids, bandwidths))
    head = [f"fuel-gpu: {table.machine.cpu or table.machine.fingerprint}, {table.created}"]
    head += [f"node {place}: {node.id}, {node.name}" for place, node in enumerate(nodes)]
    files = {
        f"{host}.bandwidth": _text(
            [*head, f"MB/s, copies of {size_text(_SIZE_BYTES)}", *doubts], bandwidths, _mb_per_s
        ),
        f"{host}.latency": _text(
            [*head, "microseconds, the fitted curves towards zero bytes", *doubts],
            *(latencies, lambda cell: cell.ns / 1000),
        ),
    }
    return files, left_out + doubts


def _mb_per_s(cell: Cell) -> float:
    return _SIZE_BYTES * 1000 / cell.ns


def _doubts(ids: Sequence[str], cells: Sequence[Sequence[Cell | None]]) -> Iterator[str]:
    """Name the pairs that were not measured at exactly the bandwidth's size."""
    for src, row in zip(ids, cells, strict=True):
        for dst, cell in zip(ids, row, strict=True):
            if src != dst and (cell is None or not cell.is_measured):
                yield f"{src} to {dst}: {'not known' if cell is None else cell}"


def _text(
    comments: Sequence[str],
    cells: Sequence[Sequence[Cell | None]],
    value: Callable[[Cell], float],
) -> str:
    count = len(cells)
    rows = [[math.nan if cell is None else value(cell) for cell in row] for row in cells]
    for place, row in enumerate(rows):
        row[place] = 0.0
    padded = [*([*row, math.nan] for row in rows), [math.nan] * (count + 1)]
    heads = "".join(f"to {column}\t\t" for column in range(count + 1))
    lines = [f"# {' '.join(comment.split())}" for comment in comments]
    lines += [f"# {heads}", *("\t".join(f"{number:e}" for number in row) for row in padded)]
    return "\n".join(lines) + "\n"
