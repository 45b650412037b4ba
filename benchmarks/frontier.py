"""Time the first front of cost vectors against the libraries people use for it.

``python benchmarks/frontier.py --figure frontier.svg --json frontier.json`` prints a table of
medians of one run on the same points. It stops with an error if a library finds another front.
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.planner.frontier import pareto_mask

Points = NDArray[np.float64]
Method = Callable[[Points], NDArray[np.bool_]]

LONGEST_SECONDS = 20.0
"""A library is left out of a size that it is expected to take longer for."""


def random_points(count: int, rng: np.random.Generator) -> Points:
    """Cost vectors at random: time, host memory, no device memory, digits, accuracy class."""
    return np.column_stack(
        [
            rng.integers(0, 10**9, count),
            rng.integers(0, 10**9, count),
            np.zeros(count),
            -rng.integers(0, 19, count),
            -rng.integers(0, 5, count),
        ]
    ).astype(np.float64)


def points_on_the_front(count: int, rng: np.random.Generator) -> Points:
    """Cost vectors none of which dominates another: the faster, the more memory."""
    points = random_points(count, rng)
    order = rng.permutation(count)
    points[order, 0] = np.cumsum(rng.integers(1, 1000, count))
    points[order, 1] = np.cumsum(rng.integers(1, 1000, count))[::-1]
    return points


def wide_points(count: int, rng: np.random.Generator) -> Points:
    """Points at random on five axes that all take many values: not what a planner has."""
    return rng.random((count, 5))


def simplex(count: int, rng: np.random.Generator) -> Points:
    """Points on a plane of five wide axes, all on the front."""
    weights = -np.log(rng.random((count, 5)))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


KINDS = {
    "random": random_points,
    "all on the front": points_on_the_front,
    "random, 5 wide axes": wide_points,
    "all on the front, 5 wide axes": simplex,
}


def methods() -> dict[str, Method]:
    """Ours, and the libraries that are installed."""
    found: dict[str, Method] = {"fuel-gpu": lambda points: pareto_mask(points, engine="numpy")}
    for name, loader in (
        ("moocore", _moocore),
        ("paretoset", _paretoset),
        ("pymoo", _pymoo),
        ("pygmo", _pygmo),
    ):
        try:
            method = loader()
        except ImportError:
            print(f"{name} is not installed and left out")
            continue
        method(random_points(64, np.random.default_rng(0)))  # compile and load what it needs
        found[name] = method
    return found


def _moocore() -> Method:
    import moocore

    return lambda points: np.asarray(moocore.is_nondominated(points, keep_weakly=True))


def _paretoset() -> Method:
    import paretoset

    return lambda points: np.asarray(paretoset.paretoset(points, distinct=False))


def _pymoo() -> Method:
    from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

    return lambda points: _mask(
        NonDominatedSorting().do(points, only_non_dominated_front=True), points
    )


def _pygmo() -> Method:
    import pygmo

    return lambda points: _mask(pygmo.fast_non_dominated_sorting(points)[0][0], points)


def _mask(indices: Any, points: Points) -> NDArray[np.bool_]:
    mask = np.zeros(len(points), dtype=bool)
    mask[np.asarray(indices, dtype=np.int64)] = True
    return mask


def median_seconds(method: Method, points: Points) -> tuple[float, NDArray[np.bool_]]:
    """Median of up to nine calls, or of as many as fit in two seconds."""
    times: list[float] = []
    while not times or (len(times) < 9 and sum(times) < 2.0):
        start = time.perf_counter()
        mask = method(points)
        times.append(time.perf_counter() - start)
    return statistics.median(times), mask


def measure(found: dict[str, Method], sizes: list[int], seed: int) -> list[dict[str, Any]]:
    """Time every method on every kind and size of data."""
    results = []
    for kind, make in KINDS.items():
        last: dict[str, tuple[int, float]] = {}
        for size in sizes:
            points = make(size, np.random.default_rng(seed))
            seconds: dict[str, float] = {}
            front: NDArray[np.bool_] | None = None
            for name, method in found.items():
                before = last.get(name)
                if before and before[1] * (size / before[0]) ** 2 > LONGEST_SECONDS:
                    continue
                seconds[name], mask = median_seconds(method, points)
                last[name] = (size, seconds[name])
                if front is None:
                    front = mask
                elif not np.array_equal(front, mask):
                    raise SystemExit(f"{name} finds another front: {kind}, {size} points")
            if front is None:
                continue
            fastest = min(
                (value for name, value in seconds.items() if name != "fuel-gpu"), default=None
            )
            ratio = None if fastest is None else fastest / seconds["fuel-gpu"]
            row = {"kind": kind, "points": size, "front": int(front.sum()), "seconds": seconds}
            results.append({**row, "times_as_fast_as_the_best_other": ratio})
            show(results[-1], list(found))
    return results


def show(row: dict[str, Any], names: list[str]) -> None:
    """Print one line of the table."""
    cells = [
        f"{row['seconds'][name] * 1e3:11.2f}" if name in row["seconds"] else f"{'-':>11}"
        for name in names
    ]
    ratio = row["times_as_fast_as_the_best_other"]
    shown = "-" if ratio is None else f"{ratio:.2f}"
    print(f"{row['kind']:30} {row['points']:9} {row['front']:9} {''.join(cells)} {shown:>8}")


def draw(results: list[dict[str, Any]], path: Path) -> None:
    """Plot time against points, both logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    for at, kind in enumerate(list(KINDS)[:2]):
        axes = figure.add_subplot(1, 2, at + 1)
        rows = [row for row in results if row["kind"] == kind]
        for name in sorted({name for row in rows for name in row["seconds"]}):
            line = [
                (row["points"], row["seconds"][name] * 1e3)
                for row in rows
                if name in row["seconds"]
            ]
            width = 2.5 if name == "fuel-gpu" else 1.2
            axes.loglog(*zip(*line, strict=True), marker="o", linewidth=width, label=name)
        axes.set(title=f"First front: {kind}", xlabel="points", ylabel="ms")
        axes.grid(visible=True, which="both", alpha=0.3)
        axes.legend()
    figure.savefig(path)


def versions(names: list[str]) -> dict[str, str]:
    """Give the versions of NumPy and of the other libraries."""
    return {name: metadata.version(name) for name in ("numpy", *names) if name != "fuel-gpu"}


def main() -> None:
    """Measure, print, draw and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, help="where to draw time against points")
    parser.add_argument("--json", type=Path, help="where to write every figure")
    arguments = parser.parse_args()
    found = methods()
    names = list(found)
    print(f"{platform.processor() or platform.machine()}, {versions(names)}; milliseconds")
    header = "".join(f"{name:>11}" for name in names)
    print(f"{'points':30} {'count':>9} {'front':>9} {header} {'ratio':>8}")
    results = measure(found, arguments.sizes, arguments.seed)
    if arguments.json:
        report = {"versions": versions(names), "machine": platform.platform(), "rows": results}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    if arguments.figure:
        draw(results, arguments.figure)


if __name__ == "__main__":
    main()
