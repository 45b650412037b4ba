"""A picture of every transfer curve: samples, figures, fit, and the usual line for contrast."""

import io
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.calibration.curves import CurveTimes
from fuel_gpu.calibration.table import Point, Table, Transfer
from fuel_gpu.device import HOST
from fuel_gpu.errors import FuelGpuError
from fuel_gpu.sizes import size_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOW_BYTES: Final = 64 * 2**10
_HIGH_BYTES: Final = 64 * 2**20
"""The two sizes through which the usual latency-and-bandwidth line is drawn."""

_SIZES_OF_LINES: Final = (4 * 2**10, 256 * 2**20)
"""Where a curve is drawn that no points were taken for."""

_COLORS: Final = ("#0072b2", "#d55e00")
"""One a direction; told apart with every kind of colour vision (Okabe and Ito, 2002)."""

_ROW_INCHES: Final = (11.0, 3.6)
_MARGIN_INCHES: Final = 0.9
_DOTS_PER_INCH: Final = 150
_MOST_DOTS: Final = 30_000
"""Height of a picture with very many devices; the format itself ends at 65,536."""

_MEASURED_CAPTION: Final = (
    "Small dots: single copies. Marks: the table's figures. Band: their 95 % "
    "confidence intervals. Line: the table's curve."
)
_UNMEASURED_CAPTION: Final = "Hollow marks, dashed lines: not measured (datasheet or fallback)."

_LINE_WIDTHS: Final = (2.4, 1.2)
"""The second direction is drawn over the first, which shows behind it where both agree."""

_LEGEND_SHARE: Final = 0.2
"""How much longer the axis of values is than its values, so that the legend covers none."""

_FEW_DECADES: Final = 2.5
"""An axis of values with fewer has labels between the powers of ten as well."""

_STYLE: Final[dict[Any, Any]] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.hashsalt": "fuel-gpu",  # the same table gives the same file
}


@dataclass(frozen=True, slots=True)
class TwoPointLine:
    """The line of a latency and a bandwidth through two points of a curve.

    Parameters
    ----------
    low_bytes, high_bytes
        The sizes of the two points.
    latency_ns
        Its time at zero bytes, at least zero.
    ns_per_byte
        Its slope, at least zero.
    """

    low_bytes: int
    high_bytes: int
    latency_ns: float
    ns_per_byte: float

    def at(self, nbytes: float) -> float:
        """Nanoseconds for `nbytes`."""
        return self.latency_ns + nbytes * self.ns_per_byte

    def error(self, point: Point) -> float:
        """Relative error at a point, negative where the line is too low."""
        return (self.at(point.bytes) - point.ns) / point.ns


def two_point_line(points: Sequence[Point]) -> TwoPointLine | None:
    """Draw the usual line through the points next to 64 KiB and 64 MiB; None if these are one."""
    if not points:
        return None
    low, high = (
        min(points, key=lambda p: abs(math.log(p.bytes / size)))
        for size in (_LOW_BYTES, _HIGH_BYTES)
    )
    if low.bytes >= high.bytes:
        return None
    ns_per_byte = max(0.0, (high.ns - low.ns) / (high.bytes - low.bytes))
    return TwoPointLine(
        low_bytes=low.bytes,
        high_bytes=high.bytes,
        latency_ns=max(0.0, low.ns - ns_per_byte * low.bytes),
        ns_per_byte=ns_per_byte,
    )


