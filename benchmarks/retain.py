"""Time ranking, retention and the crowding cap on whole graphs, and the memory that they take.

``python benchmarks/retain.py --json retain.json`` prints medians, and for ten million candidates
the time of one run and the peak memory of its process; ``--quick`` leaves those out.
"""

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fuel_gpu.device import Device
from fuel_gpu.planner.alternative_set import AlternativeSet
from fuel_gpu.planner.candidate import Candidate, CostEstimate, PrecisionGuarantee
from fuel_gpu.planner.candidate_table import CandidateTable, rank_and_retain
from fuel_gpu.planner.crowding import crowding_cap

DEVICES = [Device("cpu"), Device("cuda"), Device("opencl"), Device("vulkan")]
BACKENDS = ["first", "second"]
GUARANTEES = [
    PrecisionGuarantee(),
    PrecisionGuarantee(True),
    *(PrecisionGuarantee(max_ulp=ulp, max_relative=10.0**-n) for ulp in (0, 1, 4) for n in (3, 7)),
]
DIGITS = np.array([0, 9, 3, 7, 3, 7, 3, 7], np.uint8)
CLASSES = np.array([0, 1, 4, 4, 3, 3, 2, 2], np.uint8)


def random_table(sets: int, size: int, seed: int = 0, *, front: bool = False) -> CandidateTable:
    """Candidates of `sets` nodes over four devices with two backends each.

    With `front` they are all of one device and none of them dominates another.
    """
    rng = np.random.default_rng(seed)
    count = sets * size
    device = np.zeros(count, np.int32) if front else rng.integers(0, 4, count, np.int32)
    time_ns = rng.integers(0, 10**9, count, np.uint64)
    memory = rng.integers(0, 10**9, count, np.uint64)
    if front:
        time_ns, memory = np.sort(time_ns), np.sort(memory)[::-1].copy()
    guarantee = rng.integers(0, len(GUARANTEES), count)
    nothing = np.uint64(0)
    return CandidateTable(
        node=np.repeat(np.arange(sets), size),
        device=device,
        backend=rng.integers(0, 1 if front else 2, count, np.int32),
        time_ns=time_ns,
        host_bytes=np.where(device == 0, memory, nothing),
        device_bytes=np.where(device == 0, nothing, memory),
        precision=DIGITS[guarantee],
        accuracy=CLASSES[guarantee],
    )


def frontier_table(count: int) -> CandidateTable:
    """Candidates of one node and device, none of which dominates another, in random steps."""
    rng = np.random.default_rng(0)
    return CandidateTable(
        node=np.zeros(count, np.int64),
        device=np.zeros(count, np.int32),
        backend=np.zeros(count, np.int32),
        time_ns=np.sort(rng.integers(0, 10**12, count, np.uint64)),
        host_bytes=np.full(count, 0, np.uint64),
        device_bytes=np.sort(rng.integers(0, 10**12, count, np.uint64))[::-1].copy(),
        precision=rng.integers(0, 19, count, np.uint8),
        accuracy=rng.integers(0, 5, count, np.uint8),
    )


def alternative_sets(table: CandidateTable, sets: int) -> list[AlternativeSet]:
    """The same candidates as objects; `kernel_source` is the row."""
    guarantee_of = {
        (int(digits), int(accuracy)): guarantee
        for digits, accuracy, guarantee in zip(DIGITS, CLASSES, GUARANTEES, strict=True)
    }
    made = [AlternativeSet() for _ in range(sets)]
    columns = [getattr(table, name).tolist() for name in table.__slots__]
    for row, (node, device, backend, ns, host, vram, digits, accuracy) in enumerate(
        zip(*columns, strict=True)
    ):
        # Rates of one byte a nanosecond leave the time as it is: memory never takes longer.
        cost = CostEstimate(0, host + vram, 0)
        made[node].push(
            Candidate(
                DEVICES[device],
                BACKENDS[backend],
                cost,
                guarantee_of[digits, accuracy],
                inbound_transfer_ns=ns,
                kernel_source=str(row),
            )
        )
    return made


def seconds_of(work: Callable[[], object]) -> float:
    """Median of up to nine runs, or of as many as fit in two seconds."""
    times: list[float] = []
    while not times or (len(times) < 9 and sum(times) < 2.0):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def time_retention() -> list[dict[str, Any]]:
    """Time whole tables."""
    rows = []
    for sets, size, front, keep in (
        (1000, 8, False, 32),
        (100_000, 8, False, 32),
        (10_000, 100, False, 32),
        (1, 100_000, False, 32),
        (1, 1_000_000, False, 32),
        (1, 6000, True, 32),
        (1, 100_000, True, 32),
    ):
        table = random_table(sets, size, front=front)
        seconds = seconds_of(lambda: rank_and_retain(table, keep, engine="numpy"))  # noqa: B023
        what = f"rank and retain {sets} x {size}{', all on the front' if front else ''}"
        rows.append({"work": what, "seconds": seconds})
    return rows


def time_cap() -> dict[str, Any]:
    """Time the crowding cap alone."""
    rng = np.random.default_rng(0)
    count = 100_000
    points = np.column_stack(
        [
            np.sort(rng.random(count)),
            np.sort(rng.random(count))[::-1],
            np.zeros(count),
            rng.integers(0, 19, count),
            rng.integers(0, 5, count),
        ]
    )
    seconds = seconds_of(lambda: crowding_cap(points, 32, engine="numpy"))
    return {"work": "crowding cap of 100000 frontier points to 32", "seconds": seconds}


def time_objects() -> dict[str, Any]:
    """Time the sets of objects that a plan without arrays would go through."""
    table = random_table(1000, 8)
    sets = alternative_sets(table, 1000)

    def work() -> None:
        for each in alternative_sets(table, 1000):
            each.rank_by_cost()
            each.retain_per_device_frontier()

    building = seconds_of(lambda: alternative_sets(table, 1000))
    assert sum(map(len, sets)) == len(table)
    return {
        "work": "the same 1000 x 8 as AlternativeSet objects",
        "seconds": seconds_of(work) - building,
    }


LARGE = 10_000_000
LARGE_TABLES: dict[str, Callable[[], CandidateTable]] = {
    "in sets of 8": lambda: random_table(LARGE // 8, 8),
    "in one node": lambda: random_table(1, LARGE),
    "in one node, all on the front": lambda: frontier_table(LARGE),
}


def run_large(name: str) -> dict[str, Any]:
    """Retain ten million candidates in a process of its own, whose peak holds their table too."""
    run = subprocess.run(
        [sys.executable, "-c", f"import retain; retain.report_large({name!r})"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    figures: dict[str, Any] = json.loads(run.stdout)
    return {"work": f"rank and retain {LARGE} {name}", **figures}


def report_large(name: str) -> None:
    """Print the seconds of one run and the peak of this process."""
    table = LARGE_TABLES[name]()
    start = time.perf_counter()
    rank_and_retain(table, 32, engine="numpy")
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak_bytes": peak}))


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="where to write every figure")
    parser.add_argument("--quick", action="store_true", help="leave out the ten million")
    arguments = parser.parse_args()
    rows = [*time_retention(), time_cap(), time_objects()]
    rows += [] if arguments.quick else map(run_large, LARGE_TABLES)
    for row in rows:
        memory = f"{row['peak_bytes'] / 2**30:8.2f} GiB" if "peak_bytes" in row else ""
        print(f"{row['work']:60} {row['seconds'] * 1e3:10.2f} ms {memory}")
    if arguments.json:
        report = {"numpy": np.__version__, "machine": platform.platform(), "rows": rows}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
