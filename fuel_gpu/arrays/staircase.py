"""Dominance on two wide axes and a small lattice of discrete ones, by block-wise prefix minima.

Points are sorted by the first wide axis, so whatever dominates a point stands before it. They
are cut into blocks of `BLOCK`. A table holds, for each block and each cell of the lattice, the
least value of the second wide axis in all blocks before, in this cell or a better one: one look-up
decides whether an earlier block dominates a point. Inside a block points are compared pairwise,
one distance at a time. For n points and a lattice of K cells that is n log n for the sort, n * K /
BLOCK for the table and n * BLOCK / 2 for the pairs; the table takes 8 * n * K / BLOCK bytes.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from fuel_gpu.arrays.engine import Engine

BLOCK: Final = 64
"""Points in a block."""

LARGEST_LATTICE: Final = 256
"""Cells of the largest lattice taken: at 64 points a block, 32 bytes of table a point."""

_WORST: Final = 2**64 - 1


def dominated_by_earlier(
    values: Any, lattice: Sequence[Any], sizes: Sequence[int], engine: Engine
) -> Any:
    """Whether an earlier point is no larger in value and in every lattice axis.

    Parameters
    ----------
    values
        (n,) uint64.
    lattice
        (n,) uint8 arrays of coordinates, at least one.
    sizes
        Coordinates run below these; their product is at most `LARGEST_LATTICE`.
    engine
        Runs the passes.

    Returns
    -------
    bool array
        (n,).
    """
    cells = lattice[0]
    for axis, size in zip(lattice[1:], sizes[1:], strict=True):
        cells = cells * size + axis
    dominated = _in_earlier_blocks(values, cells, sizes, engine)
    dominated |= dominated_in_block(values, lattice, engine)
    return dominated


def dominated_in_block(values: Any, others: Sequence[Any], engine: Engine) -> Any:
    """Whether an earlier point of the same block of `BLOCK` is no larger in any array."""
    xp = engine.xp
    count = values.size
    dominated = xp.zeros(count, dtype=bool)
    for chunk in engine.chunks(-(-count // BLOCK), 8 * BLOCK):
        part = slice(chunk.start * BLOCK, chunk.stop * BLOCK)
        dominated[part] = _in_blocks_of(values[part], [each[part] for each in others], engine)
    return dominated


def _in_earlier_blocks(values: Any, cells: Any, sizes: Sequence[int], engine: Engine) -> Any:
    xp = engine.xp
    count, size = values.size, prod(sizes)
    blocks = -(-count // BLOCK)
    if blocks == 1:
        return xp.zeros(count, dtype=bool)

    def entries(part: slice) -> Any:
        return xp.arange(part.start, part.stop) // BLOCK * size + cells[part]

    # Row b of the table is what blocks 0 to b - 1 hold; the last block's own row is not needed.
    least = xp.full(blocks * size, xp.uint64(_WORST), dtype=xp.uint64)
    for part in engine.chunks((blocks - 1) * BLOCK, 8):
        xp.minimum.at(least[size:], entries(part), values[part])
    table = engine.prefix_min(least.reshape(blocks, *sizes), axis=0)
    for axis in range(1, table.ndim):
        if sizes[axis - 1] > 1:
            table = engine.prefix_min(table, axis=axis)
    table = table.reshape(-1)
    found = xp.empty(count, dtype=bool)
    for part in engine.chunks(count, 8):
        found[part] = table[entries(part)] <= values[part]
    found[:BLOCK] = False
    return found


def _in_blocks_of(values: Any, others: Sequence[Any], engine: Engine) -> Any:
    xp = engine.xp
    count = values.size
    # Transposed, so that a comparison at one distance is one pass over adjacent memory.
    value = _by_place(values, engine)
    axes = [_by_place(axis, engine) for axis in others]
    dominated = xp.zeros(value.shape, dtype=bool)
    for distance in range(1, min(BLOCK, count)):
        found = value[:-distance] <= value[distance:]
        if not engine.may_hold(found):
            continue
        for axis in axes:
            found &= axis[:-distance] <= axis[distance:]
        dominated[distance:] |= found
    return dominated.T.reshape(-1)[:count]


def _by_place(column: Any, engine: Engine) -> Any:
    """Lay a column out as (place in block, block); short blocks end in the worst value."""
    xp = engine.xp
    blocks = -(-column.size // BLOCK)
    padded = column
    if blocks * BLOCK != column.size:
        padded = xp.full(blocks * BLOCK, 255, dtype=column.dtype)
        padded[: column.size] = column
    return xp.ascontiguousarray(padded.reshape(blocks, BLOCK).T)
