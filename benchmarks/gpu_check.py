"""Check a GPU machine in one go: its tests, its calibration, and the array engine against NumPy.

``python benchmarks/gpu_check.py --out report.json`` needs a CUDA device and the extras ``dev`` and
``cuda12`` or ``cuda13``. It takes under eight minutes: a part that does not start in time is left
out and says so. Every part writes the report anew, so that a kill loses one part at most.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx

import fuel_gpu as fg
from fuel_gpu.arrays.engine import NUMPY, Engine, cupy_engine
from fuel_gpu.planner.candidate_table import CandidateTable, rank_and_retain
from fuel_gpu.planner.crowding import crowding_cap
from fuel_gpu.planner.engine_crossover import measure_crossover
from fuel_gpu.planner.frontier import pareto_mask
from fuel_gpu.planner.placement_batch import place_batch
from fuel_gpu.planner.placement_problem import PlacementProblem
from fuel_gpu.planner.plan_record import plan_record

ROOT = Path(__file__).parent.parent
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
BUDGET_S = 450.0
RUNS = 5

Arrays = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Work:
    """An array program: what it takes, and the array by which two engines are compared."""

    name: str
    inputs: Callable[[], Arrays]
    program: Callable[[Arrays, Engine], Any]


def main() -> int:
    """Run the parts, write the report, print a summary."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("gpu_check.json"))
    out: Path = parser.parse_args().out
    probed = fg.probe()
    if not any(device.backend == "cuda" for device in probed.devices):
        reasons = [line.reason for line in probed.unavailable if line.backend == "cuda"]
        print(f"no CUDA device: {'; '.join(reasons) or 'none found'}", file=sys.stderr)
        return 1
    start = time.monotonic()
    report: dict[str, Any] = {"machine": machine(), "probe": msgspec.to_builtins(probed)}
    parts: list[tuple[str, Callable[[], Any]]] = [
        ("arrays", lambda: compared(list(works()), cupy_engine())),
        ("crossover_candidates", measure_crossover),
        ("tests", tests),
        ("calibration", lambda: calibration(probed)),
    ]
    for name, part in parts:
        if time.monotonic() - start > BUDGET_S:
            report[name] = {"left_out": f"the budget of {BUDGET_S:.0f} s was spent before"}
            continue
        began = time.monotonic()
        try:
            report[name] = part()
        except Exception:
            report[name] = {"failed": traceback.format_exc()}
        report[f"{name}_seconds"] = round(time.monotonic() - began, 1)
        out.write_text(json.dumps(report, indent=1))
        print(f"{name}: {report[f'{name}_seconds']} s")
    failed = [n for n, _ in parts if isinstance(report[n], dict) and "failed" in report[n]]
    print(json.dumps(report.get("arrays"), indent=1))
    print(json.dumps(report.get("tests"), indent=1))
    print(f"report: {out}; {'failed: ' + ', '.join(failed) if failed else 'all parts ran'}")
    return 1 if failed or report["tests"].get("exit_status") else 0


def machine() -> dict[str, Any]:
    """Name the machine and the versions that the figures belong to."""
    packages = ("fuel-gpu", "numpy", "cupy-cuda12x", "cupy-cuda13x", "nvidia-ml-py")
    versions: dict[str, str | None] = {}
    for name in packages:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return {"system": platform.platform(), "python": platform.python_version(), **versions}


def works() -> Iterator[Work]:
    """List the array programs at the sizes of the project's goals."""
    for count in (10_000, 100_000, 1_000_000):
        yield Work(f"pareto_mask, {count:,} random points", partial(points, count), mask)
    for sets in (1_000, 100_000):
        yield Work(f"rank_and_retain, {sets:,} sets of 8", partial(candidates, sets, 8), retain)
    yield Work("rank_and_retain, 1 set of 1,000,000", partial(candidates, 1, 1_000_000), retain)
    yield Work("crowding_cap, 100,000 to 32", partial(frontier, 100_000), cap)
    for rows, scenarios in ((1_000, 1_000), (1_000_000, 1)):
        name = f"place_batch, chain of {rows:,} x 4 devices x {scenarios:,} scenarios"
        yield Work(name, partial(chain, rows, scenarios), place)


def compared(listed: list[Work], gpu: Engine) -> list[dict[str, Any]]:
    """Time every program on NumPy and on the GPU, there and back included, and compare results.

    Raises
    ------
    RuntimeError
        If the two engines give different bits; the message names the program.
    """
    results = []
    for work in listed:
        inputs = work.inputs()
        figures: dict[str, Any] = {"work": work.name}
        answers = {}
        for engine in (NUMPY, gpu):
            answers[engine.name] = work.program(inputs, engine)
            figures[f"{engine.name}_ms"] = median_ms(partial(work.program, inputs, engine))
        if len({np.asarray(a).tobytes() for a in answers.values()}) > 1:
            raise RuntimeError(f"{work.name}: {' and '.join(answers)} give different results")
        figures["numpy_over_gpu"] = figures["numpy_ms"] / figures[f"{gpu.name}_ms"]
        results.append(figures)
    return results


