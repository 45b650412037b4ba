"""The placement DP over arrays against the single DP: times, ratios, and equal placements."""

import platform
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import cpuinfo
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from fuel_gpu.device import Device
from fuel_gpu.planner.placement_batch import place_batch
from fuel_gpu.planner.placement_dp import ChainInput, PlacementDP
from fuel_gpu.planner.placement_problem import PlacementProblem

SLOTS = 4
LINKS = 64
DEVICES = [Device("cpu"), *(Device("cuda", k) for k in range(SLOTS - 1))]
RUST_MS = {"chain of 1,000": 0.41, "chain of 1,000,000": 2100.0}
"""The seeds' DP, compiled, on the 2-core machine of the reference figures; not on this one."""

T = TypeVar("T")


class Links:
    """One scenario's transfer times: a size is the number of a link."""

    def __init__(self, ns: list[list[list[int]]]) -> None:
        self.ns = ns

    def estimate_transfer_ns(self, src: Device, dst: Device, bytes: int) -> int:
        return self.ns[bytes][_SLOT[src]][_SLOT[dst]]


_SLOT = {device: slot for slot, device in enumerate(DEVICES)}


def problem(
    rows: int, scenarios: int, *, window: int, joins: bool, seed: int = 0
) -> PlacementProblem:
    """Draw a graph whose rows read from up to `window` rows back: one each, or up to three."""
    arrays = np.random.default_rng(seed)
    reads: list[list[int]] = [[] for _ in range(rows)]
    for row in range(window, rows):
        count = arrays.choice([1, 1, 1, 2, 3]) if joins else 1
        reads[row] = sorted({row - 1 - int(back) for back in arrays.integers(0, window, count)})
    producer = np.array([p for row_reads in reads for p in row_reads], np.int64)
    crossing_ns = arrays.integers(0, 10**6, (LINKS, SLOTS, SLOTS, scenarios), dtype=np.uint64)
    crossing_ns[:, range(SLOTS), range(SLOTS)] = 0
    return PlacementProblem(
        first_edge=np.cumsum([0, *map(len, reads)]),
        producer=producer,
        crossing=arrays.integers(0, LINKS, len(producer)),
        cost_ns=arrays.integers(0, 10**6, (rows, SLOTS, scenarios), dtype=np.uint64),
        crossing_ns=crossing_ns,
    )


def single_runs(given: PlacementProblem) -> tuple[float, NDArray[np.uint8]]:
    """Run the single DP in every scenario; give its seconds, inputs made beforehand, and slots."""
    seconds, slots = 0.0, np.empty((given.rows, given.scenarios), np.uint8)
    bounds, producer, crossing = (
        array.tolist() for array in (given.first_edge, given.producer, given.crossing)
    )
    for scenario in range(given.scenarios):
        links = Links(given.crossing_ns[..., scenario].tolist())
        costs = [
            list(zip(DEVICES, times, strict=True))
            for times in given.cost_ns[..., scenario].tolist()
        ]
        inputs = [
            [ChainInput(producer[e], (crossing[e],)) for e in range(*bounds[row : row + 2])]
            for row in range(given.rows)
        ]
        start = time.perf_counter()
        dp: PlacementDP[int] = PlacementDP()
        for row in range(given.rows):
            chained = [chain for chain in inputs[row] if dp.is_open(chain.producer)]
            dp.push_row(row, costs[row], (), chained, links)
        made = dp.finish(None, lambda _: 0, links)
        seconds += time.perf_counter() - start
        for row, device in made:
            slots[row, scenario] = _SLOT[device]
    return seconds, slots


def best_of(repeats: int, work: Callable[[], T]) -> tuple[float, T]:
    """Give the least seconds that `work` took, and what it gave."""
    seconds = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        seconds = min(seconds, time.perf_counter() - start)
    return seconds, result


def main() -> None:
    """Print the table; fail where the two place a row differently."""
    cases = [
        ("chain of 1,000", problem(1000, 1, window=1, joins=False)),
        ("chain of 1,000", problem(1000, 1000, window=1, joins=False)),
        ("graph of 1,000 with joins", problem(1000, 1, window=6, joins=True)),
        ("graph of 1,000 with joins", problem(1000, 1000, window=6, joins=True)),
        ("wide graph of 100,000 with joins", problem(100_000, 1, window=2000, joins=True)),
        ("chain of 1,000,000", problem(1_000_000, 1, window=1, joins=False)),
    ]
    console = Console(width=110)
    console.print(
        f"{cpuinfo.get_cpu_info()['brand_raw']}, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}; {SLOTS} devices"
    )
    table = Table("rows", "scenarios", "single DP, all runs", "arrays", "ratio", "compiled Rust *")
    for name, given in cases:
        single_s, wanted = single_runs(given)
        batch_s, found = best_of(5, partial(place_batch, given))
        if not np.array_equal(found.slot, wanted):
            raise SystemExit(f"{name}: the arrays place rows differently than the single DP")
        rust = f"{RUST_MS[name] * given.scenarios:,.4g} ms" if name in RUST_MS else ""
        table.add_row(
            name,
            f"{given.scenarios:,}",
            f"{single_s * 1e3:,.1f} ms",
            f"{batch_s * 1e3:,.1f} ms",
            f"{single_s / batch_s:,.0f}",
            rust,
        )
    console.print(table)
    console.print("* the seeds' code on another machine, times the scenarios; for orientation only")


if __name__ == "__main__":
    main()
