"""Beside StarPU and clpeak: the same OpenCL device, measured by each of them in the same run.

``python benchmarks/peers.py`` calibrates the first OpenCL device several times, lets StarPU
calibrate it in turn, runs clpeak once, and prints both figures and their ratio. Where kernels
differ in kind, kernels of the peer's kind are timed too. A peer that is not installed is named
(``apt install starpu-tools clpeak``). At the end: how far the calibrations agree with each other.
"""

import argparse
import itertools
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import numpy as np
from rich.console import Console
from rich.table import Table as Shown

import fuel_gpu as fg
from fuel_gpu.calibration.calibrate import calibrate
from fuel_gpu.calibration.table import Table
from fuel_gpu.probes import opencl
from fuel_gpu.probes.report import DeviceInfo, ProbeReport

MIB: Final = 2**20
LIMIT_S: Final = 900.0
WIDTH: Final = 120
AGREEMENT: Final = 0.25
"""Figures that differ by less than this share agree."""

WIDE_FLOATS: Final = 16
WIDE_BYTES: Final = 4 * WIDE_FLOATS
FETCHES: Final = 16
CHAIN_STEPS: Final = 512
CHAIN_COUNTS: Final = (1, 2, 4, 8)
CHAIN_ITEMS: Final = 2**17
READ_BYTES: Final = 256 * MIB

SOURCE: Final = """
/* CHAINS recurrences side by side, each waiting for its own last step. */
__kernel void chains(__global float *out, const float factor)
{
    float16 x[CHAINS];
    for (int c = 0; c < CHAINS; c++)
        x[c] = (float16)(get_local_id(0) + c);
    for (int i = 0; i < STEPS; i++)
#pragma unroll
        for (int c = 0; c < CHAINS; c++)
            x[c] = mad(x[c], (float16)(factor), (float16)(factor));
    float16 sum = 0;
    for (int c = 0; c < CHAINS; c++)
        sum += x[c];
    const float8 half_sum = sum.lo + sum.hi;
    const float4 quarter = half_sum.lo + half_sum.hi;
    out[get_global_id(0)] = quarter.x + quarter.y + quarter.z + quarter.w;
}

/* Sums of FETCHES vectors that lie STRIDE apart: one after the other, or a work-group apart. */
__kernel void reads(__global const float16 *in, __global float *out)
{
    const size_t first = STRIDE == 1 ? get_global_id(0) * FETCHES
        : get_group_id(0) * get_local_size(0) * FETCHES + get_local_id(0);
    float16 sum = 0;
    for (int i = 0; i < FETCHES; i++)
        sum += in[first + i * (STRIDE == 1 ? 1 : get_local_size(0))];
    const float8 half_sum = sum.lo + sum.hi;
    const float4 quarter = half_sum.lo + half_sum.hi;
    out[get_global_id(0)] = quarter.x + quarter.y + quarter.z + quarter.w;
}
"""


Key = tuple[str | int, ...]
Interval = tuple[float, tuple[float, float]]


@dataclass(slots=True)
class Figures:
    """What was measured: figures in GB/s or GFLOP/s by name, in the order of the rounds."""

    ours: dict[str, list[float]] = field(default_factory=dict)
    starpu: dict[str, list[float]] = field(default_factory=dict)
    clpeak: dict[str, list[float]] = field(default_factory=dict)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", help="such as opencl:0; the first OpenCL device by default")
    parser.add_argument("--rounds", type=int, default=5, help="calibrations, and StarPU's")
    options = parser.parse_args()
    console = Console(width=WIDTH)
    report = fg.probe(["cpu", "opencl"])
    info = chosen_device(report, options.device)
    if info is None:
        console.print("no OpenCL device to measure:")
        for line in report.unavailable:
            console.print(f"  {line.reason}")
        return
    console.print(f"{info.id}: {info.name}, {info.driver}; {os.getloadavg()[0]:.1f} processes busy")
    found, tables = Figures(), []
    for index in range(options.rounds):
        console.print(f"round {index + 1} of {options.rounds}")
        tables.append(calibrate(report, devices=[info.device]))
        add(found.ours, dict(our_figures(tables[-1], info)))
        add(found.starpu, starpu_figures(info, console if index == 0 else None))
        add(found.ours, dict(kindred_figures(info)))
    console.print("clpeak; it takes a minute")
    add(found.clpeak, clpeak_figures(info, console))
    console.print(comparison(found, info))
    if len(tables) > 1:
        console.print(repeatability(tables))


def chosen_device(report: ProbeReport, name: str | None) -> DeviceInfo | None:
    """Give the device of that name, or the first that is not simulated."""
    candidates = [d for d in report.devices if d.backend == "opencl" and not d.simulated]
    return next((d for d in candidates if name in (None, d.id)), None)


def add(series: dict[str, list[float]], figures: dict[str, float]) -> None:
    """Append one round's figures."""
    for name, value in figures.items():
        series.setdefault(name, []).append(value)


