"""Order-preserving integer codes of columns, and fast lexicographic orders over them."""

from collections.abc import Sequence
from typing import Any

from fuel_gpu.arrays.engine import Engine
from fuel_gpu.errors import UsageError

_WORD_BITS = 64


def ordered_codes(column: Any, xp: Any) -> Any:
    """Map a real column to unsigned codes that compare as its values do, the smallest being 0.

    Integers keep their distances, and so do floats that all hold integers below 2**53: small
    spans are what packing and lattices live on. Other floats map by their bits. Equal values,
    0.0 and -0.0 among them, give equal codes.

    Parameters
    ----------
    column
        1-D array of booleans, integers or floats, without NaN.
    xp
        The module that made it.

    Returns
    -------
    unsigned array
        As wide as the column's integers; uint64 for floats.

    Raises
    ------
    UsageError
        If the dtype has no order of real numbers.
    """
    kind = column.dtype.kind
    if kind == "f":
        column = column.astype(xp.float64, copy=False)
        as_integers = _exact_integers(column, xp)
        codes = _float_bits(column, xp) if as_integers is None else as_integers
    elif kind == "b":
        codes = column.astype(xp.uint8)
    elif kind == "u":
        return column - column.min()
    elif kind == "i":
        codes = _unsigned(column, xp)
    else:
        raise UsageError(f"cannot order values of dtype {column.dtype}: use integers or floats")
    codes -= codes.min()
    return codes


def _exact_integers(column: Any, xp: Any) -> Any | None:
    if not bool(xp.maximum(column.max(), 0.0 - column.min()) < 2.0**53):
        return None
    integers = column.astype(xp.int64)
    return _unsigned(integers, xp) if bool((integers == column).all()) else None


def _unsigned(integers: Any, xp: Any) -> Any:
    unsigned = {1: xp.uint8, 2: xp.uint16, 4: xp.uint32, 8: xp.uint64}[integers.dtype.itemsize]
    sign = unsigned(1 << (8 * integers.dtype.itemsize - 1))
    return integers.view(unsigned) ^ sign


def _float_bits(column: Any, xp: Any) -> Any:
    bits = (column + 0.0).view(xp.uint64)
    sign = xp.uint64(1 << 63)
    # Negative numbers order downwards by their bits, positive ones upwards and above them.
    return xp.where(bits >= sign, ~bits, bits | sign)


def span(codes: Any) -> int:
    """Give the largest code; the smallest is 0."""
    return int(codes.max()) if codes.size else 0


def dense_ranks(codes: Any, xp: Any) -> Any:
    """Number the distinct codes from 0 in ascending order, as uint64."""
    order = xp.argsort(codes)
    ordered = codes[order]
    steps = xp.zeros(codes.size, dtype=xp.uint64)
    steps[1:] = ordered[1:] != ordered[:-1]
    ranks = xp.empty(codes.size, dtype=xp.uint64)
    ranks[order] = xp.cumsum(steps)
    return ranks


def number_dtype(bound: int, engine: Engine) -> Any:
    """Give the dtype for numbers from 0 to `bound`: on a CPU the narrowest, else int64."""
    xp = engine.xp
    if engine.kernels is None:
        for dtype, bits in ((xp.uint8, 8), (xp.uint16, 16), (xp.uint32, 32)):
            if bound >> bits == 0:
                return dtype
    return xp.int64


def compact_numbers(codes: Any, engine: Engine) -> Any:
    """Number the distinct codes in ascending order, with few numbers left unused."""
    top = span(codes)
    if top > 4 * codes.size:
        codes = dense_ranks(codes, engine.xp)
        top = span(codes)
    return codes.astype(number_dtype(top, engine), copy=False)


def numbered_runs(column: Any, engine: Engine) -> tuple[Any, Any, Any]:
    """Find the runs of equal values of a column that is not empty.

    Returns
    -------
    starts, counts
        (runs,) int64: where each run begins, and how long it is.
    number
        (n,) integers: the run of each place, from 0.
    """
    xp = engine.xp
    fresh = xp.ones(column.size + 1, dtype=bool)
    fresh[1:-1] = column[1:] != column[:-1]
    edges = xp.flatnonzero(fresh)
    starts = edges[:-1]
    fresh[0] = False
    number = xp.cumsum(fresh[:-1], dtype=number_dtype(starts.size - 1, engine))
    return starts, edges[1:] - starts, number


def lexicographic_order(columns: Sequence[Any], xp: Any) -> Any:
    """Give the stable order by the first column, then the second, and so on.

    As many leading bits of the columns as fit beside a row's position are packed into one word, and
    the words are sorted. Only rows that tie in them are sorted again, by the rest, so that wide
    keys cost little where their beginning decides.

    Parameters
    ----------
    columns
        Integers from 0, as `ordered_codes` gives, equally long; the most significant first.

    Returns
    -------
    int64 array
        Positions, first to last; rows that are equal everywhere keep their order.
    """
    count = columns[0].size
    position_bits = max(count - 1, 1).bit_length()
    word, rest = _leading_word(columns, _WORD_BITS - position_bits, xp)
    shift = xp.uint64(position_bits)
    word <<= shift
    word |= xp.arange(count, dtype=xp.uint64)
    word.sort()
    order = (word & xp.uint64((1 << position_bits) - 1)).view(xp.int64)
    if not rest:
        return order
    word >>= shift
    ties = word[1:] == word[:-1]
    if not bool(ties.any()):
        return order
    del word
    in_run = xp.zeros(count, dtype=bool)
    in_run[1:] = ties
    in_run[:-1] |= ties
    slots = xp.flatnonzero(in_run)
    fresh = xp.ones(count, dtype=bool)
    fresh[1:] = ~ties
    run = xp.cumsum(fresh[slots], dtype=xp.uint64)
    rows = order[slots]
    order[slots] = rows[lexicographic_order([run, *(each[rows] for each in rest)], xp)]
    return order


def _leading_word(columns: Sequence[Any], room: int, xp: Any) -> tuple[Any, list[Any]]:
    """Pack the leading bits that have room into a new word; what is left are columns again."""
    word: Any | None = None
    for place, column in enumerate(columns):
        bits = span(column).bit_length()
        taken = min(bits, room)
        left = bits - taken
        if taken:
            leading = column.astype(xp.uint64, copy=left == 0 and word is None)
            if left:
                leading = leading >> xp.uint64(left)
            if word is None:
                word = leading
            else:
                word <<= xp.uint64(taken)
                word |= leading
            room -= taken
        if left:
            low = column & xp.uint64((1 << left) - 1) if taken else column
            return word, [low, *columns[place + 1 :]]
    return xp.zeros(columns[0].size, dtype=xp.uint64) if word is None else word, []