def plot_curves(table: Table, format: str) -> bytes:
    """Draw every transfer curve: a row a pair of devices and kind of memory, both directions in it.

    On the left time over size with each sample, the figures' 95 % intervals as a band, and the
    fit; on the right bandwidth, with the line through two points beside the fit. What was not
    measured has hollow marks and a dashed fit, and a line under the picture says so.

    Parameters
    ----------
    table
        Whose curves.
    format
        ``png`` or ``svg``.

    Raises
    ------
    FuelGpuError
        If matplotlib is not installed, or the table has no copies.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise FuelGpuError(
            "drawing needs matplotlib, which is not installed: pip install 'fuel-gpu[plot]'"
        ) from None
    rows = _rows(table)
    if not rows:
        raise FuelGpuError(
            "the table has no copies between devices, so there is no curve to draw; "
            "calibrate a machine with a second device"
        )
    width, height, dots_per_inch = picture_size(len(rows))
    with mpl.rc_context(_STYLE), warnings.catch_warnings():  # a driver's name may lack its glyphs
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(width, height), layout="constrained")
        figure.suptitle(_title(table), x=0.01, ha="left", fontsize=11, parse_math=False)
        axes = figure.subplots(len(rows), 2, squeeze=False)
        for (left, right), transfers in zip(axes, rows, strict=True):
            _draw_times(left, transfers, _row_title(table, transfers))
            _draw_bandwidths(right, transfers)
        measured = [_is_measured(t) for row in rows for t in row]
        captions = [_MEASURED_CAPTION] * any(measured)
        captions += [_UNMEASURED_CAPTION] * (not all(measured))
        figure.supxlabel("\n".join(captions), x=0.01, ha="left", fontsize=8.5)
        image = io.BytesIO()
        figure.savefig(
            image,
            format=format,
            dpi=dots_per_inch,
            metadata={"Date": None} if format == "svg" else None,
        )
    return image.getvalue()


def picture_size(rows: int) -> tuple[float, float, float]:
    """Width and height of a picture in inches, and its dots an inch."""
    width, row_height = _ROW_INCHES
    height = row_height * rows + _MARGIN_INCHES
    return width, height, min(_DOTS_PER_INCH, _MOST_DOTS / height)


def _rows(table: Table) -> list[list[Transfer]]:
    """Group the transfers by pair of devices and kind of memory."""
    rows: dict[tuple[frozenset[str], str], list[Transfer]] = {}
    for transfer in table.transfers:
        key = (frozenset((transfer.src, transfer.dst)), transfer.memory)
        rows.setdefault(key, []).append(transfer)
    return list(rows.values())


def _title(table: Table) -> str:
    return f"{table.machine.cpu or table.machine.fingerprint}, {table.created[:10]}"


def _row_title(table: Table, transfers: Sequence[Transfer]) -> str:
    names = {d.id: f"{d.id} ({d.name})" for d in table.devices}
    first = transfers[0]
    ends = sorted((first.src, first.dst), key=lambda end: end != str(HOST))
    kind = f"{first.memory} memory" if str(HOST) in ends else first.memory
    return f"{ends[0]} and {names[ends[1]]}, {kind}"


def _draw_times(axes: "Axes", transfers: Sequence[Transfer], title: str) -> None:
    for transfer, color, width in zip(transfers, _COLORS, _LINE_WIDTHS, strict=False):
        points = transfer.points
        sizes = [p.bytes for p in points]
        bounds = [p.interval or (p.ns, p.ns) for p in points]
        axes.plot(
            np.repeat(sizes, [len(p.samples) for p in points]),
            [ns for p in points for ns in p.samples],
            "o",
            color=color,
            markersize=2.2,
            markeredgewidth=0,
            alpha=0.25,
            rasterized=True,  # in an SVG thousands of circles would take megabytes
        )
        axes.fill_between(
            sizes, [b[0] for b in bounds], [b[1] for b in bounds], color=color, alpha=0.3, lw=0
        )
        _draw_figures(axes, transfer, [p.ns for p in points], color)
        grid = _grid(transfer)
        style = _fit_style(transfer)
        axes.plot(
            grid,
            _fitted_ns(transfer, grid),
            style,
            color=color,
            linewidth=width,
            label=_fit_label(transfer),
        )
    axes.set_title(title, parse_math=False)
    axes.set_ylabel("time of one copy")
    _set_scales(axes, lambda ns, _: _time_text(ns))
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** _LEGEND_SHARE)
    axes.legend(loc="upper left")


def _draw_bandwidths(axes: "Axes", transfers: Sequence[Transfer]) -> None:
    for transfer, color, width in zip(transfers, _COLORS, _LINE_WIDTHS, strict=False):
        grid = _grid(transfer)
        _draw_figures(axes, transfer, [p.bytes / p.ns for p in transfer.points], color)
        rate = grid / _fitted_ns(transfer, grid)
        axes.plot(grid, rate, _fit_style(transfer), color=color, linewidth=width)
        if (line := two_point_line(transfer.points)) is not None:
            rate = grid / np.maximum(1.0, line.latency_ns + grid * line.ns_per_byte)
            label = _line_label(transfer, line)
            axes.plot(grid, rate, ":", color=color, linewidth=width, label=label)
    axes.set_title("Bandwidth; dotted: the usual line of one latency and one bandwidth")
    axes.set_ylabel("GB/s")
    _set_scales(axes, lambda rate, _: f"{rate:g}")
    low, high = axes.get_ylim()
    axes.set_ylim(low * (low / high) ** _LEGEND_SHARE, high)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right")


def _draw_figures(axes: "Axes", transfer: Transfer, values: Sequence[float], color: str) -> None:
    face = color if _is_measured(transfer) else "none"
    sizes = [p.bytes for p in transfer.points]
    axes.plot(
        sizes, values, "o", markersize=4.5, markeredgecolor=color, markerfacecolor=face, zorder=3
    )


def _set_scales(axes: "Axes", text_of_value: Callable[[float, object], str]) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    low, high = axes.get_xlim()
    exponents = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    axes.set_xticks([2.0**k for k in exponents if k % 4 == 0])
    axes.xaxis.set_major_formatter(lambda size, _: size_text(round(size)))
    bottom, top = axes.get_ylim()
    between = (1.0, 2.0, 5.0) if math.log10(top / bottom) < _FEW_DECADES else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(subs=between))
    axes.yaxis.set_major_formatter(text_of_value)
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("size of the copy")


def _grid(transfer: Transfer) -> NDArray[np.float64]:
    """Sizes at which to draw a line so that it looks smooth on logarithmic axes."""
    sizes = [p.bytes for p in transfer.points] or _SIZES_OF_LINES
    return np.unique(np.rint(np.geomspace(sizes[0], sizes[-1], 400)))


def _fitted_ns(transfer: Transfer, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    times = CurveTimes(transfer.curve).at_array(sizes.astype(np.uint64))
    return np.maximum(1.0, times.astype(np.float64))


def _fit_style(transfer: Transfer) -> str:
    return "-" if _is_measured(transfer) else "--"


def _fit_label(transfer: Transfer) -> str:
    label = f"{transfer.src} to {transfer.dst}"
    if transfer.provenance != "measured":
        label += f" ({transfer.provenance})"
    if transfer.curve.median_error is None or transfer.curve.worst_error is None:
        return label
    median, worst = transfer.curve.median_error, transfer.curve.worst_error
    return f"{label}: left-out points off by {median:.0%} (median), {worst:.0%} (worst)"


def _line_label(transfer: Transfer, line: TwoPointLine) -> str:
    worst = max(transfer.points, key=lambda p: abs(line.error(p)))
    return (
        f"{transfer.src} to {transfer.dst}, through {size_text(line.low_bytes)} and "
        f"{size_text(line.high_bytes)}: off by {abs(line.error(worst)):.0%} "
        f"at {size_text(worst.bytes)}"
    )


def _is_measured(transfer: Transfer) -> bool:
    return transfer.provenance in ("measured", "shared")


def _time_text(ns: float) -> str:
    for limit, unit in ((1e3, "ns"), (1e6, "µs"), (1e9, "ms")):
        if ns < limit:
            return f"{ns / limit * 1e3:g} {unit}"
    return f"{ns / 1e9:g} s"
