"""A table's figures for other programs and for people: JSON, CSV and Markdown."""

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields
from typing import Final

from fuel_gpu.calibration.table import Point, Rate, Table, Transfer
from fuel_gpu.calibration.table_file import encode_table
from fuel_gpu.errors import UsageError
from fuel_gpu.sizes import size_text


def export_table(table: Table, format: str) -> str:
    """Give a table's figures as text.

    Parameters
    ----------
    table
        What to export.
    format
        ``json``, the table itself; ``csv``, one figure a row; ``markdown``, matrices and tables.

    Raises
    ------
    UsageError
        If the format is unknown.
    """
    write = _FORMATS.get(format)
    if write is None:
        raise UsageError(f"{format!r} is no export format; there are {', '.join(_FORMATS)}")
    return write(table)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a table, as a row of the long form.

    Parameters
    ----------
    kind
        ``copy``, ``compute``, ``memory`` or ``launch``.
    src, dst
        The devices of a copy; a rate's device and nothing.
    memory, bytes, dtype
        What a copy was of, or a rate is in; empty where that has no meaning.
    value, unit
        The median.
    low, high
        Its 95 % confidence interval; empty where nothing was measured.
    samples
        How many runs.
    """

    kind: str
    src: str
    dst: str
    memory: str
    bytes: int | None
    dtype: str
    value: float
    unit: str
    low: float | None
    high: float | None
    samples: int
    provenance: str
    flags: str


def figures(table: Table) -> Iterator[Figure]:
    """Every figure of a table: copies by pair and size, then rates by device and dtype."""
    for transfer in table.transfers:
        for point in transfer.points:
            yield _copy_figure(transfer, point)
    for rate in table.rates:
        yield from _rate_figures(rate)


def _copy_figure(transfer: Transfer, point: Point) -> Figure:
    low, high = point.interval or (None, None)
    return Figure(
        kind="copy",
        src=transfer.src,
        dst=transfer.dst,
        memory=transfer.memory,
        bytes=point.bytes,
        dtype="",
        value=point.ns,
        unit="ns",
        low=low,
        high=high,
        samples=len(point.samples),
        provenance=transfer.provenance,
        flags=" ".join(point.flags),
    )


def _rate_figures(rate: Rate) -> Iterator[Figure]:
    quantities = (
        ("compute", rate.flops_per_ns, "FLOP/ns", rate.flops_interval, rate.flops_samples, "flops"),
        ("memory", rate.bytes_per_ns, "byte/ns", rate.bytes_interval, rate.bytes_samples, "bytes"),
        ("launch", rate.launch_ns, "ns", rate.launch_interval, rate.launch_samples, "launch"),
    )
    for kind, value, unit, interval, samples, prefix in quantities:
        if value is None:
            continue
        low, high = interval or (None, None)
        flags = [flag.split(": ")[1] for flag in rate.flags if flag.startswith(f"{prefix}: ")]
        yield Figure(
            kind=kind,
            src=rate.device,
            dst="",
            memory="",
            bytes=None,
            dtype=rate.dtype,
            value=value,
            unit=unit,
            low=low,
            high=high,
            samples=len(samples),
            provenance=rate.provenance,
            flags=" ".join(flags),
        )


def _json(table: Table) -> str:
    return encode_table(table).decode()


def _csv(table: Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(Figure)])
    writer.writerows(astuple(figure) for figure in figures(table))
    return text.getvalue()


def _markdown(table: Table) -> str:
    parts = [f"# {table.machine.cpu or 'Calibration table'}", f"Made {table.created}."]
    parts += [f"- {note}" for note in table.notes]
    parts += ["## Devices", _rows(("device", "name", "memory", "driver"), _devices(table))]
    for memory in dict.fromkeys(t.memory for t in table.transfers):
        chosen = [t for t in table.transfers if t.memory == memory and t.points]
        ids = [d.id for d in table.devices if any(d.id in (t.src, t.dst) for t in chosen)]
        parts += [
            f"## Copies, {memory} memory: GB/s at the largest size",
            _matrix(ids, {(t.src, t.dst): _bandwidth(t) for t in chosen}),
            f"## Copies, {memory} memory: time at the smallest size",
            _matrix(ids, {(t.src, t.dst): _latency(t) for t in chosen}),
        ]
    copies = [f for f in figures(table) if f.kind == "copy"]
    parts += [
        "## Copies",
        _rows(
            ("from", "to", "memory", "size", "ns", "95 % interval", "GB/s", "provenance", "flags"),
            (
                (
                    *(f.src, f.dst, f.memory, size_text(f.bytes or 0), f"{f.value:.0f}"),
                    *(_interval(f, 0), f"{(f.bytes or 0) / f.value:.3g}", f.provenance, f.flags),
                )
                for f in copies
            ),
        ),
        "## Rates",
        _rows(
            ("device", "dtype", "what", "median", "unit", "95 % interval", "provenance", "flags"),
            (
                (
                    *(f.src, f.dtype, f.kind, f"{f.value:.4g}", f.unit),
                    *(_interval(f, 4), f.provenance, f.flags),
                )
                for f in figures(table)
                if f.kind != "copy"
            ),
        ),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _devices(table: Table) -> Iterator[tuple[str, ...]]:
    for device in table.devices:
        yield device.id, device.name, size_text(device.memory_bytes), device.driver


def _matrix(ids: list[str], cells: dict[tuple[str, str], str]) -> str:
    rows = ((src, *(cells.get((src, dst), "") for dst in ids)) for src in ids)
    return _rows(("from \\ to", *ids), rows)


def _bandwidth(transfer: Transfer) -> str:
    point = transfer.points[-1]
    return f"{point.bytes / point.ns:.3g} ({size_text(point.bytes)}, {transfer.provenance})"


def _latency(transfer: Transfer) -> str:
    point = transfer.points[0]
    return f"{point.ns / 1000:.3g} us ({size_text(point.bytes)}, {transfer.provenance})"


def _interval(figure: Figure, digits: int) -> str:
    if figure.low is None or figure.high is None:
        return ""
    form = f".{digits}g" if digits else ".0f"
    return f"{figure.low:{form}} .. {figure.high:{form}}"


def _rows(heads: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


_FORMATS: Final[dict[str, Callable[[Table], str]]] = {
    "json": _json,
    "csv": _csv,
    "markdown": _markdown,
}