def median_ms(work: Callable[[], object]) -> float:
    """Time a program that was run before; milliseconds, the median of a few runs."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter_ns()
        work()
        times.append((time.perf_counter_ns() - start) / 1e6)
    return round(statistics.median(times), 3)


def points(count: int) -> Arrays:
    """Random cost vectors: time, memory, nothing, digits, accuracy."""
    rng = np.random.default_rng(1)
    columns = [rng.random(count), rng.random(count), np.zeros(count)]
    columns += [rng.integers(0, 19, count).astype(float), rng.integers(0, 5, count).astype(float)]
    return {"points": np.stack(columns, axis=1)}


def mask(arrays: Arrays, engine: Engine) -> Any:
    """Find the first front."""
    return pareto_mask(arrays["points"], engine=engine)


def candidates(sets: int, each: int) -> Arrays:
    """A table of `sets` nodes with `each` candidates over four devices."""
    rng = np.random.default_rng(2)
    count = sets * each
    device = rng.integers(0, 4, count).astype(np.int32)
    moved = rng.integers(0, 1 << 30, count, np.uint64)
    nothing = np.zeros_like(moved)
    return {
        "table": CandidateTable(
            node=np.repeat(np.arange(sets), each),
            device=device,
            backend=device,
            time_ns=rng.integers(0, 1 << 40, count, np.uint64),
            host_bytes=np.where(device == 0, moved, nothing),
            device_bytes=np.where(device == 0, nothing, moved),
            precision=rng.integers(0, 19, count, np.uint8),
            accuracy=rng.integers(0, 5, count, np.uint8),
        )
    }


def retain(arrays: Arrays, engine: Engine) -> Any:
    """Rank and retain every node."""
    return rank_and_retain(arrays["table"], engine=engine).rows


def frontier(count: int) -> Arrays:
    """Points none of which dominates another: the faster, the larger."""
    time_ns = np.sort(np.random.default_rng(3).integers(0, 1 << 40, count, np.uint64))
    return {"points": np.stack([time_ns, time_ns[::-1]], axis=1)}


def cap(arrays: Arrays, engine: Engine) -> Any:
    """Thin the frontier to 32."""
    return crowding_cap(arrays["points"], 32, engine=engine)


def chain(rows: int, scenarios: int) -> Arrays:
    """A chain over four devices, every crossing priced alike in a scenario."""
    rng = np.random.default_rng(4)
    crossing = np.broadcast_to(
        rng.integers(1, 5_000, (1, 1, 1, scenarios), np.uint64), (1, 4, 4, scenarios)
    ).copy()
    crossing[0, range(4), range(4)] = 0
    return {
        "problem": PlacementProblem(
            first_edge=np.concatenate([[0], np.arange(rows)]).astype(np.int64),
            producer=np.arange(rows - 1),
            crossing=np.zeros(rows - 1, np.int64),
            cost_ns=rng.integers(0, 10_000, (rows, 4, scenarios), np.uint64),
            crossing_ns=crossing,
        )
    }


def place(arrays: Arrays, engine: Engine) -> Any:
    """Solve the placement DP in every scenario."""
    return place_batch(arrays["problem"], engine=engine).slot


def tests() -> dict[str, Any]:
    """Run the tests that need a CUDA device; to skip one counts as a failure."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "cuda or gpu",
        "--require-device",
        "cuda",
    ]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    return {"exit_status": ended.returncode, "output": ended.stdout[-6_000:]}


def calibration(probed: Any) -> dict[str, Any]:
    """Calibrate every device quickly, and plan the light ResNet-50 with that table."""
    table = fg.calibrate(probed)
    with tempfile.TemporaryDirectory() as folder:
        table = fg.load_table(fg.save_table(table, Path(folder) / "table.json"))
    record = plan_record(fg.plan(fg.load_onnx(LIGHT / "light_resnet50.onnx", batch=8), table))
    return {
        "rates": [msgspec.to_builtins(rate) for rate in table.rates],
        "transfers": [msgspec.to_builtins(transfer) for transfer in table.transfers],
        "notes": list(table.notes),
        "resnet50_batch8": {
            "total_ns": record.total_ns,
            "chosen": record.chosen,
            "device_ns": record.device_ns,
            "baselines": record.baselines,
        },
    }


if __name__ == "__main__":
    sys.exit(main())
