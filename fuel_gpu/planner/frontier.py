"""Pareto dominance in groups of any size."""

from typing import Any

import numpy as np

from fuel_gpu.planner.crowding import crowding_cap as crowding_cap


def pareto_mask(points: Any, groups: Any = None) -> Any:
    p = np.asarray(points)
    assert groups is None
    out = np.ones(len(p), bool)
    for i in range(len(p)):
        out[i] = not np.any(np.all(p <= p[i], axis=1) & np.any(p < p[i], axis=1))
    return out
