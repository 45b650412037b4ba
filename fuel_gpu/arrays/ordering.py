"""Order-preserving integer codes of columns, and fast lexicographic orders over them."""

from collections.abc import Sequence
from typing import Any

from fuel_gpu.errors import UsageError

_WORD_BITS = 64


def ordered_codes(column: Any, xp: Any) -> Any:
    """Map a real column to uint64 codes that compare as its values do, the smallest being 0.

    Integers keep their distances, and so do floats that all hold integers below 2**53: small
    spans are what packing and lattices live on. Other floats map by their bits. Equal values,
    0.0 and -0.0 among them, give equal codes.

    Parameters
    ----------
    column
        1-D array of booleans, integers or floats, without NaN.
    xp
        The module that made it.

    Raises
    ------
    UsageError
        If the dtype has no order of real numbers.
    """
    kind = column.dtype.kind
    if kind == "f":
        column = column.astype(xp.float64)
        as_integers = _exact_integers(column, xp)
        codes = _float_bits(column, xp) if as_integers is None else as_integers
    elif kind in "bu":
        codes = column.astype(xp.uint64)
    elif kind == "i":
        codes = _unsigned(column.astype(xp.int64), xp)
    else:
        raise UsageError(f"cannot order values of dtype {column.dtype}: use integers or floats")
    return codes - codes.min()


def _exact_integers(column: Any, xp: Any) -> Any | None:
    bound = 2.0**53
    if not bool((xp.abs(column) < bound).all()):
        return None
    integers = column.astype(xp.int64)
    return _unsigned(integers, xp) if bool((integers == column).all()) else None


def _unsigned(integers: Any, xp: Any) -> Any:
    return integers.view(xp.uint64) ^ xp.uint64(1 << 63)


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


def lexicographic_order(columns: Sequence[Any], xp: Any) -> Any:
    """Give the stable order by the first column, then the second, and so on.

    Columns are packed into as few 64-bit words as they need. One word is sorted; only rows that
    tie in it are sorted again, by the next one, so that wide keys cost little where the
    first decides.

    Parameters
    ----------
    columns
        uint64 codes as `ordered_codes` gives, equally long, the most significant first.

    Returns
    -------
    int64 array
        Positions, first to last; rows that are equal everywhere keep their order.
    """
    return _order_of_words(_packed(columns), columns[0].size, xp)


def _packed(columns: Sequence[Any]) -> list[tuple[Any, int]]:
    """Pack columns into words of at most 64 bits; each word comes with its bits."""
    words: list[tuple[Any, int]] = []
    for column in columns:
        bits = span(column).bit_length()
        if words and words[-1][1] + bits <= _WORD_BITS:
            if bits:
                word, width = words[-1]
                words[-1] = (word << word.dtype.type(bits) | column, width + bits)
        else:
            words.append((column, bits))
    return words


def _order_of_words(words: list[tuple[Any, int]], count: int, xp: Any) -> Any:
    word, bits = words[0]
    position_bits = max(count - 1, 1).bit_length()
    if len(words) == 1 and bits + position_bits <= _WORD_BITS:
        shift = xp.uint64(position_bits)
        keyed = xp.sort((word << shift) | xp.arange(count, dtype=xp.uint64))
        return (keyed & xp.uint64((1 << position_bits) - 1)).astype(xp.int64)
    order = xp.argsort(word)
    ordered = word[order]
    ties = ordered[1:] == ordered[:-1]
    if not bool(ties.any()):
        return order
    in_run = xp.zeros(count, dtype=bool)
    in_run[1:] = ties
    in_run[:-1] |= ties
    runs = xp.zeros(count, dtype=xp.uint64)
    runs[1:] = xp.cumsum(~ties)
    slots = xp.flatnonzero(in_run)
    rows, run = order[slots], runs[slots]
    # Rows of a run in ascending position, so that the order below is stable.
    by_position = xp.argsort(rows)
    rows, run = rows[by_position], run[by_position]
    run_bits = span(runs).bit_length()
    rest = [(each[rows], width) for each, width in words[1:]]
    if rest:
        tied, width = rest[0]
        if run_bits + width > _WORD_BITS:
            tied = dense_ranks(tied, xp)
            width = span(tied).bit_length()
        rest[0] = (run << xp.uint64(width) | tied, run_bits + width)
    else:
        rest = [(run, run_bits)]
    order[slots] = rows[_order_of_words(rest, rows.size, xp)]
    return order
