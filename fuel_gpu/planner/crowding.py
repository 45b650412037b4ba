"""The crowding cap: thin a frontier to a bound while keeping its spread."""

from typing import Any

import numpy as np


def crowding_cap(
    points: Any, keep: int, *, groups: Any = None, labels: Any = None, protected: Any = None
) -> Any:
    m = len(points)
    assert groups is None
    labels = np.zeros(m, int) if labels is None else labels
    protected = np.zeros(m, bool) if protected is None else protected
    alive = list(range(m))
    pts = np.asarray(points).astype(np.float64)
    while len(alive) > keep:
        k = len(alive)
        p = pts[alive]
        dist = np.zeros(k)
        if k <= 2:
            dist[:] = np.inf
        else:
            for axis in range(p.shape[1]):
                order = np.argsort(p[:, axis], kind="stable")
                v = p[order, axis]
                r = v[-1] - v[0]
                dist[order[0]] = dist[order[-1]] = np.inf
                if r > 0:
                    dist[order[1:-1]] += (v[2:] - v[:-2]) / r
        counts = np.bincount(labels[alive])
        ok = ~protected[alive] & (counts[labels[alive]] > 1)
        if not ok.any():
            break
        cand = np.nonzero(ok)[0]
        alive.pop(int(cand[np.argmin(dist[cand])]))
    mask = np.zeros(m, bool)
    mask[alive] = True
    return mask
