"""Drop most dominated points early: each group's most promising point against all of the group.

One pass scores every point by the sum of its coordinates, each scaled; the best score of a
group is its pivot, and a second pass drops what the pivot dominates. On random points one round
leaves a few in a hundred. Further rounds weight the axes unevenly, each in its own way, and so find
pivots elsewhere. Where a sample says that the first round would drop little, none is made.
"""

from collections.abc import Sequence
from typing import Any, Final

from fuel_gpu.arrays.engine import Engine

_SAMPLE: Final = 512
FEWEST: Final = 256  # measured: below, a round costs more than it saves
_ROUNDS: Final = 12
_ROUNDS_OF_GROUPS: Final = 1  # measured: a second one costs more than it saves
_IDLE: Final = 0.95  # a round that leaves more than this share was idle
_IDLE_ROUNDS: Final = 3  # stop after so many in a row
_TILT: Final = 64.0  # most that a later round favours one axis over another
_GOLDEN: Final = 0.6180339887498949  # its multiples fill 0 .. 1 evenly
_WORTHWHILE: Final = 0.2  # share of a sample that a round must drop


def survivors(columns: Sequence[Any], groups: Any | None, engine: Engine) -> Any | None:
    """Give the points left after dropping some that are dominated; None stands for all.

    Parameters
    ----------
    columns
        (n,) arrays, one an axis, all minimised, without NaN.
    groups
        (n,) group numbers from 0, or None where all points are of one group.
    engine
        Runs the passes.

    Returns
    -------
    int64 array or None
        Ascending indices. Every undominated point is among them, and every point that is left
        out is dominated by one that is not.
    """
    left: Any | None = None
    idle = 0
    for number in range(_ROUNDS if groups is None else _ROUNDS_OF_GROUPS):
        count = columns[0].size
        if count <= FEWEST or idle == _IDLE_ROUNDS:
            break
        weights = _weights(columns, groups, number, engine.xp)
        if weights is None:
            break
        kept = _round(columns, groups, weights, engine)
        idle = idle + 1 if kept.size > _IDLE * count else 0
        if kept.size < count:
            left = kept if left is None else left[kept]
            columns = [column[kept] for column in columns]
            groups = None if groups is None else groups[kept]
    return left


def _sample(columns: Sequence[Any], xp: Any) -> Any:
    stride = -(-columns[0].size // _SAMPLE)
    return xp.stack([column[::stride].astype(xp.float64) for column in columns])


def _weights(columns: Sequence[Any], groups: Any | None, number: int, xp: Any) -> Any | None:
    """Weights of the axes in a round; None where a first round is not worth making."""
    sample = _sample(columns, xp)
    lowest = sample.min(axis=1)
    spread = sample.max(axis=1) - lowest
    weights = 1.0 / xp.where(spread > 0.0, spread, 1.0)
    if number == 0:
        if groups is None:
            pivot = sample[:, (weights[:, None] * sample).sum(axis=0).argmin()][:, None]
            if float((sample >= pivot).all(axis=0).mean()) < _WORTHWHILE:
                return None
        return weights
    tilts = [_TILT ** (number * (axis + 1) * _GOLDEN % 1.0) for axis in range(len(columns))]
    return weights * xp.asarray(tilts)


def _round(columns: Sequence[Any], groups: Any | None, weights: Any, engine: Engine) -> Any:
    """Give the points left by one round."""
    xp = engine.xp
    # Dominated means worse somewhere: asked of the axis that rarely ties, so that few escape.
    sample = _sample(columns, xp)
    strict = int((sample == sample[:, sample.shape[1] // 2, None]).sum(axis=1).argmin())
    if groups is None:
        pivots = _scores(columns, weights, engine).argmin()
    else:
        pivots = _group_pivots(columns, groups, weights, xp)[groups]
    return _not_beaten(columns, pivots, strict, engine)


def _scores(columns: Sequence[Any], weights: Any, engine: Engine) -> Any:
    xp = engine.xp
    scores = xp.empty(columns[0].size, dtype=xp.float64)
    for part in engine.chunks(scores.size, 8):
        total = scores[part]
        xp.multiply(columns[0][part], weights[0], out=total)
        for column, weight in zip(columns[1:], weights[1:], strict=True):
            total += column[part] * weight
    return scores


def _group_pivots(columns: Sequence[Any], groups: Any, weights: Any, xp: Any) -> Any:
    """Index of each group's best point, every axis scaled by its mean in the group."""
    counts = xp.bincount(groups)
    scores = xp.zeros(groups.size, dtype=xp.float64)
    for column, weight in zip(columns, weights, strict=True):
        values = column.astype(xp.float64) * weight
        means = xp.bincount(groups, weights=values) / xp.maximum(counts, 1)
        scores += values / xp.where(means > 0.0, means, 1.0)[groups]
    best = xp.full(counts.size, xp.inf)
    xp.minimum.at(best, groups, scores)
    holders = xp.flatnonzero(scores == best[groups])
    pivots = xp.zeros(counts.size, dtype=xp.int64)
    pivots[groups[holders]] = holders
    return pivots


def _not_beaten(columns: Sequence[Any], pivots: Any, strict: int, engine: Engine) -> Any:
    """Indices of the points that their pivot does not dominate."""
    xp = engine.xp
    left = []
    for part in engine.chunks(columns[0].size, 8):
        pivot = pivots if pivots.ndim == 0 else pivots[part]
        beaten = columns[strict][part] > columns[strict][pivot]
        for axis, column in enumerate(columns):
            if axis != strict:
                beaten &= column[part] >= column[pivot]
        left.append(xp.flatnonzero(~beaten) + part.start)
    return xp.concatenate(left)
