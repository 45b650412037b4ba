"""Placement in batches on NumPy, on the double of CuPy, and by the kernels on OpenCL."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy_launcher import kernels_of_double
from opencl_launcher import opencl_engine
from strict_cupy import Counts, StrictArray, StrictCupy

from fuel_gpu.arrays.engine import NUMPY, Engine, cupy_engine
from fuel_gpu.arrays.placement_kernels import MOST_SLOTS, KernelSteps
from fuel_gpu.arrays.placement_steps import ArraySteps, Entry, PathRows, Steps, Stretches
from fuel_gpu.arrays.raw_kernels import RawKernels
from fuel_gpu.planner import placement_walk
from fuel_gpu.planner.placement_batch import place_batch
from fuel_gpu.planner.placement_problem import Closings, PlacementProblem

MAX = 2**64 - 1


def problem(
    rows: int,
    slots: int,
    scenarios: int,
    *,
    chains: int = 0,
    window: int = 1,
    scale: int = 1000,
    absent: float = 0.0,
    closings: int = 0,
) -> PlacementProblem:
    """Draw a graph whose rows read up to two of the `window` rows before them; 1 makes a chain.

    With a number of `chains`, the rows alternate between so many instead.
    """
    arrays = np.random.default_rng(rows + slots + scenarios)

    def times(*axes: int) -> Any:
        return arrays.integers(0, scale, axes, dtype=np.uint64, endpoint=True)

    reads = [
        sorted({row - 1 - int(back) for back in arrays.integers(0, min(window, row), 2)})
        for row in range(1, rows)
    ]
    if chains:
        reads = [[row - chains] if row >= chains else [] for row in range(1, rows)]
    edges = sum(map(len, reads))
    available = None
    if absent:
        available = arrays.random((rows, slots, scenarios)) >= absent
        available[:, -1] |= ~available.any(axis=1)
    return PlacementProblem(
        first_edge=np.cumsum([0, 0, *map(len, reads)]),
        producer=np.array([row for row_reads in reads for row in row_reads], np.int64),
        crossing=arrays.integers(0, 7, edges),
        cost_ns=times(rows, slots, scenarios),
        crossing_ns=times(7, slots, slots, 1 if scale == 1000 else scenarios),
        exit_ns=times(rows, slots, 1),
        available=available,
        closings=Closings(
            row=arrays.integers(0, rows, closings),
            after=np.sort(arrays.integers(0, rows + 1, closings)),
            crossing_ns=times(closings, slots, scenarios),
        ),
    )


def double(*, kernels: bool = True) -> Engine:
    xp = StrictCupy()
    return Engine("cupy", xp, 1 << 28, kernels_of_double(xp) if kernels else None)


ENGINES = {
    "cupy, kernels": double(),
    "cupy, array operations": double(kernels=False),
    "opencl": opencl_engine(),
}

PROBLEMS = {
    "chain in blocks": problem(300, 4, 1),
    "chains in blocks, some of one block more": problem(20 * 67 + 9, 2, 1, chains=20, scale=9),
    "chain in 700 scenarios": problem(40, 4, 700),
    "graph in 2 scenarios": problem(400, 3, 2, window=3),
    "graph in 60 scenarios": problem(150, 3, 60, window=6),
    "closings": problem(200, 3, 5, window=4, closings=20),
    "ties": problem(200, 4, 2, window=2, scale=2),
    "saturated": problem(200, 4, 2, window=2, scale=MAX),
    "saturated, devices absent": problem(200, 4, 2, window=2, scale=MAX, absent=0.4),
    "one device": problem(100, 1, 2, window=2),
    "as many devices as the kernels take": problem(70, MOST_SLOTS, 2, window=2),
    "more devices than the kernels take": problem(70, MOST_SLOTS + 1, 2, window=2),
}


@pytest.mark.parametrize("blocks", [False, True], ids=["as it pays", "always in blocks"])
@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("given", PROBLEMS.values(), ids=PROBLEMS)
def test_every_engine_places_alike(
    engine: Engine, given: PlacementProblem, blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if blocks:
        monkeypatch.setattr(placement_walk, "LONG_ROWS", 3)
        monkeypatch.setattr(placement_walk, "NARROW_WAYS", 10**9)
    expected = place_batch(given, engine=NUMPY)
    found = place_batch(given, engine=engine)
    assert isinstance(found.slot, np.ndarray)
    assert isinstance(found.total_ns, np.ndarray)
    np.testing.assert_array_equal(found.slot, expected.slot)
    np.testing.assert_array_equal(found.total_ns, expected.total_ns)


@pytest.mark.cuda
@pytest.mark.parametrize("blocks", [False, True], ids=["as it pays", "always in blocks"])
@pytest.mark.parametrize("given", PROBLEMS.values(), ids=PROBLEMS)
def test_a_cuda_device_places_alike(
    given: PlacementProblem, blocks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    test_every_engine_places_alike(cupy_engine(), given, blocks, monkeypatch)


def test_blocks_are_followed_alike() -> None:
    """All times, choices and origins, of which a placement needs only some."""
    arrays = np.random.default_rng(8)
    row = np.arange(40)
    index = np.stack([row, np.maximum(row - 1, 0), row, arrays.integers(0, 5, 40)])
    start, length = np.array([0, 20, 33, 12]), np.array([12, 9, 7, 5])
    is_first = np.array([True, False, False, False])
    blocks = Stretches(start, length, start)
    entry = Entry(arrays.integers(0, 50, (3, 4, 2), dtype=np.uint64), is_first)

    def followed(steps: Steps) -> list[Any]:
        rows = PathRows(
            index_host=index,
            index=index,
            own_ns=np.random.default_rng(9).integers(0, 50, (40, 3, 2), dtype=np.uint64),
            crossing_ns=np.random.default_rng(10).integers(0, 9, (5, 3, 3, 1), dtype=np.uint64),
            choice=np.zeros((40, 3, 2), np.uint8),
            first_available=None,
        )
        times, origin = steps.follow(rows, blocks, entry)
        return [times, origin[:, ~is_first], rows.choice[1:]]

    kernels = opencl_engine().kernels
    assert kernels is not None
    pairs = zip(followed(KernelSteps(np, kernels.launch)), followed(ArraySteps(np)), strict=True)
    for found, expected in pairs:
        np.testing.assert_array_equal(found, expected)


def test_what_lies_on_the_gpu_stays_there() -> None:
    engine, given = double(), problem(50, 3, 4, window=3)
    on_gpu = replace(
        given,
        cost_ns=engine.xp.asarray(given.cost_ns),
        crossing_ns=engine.xp.asarray(given.crossing_ns),
        exit_ns=engine.xp.asarray(given.exit_ns),
    )
    found: Any = place_batch(on_gpu, engine=engine)
    assert isinstance(found.slot, StrictArray)
    expected = place_batch(given, engine=NUMPY)
    np.testing.assert_array_equal(found.slot.get(), expected.slot)
    np.testing.assert_array_equal(found.total_ns.get(), expected.total_ns)


def test_the_kernels_are_what_runs() -> None:
    launched: set[str] = set()
    real = opencl_engine().kernels
    assert real is not None

    def launch(name: str, groups: int, threads: int, arguments: Sequence[Any]) -> None:
        launched.add(name)
        real.launch(name, groups, threads, arguments)

    watching = replace(opencl_engine(), kernels=RawKernels(launch))
    place_batch(PROBLEMS["chain in blocks"], engine=watching)
    parts = ("follow", "through", "scan", "block_ends", "retrace")
    assert launched == {f"placement_{part}" for part in parts}
    launched.clear()
    place_batch(PROBLEMS["more devices than the kernels take"], engine=watching)
    assert launched == set()


def counts_of(given: PlacementProblem) -> Counts:
    engine = double()
    place_batch(given, engine=engine)
    counts: Counts = engine.xp.counts
    return counts


@pytest.mark.parametrize("scenarios", [1, 400])
def test_a_chain_ten_times_as_long_takes_no_more_launches(scenarios: int) -> None:
    short, long = counts_of(problem(100, 4, scenarios)), counts_of(problem(1000, 4, scenarios))
    assert long == short
    assert short.launches < 100
    assert short.waits == 2, "the placements and the totals, at the end"


def test_a_graph_takes_more_launches_by_its_rounds_only() -> None:
    small, large = (counts_of(problem(rows, 3, 2, window=6)) for rows in (200, 2000))
    assert large.launches < 2 * small.launches
    assert large.waits == small.waits == 2
