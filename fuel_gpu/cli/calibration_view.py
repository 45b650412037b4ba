"""A calibration table in a few lines: copies by pair, rates by device, what went wrong."""

from typing import TYPE_CHECKING

from fuel_gpu.cli.console import console, format_bytes, format_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fuel_gpu.calibration.table import Conditions, Rate, Table, Transfer
    from fuel_gpu.calibration.verify import Verification

_SHOWN_SIZES_BYTES = (64 * 2**10, 2**20)
_DOUBTFUL = "~"


def print_summary(table: "Table") -> None:
    """Print what was measured; every figure with its provenance, doubtful ones marked."""
    screen = console()
    if table.transfers:
        screen.print(_copies(table))
    if table.rates:
        screen.print(_rates(table))
    if table.duplex or any(rate.nodes for rate in table.rates):
        screen.print(_besides(table))
    for line in _conditions(table):
        screen.print(line)
    if _any_doubt(table):
        screen.print(
            f"{_DOUBTFUL} doubtful: the samples drift, fall into two kinds or are too far apart, "
            "or the clocks were held back; the table's flags say which"
        )
    for note in table.notes:
        screen.print(f"note: {note}")


def print_verification(verification: "Verification") -> None:
    """Print predicted against measured times, each path's errors in one line, and the verdict."""
    from rich import box
    from rich.table import Table as Grid

    screen = console()
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("from", "to", "memory"):
        grid.add_column(head)
    for head in ("size", "predicted", "measured", "95 % interval", "error"):
        grid.add_column(head, justify="right")
    for one in verification.held_out:
        low, high = one.measured.interval or (one.measured.ns, one.measured.ns)
        grid.add_row(
            *(one.src, one.dst, one.memory, format_bytes(one.measured.bytes)),
            *(format_ns(one.predicted_ns), format_ns(one.measured.ns)),
            *(f"{format_ns(low)} .. {format_ns(high)}", f"{one.error:+.1%}"),
        )
    if verification.held_out:
        screen.print(grid)
    for path in verification.paths:
        promised = (
            "" if path.promised_error is None else f"its fit promises {path.promised_error:.1%}, "
        )
        screen.print(
            f"{path.src} to {path.dst}, {path.memory}: median error {path.median_error:.1%}, "
            f"worst {path.worst_error:.1%} over {path.sizes} sizes left out of the fit "
            f"({promised}allowed are {path.allowed_error:.1%})"
        )
    for note in verification.notes:
        screen.print(f"note: {note}")
    screen.print(_verdict(verification))


