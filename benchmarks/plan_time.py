"""How long `load_onnx` and `plan` take on each light graph, and how long `import fuel_gpu` does.

Run it with ``python benchmarks/plan_time.py [TABLE]``; the desktop of the examples by default.
Every figure is the median of repeated runs, with the fastest and slowest beside it.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import onnx
from rich.console import Console
from rich.table import Table

import fuel_gpu as fg

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
DESKTOP = Path(__file__).parent.parent / "examples" / "tables" / "desktop.json"
RUNS = 9


def main() -> None:
    """Measure and print."""
    table = fg.load_table(sys.argv[1] if len(sys.argv) > 1 else DESKTOP)
    shown = Table("graph", "nodes", "load, ms", "plan, ms", "us a node")
    for model in sorted(LIGHT.glob("light_*.onnx")):
        graph = fg.load_onnx(model)
        nodes = len(fg.plan(graph, table).placement)
        load_ms = runs_ms(partial(fg.load_onnx, model))
        plan_ms = runs_ms(partial(fg.plan, graph, table))
        each_us = 1000 * statistics.median(plan_ms) / nodes
        name = model.stem.removeprefix("light_")
        shown.add_row(name, str(nodes), spread(load_ms), spread(plan_ms), f"{each_us:.0f}")
    console = Console()
    console.print(shown)
    bare = runs_ms(lambda: python("pass"))
    imported = runs_ms(lambda: python("import fuel_gpu"))
    console.print(
        f"python -c 'import fuel_gpu': {spread(imported)} ms; an empty one: {spread(bare)} ms"
    )


def python(code: str) -> None:
    """Run code in a new interpreter."""
    subprocess.run([sys.executable, "-c", code], check=True)


def runs_ms(work: Callable[[], object]) -> list[float]:
    """Time `work` after one warm-up; milliseconds."""
    work()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter_ns()
        work()
        times.append((time.perf_counter_ns() - start) / 1e6)
    return times


def spread(times: list[float]) -> str:
    """Write the median with the range."""
    return f"{statistics.median(times):.1f} ({min(times):.1f} to {max(times):.1f})"


if __name__ == "__main__":
    main()