def our_figures(table: Table, info: DeviceInfo) -> Iterator[tuple[str, float]]:
    """Copies of the two sizes, the rate of products and of streaming, from a table."""
    for transfer in table.transfers:
        if transfer.memory != "pageable" or info.id not in (transfer.src, transfer.dst):
            continue
        way = "to the device" if transfer.dst == info.id else "from the device"
        for point in transfer.points:
            if point.bytes in (16 * MIB, 32 * MIB):
                yield f"{way}, {point.bytes // MIB} MiB", point.bytes / point.ns
    for rate in table.rates:
        if (rate.device, rate.dtype) == (info.id, "float32"):
            yield "float32", rate.flops_per_ns or float("nan")
            yield "memory", rate.bytes_per_ns or float("nan")


def kindred_figures(info: DeviceInfo) -> Iterator[tuple[str, float]]:
    """Kernels of clpeak's kind: chains of multiply-adds, and reads in two orders."""
    import pyopencl as cl

    device = opencl.find(info)
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    group = min(256, device.max_work_group_size)
    source = cl.Buffer(context, cl.mem_flags.READ_WRITE, READ_BYTES)
    cl.enqueue_fill_buffer(queue, source, np.ones(1, dtype=np.float32), 0, READ_BYTES)
    out = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * CHAIN_ITEMS * FETCHES)

    def built(name: str, chains: int, stride: int) -> Any:
        options = [
            f"-DCHAINS={chains}",
            f"-DSTEPS={CHAIN_STEPS // chains}",
            f"-DSTRIDE={stride}",
            f"-DFETCHES={FETCHES}",
        ]
        return cl.Kernel(cl.Program(context, SOURCE).build(options), name)

    def seconds(kernel: Any, items: int) -> float:
        def run() -> None:
            cl.enqueue_nd_range_kernel(queue, kernel, (items,), (group,))
            queue.finish()

        return median_seconds(run)

    for chains in CHAIN_COUNTS:
        kernel = built("chains", chains, 1)
        kernel.set_args(out, np.float32(0.5))
        flops = 2 * WIDE_FLOATS * (CHAIN_STEPS // chains) * chains * CHAIN_ITEMS
        yield f"float32, chains: {chains}", flops / seconds(kernel, CHAIN_ITEMS) / 1e9
    for stride, order in ((group, "a work-group apart"), (1, "one after the other")):
        kernel = built("reads", 1, stride)
        kernel.set_args(source, out)
        items = READ_BYTES // WIDE_BYTES // FETCHES
        yield f"reads {order}", READ_BYTES / seconds(kernel, items) / 1e9


def median_seconds(run: Callable[[], None]) -> float:
    """Median of seven calls after one that compiles."""
    run()
    times = []
    for _ in range(7):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def starpu_figures(info: DeviceInfo, console: Console | None) -> dict[str, float]:
    """Let StarPU calibrate: GB/s to and from the device. None if it is not installed."""
    program = shutil.which("starpu_machine_display")
    if program is None:
        if console:
            console.print("StarPU is not installed (apt install starpu-tools): left out")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        settings = {"STARPU_HOME": folder, "STARPU_PERF_MODEL_DIR": folder, "STARPU_NCUDA": "0"}
        if info.host_processor:
            settings |= {"STARPU_OPENCL_ON_CPUS": "1", "STARPU_OPENCL_ONLY_ON_CPUS": "1"}
        text = output_of([program], settings)
    found = starpu_bandwidths(text, info.name)
    if console and not found:
        console.print(f"StarPU does not show {info.name}: left out")
    return found


def starpu_bandwidths(text: str, name: str) -> dict[str, float]:
    """Read what starpu_machine_display prints, whose unit is 10**6 bytes a second."""
    label = next(
        (
            match[1]
            for match in re.finditer(r"(OpenCL \d+) \((.+?) [\d.]+ GiB\)", text)
            if match[2].strip() == name.strip()
        ),
        None,
    )
    rows = [line.rstrip("\t").split("\t") for line in text.splitlines()]
    start = next((i for i, row in enumerate(rows) if row[0] == "from/to"), None)
    if label is None or start is None or label not in rows[start]:
        return {}
    to_device = float(rows[start + 1][rows[start].index(label)]) / 1000
    here = next(row for row in rows[start + 1 :] if row[0] == label)
    return {"to the device": to_device, "from the device": float(here[1]) / 1000}


def clpeak_figures(info: DeviceInfo, console: Console) -> dict[str, float]:
    """Run clpeak: its best float32 rate and memory bandwidth. None if it is not installed."""
    program = shutil.which("clpeak")
    if program is None:
        console.print("clpeak is not installed (apt install clpeak): left out")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "clpeak.xml"
        tests = ["--compute-sp", "--global-bandwidth"]
        output_of([program, *tests, "--enable-xml-dump", "-f", str(file)], {})
        text = file.read_text() if file.exists() else ""
    found = clpeak_bests(text, info.name)
    if not found:
        console.print(f"clpeak does not show {info.name}: left out")
    return found


def clpeak_bests(text: str, name: str) -> dict[str, float]:
    """Read clpeak's XML: the best vector width of each test."""
    if not text:
        return {}
    for device in ElementTree.fromstring(text).iter("device"):
        if device.get("name", "").strip() == name.strip():
            return {
                ours: max(float(width.text or "nan") for width in test)
                for ours, tag in (
                    ("float32", "single_precision_compute"),
                    ("memory", "global_memory_bandwidth"),
                )
                if (test := device.find(tag)) is not None and len(test)
            }
    return {}


def output_of(command: list[str], settings: dict[str, str]) -> str:
    """Run a peer; give its standard output, and say on the standard error how it failed."""
    try:
        ended = subprocess.run(
            command,
            env=os.environ | settings,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return ""
    if ended.returncode:
        print(f"{command[0]} ended with status {ended.returncode}", file=sys.stderr)
    return ended.stdout


def comparison(found: Figures, info: DeviceInfo) -> Shown:
    """Lay both figures side by side, with their ratio."""
    shown = Shown("what", "fuel-gpu", "peer", "its figure", "ratio", f"within {AGREEMENT:.0%}")
    rows = [
        *(
            (f"copy {way}, {size} MiB", f"{way}, {size} MiB", "StarPU", found.starpu, way)
            for size in (32, 16)
            for way in ("to the device", "from the device")
        ),
        ("float32, matrix product", "float32", "clpeak", found.clpeak, "float32"),
        *(
            (f"float32, chains a work-item: {n}", name, "clpeak", found.clpeak, "float32")
            for n in CHAIN_COUNTS
            if (name := f"float32, chains: {n}")
        ),
        ("memory, read and written", "memory", "clpeak", found.clpeak, "memory"),
        *(
            (f"memory, {name}", name, "clpeak", found.clpeak, "memory")
            for name in ("reads a work-group apart", "reads one after the other")
        ),
    ]
    for what, name, peer, theirs, their_name in rows:
        mine, other = found.ours.get(name, []), theirs.get(their_name, [])
        cells = [what, spread(mine), peer, spread(other)]
        if mine and other:
            ratio = statistics.median(mine) / statistics.median(other)
            near = abs(ratio - 1) <= AGREEMENT
            cells += [f"{ratio:.2f}", "yes" if near else "no"]
        shown.add_row(*cells)
    size = 16 if info.host_processor else 32
    shown.caption = (
        "GB/s and GFLOP/s: median of the rounds, lowest and highest beside it. StarPU copies "
        f"{size} MiB on this kind of device."
    )
    return shown


def spread(values: list[float]) -> str:
    """A median, with the lowest and highest."""
    if not values:
        return "none"
    middle = f"{statistics.median(values):.3g}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.3g} .. {max(values):.3g})"


def repeatability(tables: list[Table]) -> str:
    """Say which share of the figures has overlapping intervals, and how far the medians differ.

    Over all pairs of runs.
    """
    lines = ["Two calibrations, over all pairs of runs:"]
    for kind, figures in (("copies", copy_figures), ("rates and launches", rate_figures)):
        agreed: list[bool] = []
        apart: list[float] = []
        for one, other in itertools.combinations([dict(figures(table)) for table in tables], 2):
            for key in one.keys() & other.keys():
                (middle, (low, high)), (other_middle, (other_low, other_high)) = (
                    one[key],
                    other[key],
                )
                agreed.append(max(low, other_low) <= min(high, other_high))
                apart.append(abs(middle - other_middle) / min(middle, other_middle))
        if agreed:
            lines.append(
                f"{kind}: 95 % intervals overlap for {sum(agreed)} of {len(agreed)} "
                f"({sum(agreed) / len(agreed):.0%}); medians differ by "
                f"{np.median(apart):.1%}, by {np.quantile(apart, 0.9):.1%} in the worst tenth"
            )
    return "\n".join(lines)


def copy_figures(table: Table) -> Iterator[tuple[Key, Interval]]:
    """Median and interval of every size of every copy, nanoseconds."""
    for transfer in table.transfers:
        for point in transfer.points:
            if point.interval is not None:
                key = (transfer.src, transfer.dst, transfer.memory, point.bytes)
                yield key, (point.ns, point.interval)


def rate_figures(table: Table) -> Iterator[tuple[Key, Interval]]:
    """Median and interval of every rate, and of launching, which is one figure a device."""
    for rate in table.rates:
        for key, median, interval in (
            ((rate.device, rate.dtype, "flops"), rate.flops_per_ns, rate.flops_interval),
            ((rate.device, rate.dtype, "bytes"), rate.bytes_per_ns, rate.bytes_interval),
            ((rate.device, "launch"), rate.launch_ns, rate.launch_interval),
        ):
            if median is not None and interval is not None:
                yield key, (median, interval)


if __name__ == "__main__":
    main()