def verification_json(verification: "Verification") -> str:
    """Give a verification for programs."""
    import msgspec

    document = {
        "holds": verification.holds,
        "paths": [
            {**msgspec.to_builtins(path), "holds": path.holds} for path in verification.paths
        ],
        "held_out": [
            {**msgspec.to_builtins(one), "error": one.error} for one in verification.held_out
        ],
        "notes": verification.notes,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _verdict(verification: "Verification") -> str:
    if not verification.paths:
        return "verdict: nothing was verified: no copies were measured for comparison"
    off = [f"{p.src} to {p.dst}, {p.memory}" for p in verification.paths if not p.holds]
    if off:
        return f"verdict: the table's copies no longer hold: {'; '.join(off)}: calibrate again"
    return "verdict: the table's copies hold"


def _copies(table: "Table") -> object:
    from rich import box
    from rich.table import Table as Grid

    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("from", "to", "memory"):
        grid.add_column(head)
    for head in ("latency", *(f"GB/s at {format_bytes(size)}" for size in _SHOWN_SIZES_BYTES)):
        grid.add_column(head, justify="right")
    grid.add_column("GB/s at most", justify="right")
    grid.add_column("fit error", justify="right")
    grid.add_column("provenance")
    for transfer in table.transfers:
        if not transfer.points:
            continue
        last = transfer.points[-1]
        error = transfer.curve.median_error
        grid.add_row(
            transfer.src,
            transfer.dst,
            transfer.memory,
            format_ns(transfer.points[0].ns),
            *(_bandwidth_at(transfer, size) for size in _SHOWN_SIZES_BYTES),
            f"{last.bytes / last.ns:.3g} ({format_bytes(last.bytes)})",
            "-" if error is None else f"{error:.1%}",
            _provenance(transfer.provenance, (transfer.notes,)),
        )
    return grid


def _besides(table: "Table") -> object:
    """Give what copies reach both ways at once, and what each memory node streams."""
    from rich import box
    from rich.table import Table as Grid

    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("devices", "besides"):
        grid.add_column(head)
    grid.add_column("GB/s", justify="right")
    grid.add_column("provenance")
    for duplex in table.duplex:
        what = f"copies both ways at once, {duplex.memory}, {format_bytes(duplex.bytes)} each"
        value = f"{duplex.bytes_per_ns:.4g}{_doubt(duplex.flags)}"
        grid.add_row(" and ".join(duplex.ends), what, value, duplex.provenance)
    for rate in table.rates:
        for node in rate.nodes:
            what = f"memory node {node.node}, processors {node.cpus}, {rate.dtype}"
            value = f"{node.bytes_per_ns:.4g}{_doubt(node.flags)}"
            grid.add_row(rate.device, what, value, rate.provenance)
    return grid


def _conditions(table: "Table") -> "Iterator[str]":
    """Say under which link and clocks each device was measured, as its own counters tell."""
    from fuel_gpu.calibration.figures import joint_conditions
    from fuel_gpu.calibration.table_health import measured_under

    seen: dict[str, list[Conditions | None]] = {}
    for device, _, conditions in measured_under(table):
        seen.setdefault(device, []).append(conditions)
    for device, several in seen.items():
        if (of_all := joint_conditions(several)) is not None:
            said = list(_said(of_all))
            if said:
                yield f"{device} while it was measured: {', '.join(said)}"


def _said(conditions: "Conditions") -> "Iterator[str]":
    from fuel_gpu.probes.pcie import Link

    if conditions.link_generation is not None and conditions.link_width is not None:
        yield str(Link(conditions.link_generation, conditions.link_width))
    for what, clock in (
        ("clock", conditions.sm_clock_mhz),
        ("memory", conditions.memory_clock_mhz),
    ):
        if clock is not None:
            low, high = clock
            yield f"{what} {low} MHz" if low == high else f"{what} {low} to {high} MHz"
    if conditions.throttled:
        yield f"held back by {', '.join(conditions.throttled)}"


def _bandwidth_at(transfer: "Transfer", size: int) -> str:
    point = next((p for p in transfer.points if p.bytes == size), None)
    return "-" if point is None else f"{size / point.ns:.3g}{_doubt(point.flags)}"


def _any_doubt(table: "Table") -> bool:
    """Whether a figure that is shown is marked as doubtful."""
    points = (p for transfer in table.transfers for p in transfer.points)
    besides = [one.flags for one in table.duplex]
    besides += [node.flags for rate in table.rates for node in rate.nodes]
    return any((*besides, *(p.flags for p in points if p.bytes in _SHOWN_SIZES_BYTES))) or any(
        value is not None and _flags_of(rate, what)
        for rate in table.rates
        for what, value in (("flops", rate.flops_per_ns), ("bytes", rate.bytes_per_ns))
    )


def _rates(table: "Table") -> object:
    from rich import box
    from rich.table import Table as Grid

    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("device", "dtype"):
        grid.add_column(head)
    for head in ("GFLOP/s", "GB/s", "launch"):
        grid.add_column(head, justify="right")
    grid.add_column("provenance")
    grid.add_column("best kernel")
    for rate in table.rates:
        grid.add_row(
            rate.device,
            rate.dtype,
            _figure(rate.flops_per_ns, rate, "flops"),
            _figure(rate.bytes_per_ns, rate, "bytes"),
            format_ns(rate.launch_ns),
            _provenance(rate.provenance, rate.flags),
            rate.flops_kernel,
        )
    return grid


def _figure(value: float | None, rate: "Rate", what: str) -> str:
    """Write a rate; FLOP/ns is GFLOP/s and byte/ns is GB/s."""
    if value is None:
        return "-"
    return f"{value:.4g}{_doubt(_flags_of(rate, what))}"


def _flags_of(rate: "Rate", what: str) -> tuple[str, ...]:
    return tuple(flag for flag in rate.flags if flag.startswith(what))


def _provenance(provenance: str, said: tuple[str, ...]) -> str:
    from fuel_gpu.calibration.table import INCOMPLETE

    incomplete = any(words.startswith(INCOMPLETE) for words in said)
    return f"{provenance}, incomplete" if incomplete else provenance


def _doubt(flags: tuple[str, ...]) -> str:
    return f" {_DOUBTFUL}" if flags else ""
