"""The picture of the curves: the usual line by hand, and what the picture is made of."""

import importlib.util
import re
import struct
import sys

import msgspec
import pytest
from export_tables import MACHINE, MIB, UP, copies, device

from fuel_gpu.calibration.plot import TwoPointLine, picture_size, plot_curves, two_point_line
from fuel_gpu.calibration.table import Point, Table, Transfer
from fuel_gpu.errors import FuelGpuError

KIB = 2**10
needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed"
)


def points(ns: dict[int, int]) -> list[Point]:
    return [Point(bytes=size, ns=t) for size, t in ns.items()]


def texts(table: Table) -> list[str]:
    """Every text of the SVG, which has it as a comment beside the letters' outlines."""
    return re.findall(r"<!-- (.*?) -->", plot_curves(table, "svg").decode(), re.DOTALL)


def only(*transfers: Transfer) -> Table:
    return msgspec.structs.replace(MACHINE, transfers=transfers)


def test_the_usual_line_goes_through_64_kib_and_64_mib() -> None:
    line = two_point_line(points({4 * KIB: 7, 64 * KIB: 66_536, 64 * MIB: 64 * MIB + 1_000}))
    assert line == TwoPointLine(64 * KIB, 64 * MIB, latency_ns=1_000.0, ns_per_byte=1.0)
    assert line.at(0) == 1_000
    assert line.error(Point(bytes=MIB, ns=2 * (MIB + 1_000))) == -0.5


def test_the_usual_line_takes_what_is_next_to_its_sizes() -> None:
    line = two_point_line(points({16 * KIB: 16_384, 48 * KIB: 49_152, 32 * MIB: 32 * MIB}))
    assert line == TwoPointLine(48 * KIB, 32 * MIB, latency_ns=0.0, ns_per_byte=1.0)


def test_the_usual_line_never_falls_and_never_starts_below_zero() -> None:
    falling = two_point_line(points({64 * KIB: 500, 64 * MIB: 400}))
    assert falling == TwoPointLine(64 * KIB, 64 * MIB, latency_ns=500.0, ns_per_byte=0.0)
    steep = two_point_line(points({64 * KIB: 1, 64 * MIB: 64 * MIB}))
    assert steep is not None
    assert steep.latency_ns == 0.0


@pytest.mark.parametrize("ns", [{}, {MIB: 1_000}])
def test_one_point_has_no_line(ns: dict[int, int]) -> None:
    assert two_point_line(points(ns)) is None


def test_a_machine_without_matplotlib_is_told_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(FuelGpuError, match=r"matplotlib.*pip install 'fuel-gpu\[plot\]'"):
        plot_curves(MACHINE, "svg")


@needs_matplotlib
def test_a_table_without_copies_has_nothing_to_draw() -> None:
    with pytest.raises(FuelGpuError, match="no copies between devices"):
        plot_curves(only(), "svg")


@needs_matplotlib
def test_every_pair_and_kind_of_memory_has_a_row_with_both_directions() -> None:
    found = texts(MACHINE)
    assert [t for t in found if " memory" in t and " and " in t] == [
        "cpu:0 and cuda:0 (a card), pageable memory",
        "cpu:0 and cuda:0 (a card), pinned memory",
        "cpu:0 and opencl:0 (a processor, once more), pageable memory",
    ]
    assert found.count("cpu:0 to cuda:0") == 2
    assert found.count("cuda:0 to cpu:0") == 1
    assert found.count("GB/s") == 3


@needs_matplotlib
def test_copies_between_cards_name_their_path() -> None:
    table = only(copies("cuda:0", "opencl:0", UP, memory="peer"))
    assert "cuda:0 and opencl:0 (a processor, once more), peer" in texts(table)


@needs_matplotlib
def test_the_usual_lines_error_stands_beside_it() -> None:
    """Through (4 KiB, 11,000) and (32 MiB, 2**22): 141,672 ns at 1 MiB, where 131,072 were."""
    slope = (2**22 - 11_000) / (32 * MIB - 4096)
    assert (11_000 + slope * (MIB - 4096)) / 2**17 == pytest.approx(1.08, abs=0.005)
    found = texts(only(copies("cpu:0", "cuda:0", UP)))
    assert "cpu:0 to cuda:0, through 4 KiB and 32 MiB: off by 8% at 1 MiB" in found


@needs_matplotlib
def test_the_fits_error_stands_beside_it() -> None:
    transfer = copies("cpu:0", "cuda:0", UP)
    curve = msgspec.structs.replace(transfer.curve, median_error=0.031, worst_error=0.12)
    found = texts(only(msgspec.structs.replace(transfer, curve=curve)))
    assert "cpu:0 to cuda:0: left-out points off by 3% (median), 12% (worst)" in found


@needs_matplotlib
def test_what_was_not_measured_is_dashed_and_hollow_and_said_to_be() -> None:
    measured = only(copies("cpu:0", "cuda:0", UP))
    sheet = only(copies("cpu:0", "cuda:0", UP, provenance="datasheet"))
    note = "Hollow marks, dashed lines: not measured (datasheet or fallback)."
    assert note not in "".join(texts(measured))
    assert note in "".join(texts(sheet))
    assert "cpu:0 to cuda:0 (datasheet)" in texts(sheet)
    filled, hollow = (plot_curves(table, "svg").decode() for table in (measured, sheet))
    # the two-point line is dotted, in the picture and in the legend; two fits and one more sample
    assert filled.count("stroke-dasharray") == 2
    assert hollow.count("stroke-dasharray") == 5
    assert filled.count("fill-opacity: 0; stroke: #0072b2") == 0
    assert hollow.count("fill-opacity: 0; stroke: #0072b2") > 0


@needs_matplotlib
def test_the_same_table_gives_the_same_svg() -> None:
    table = only(MACHINE.transfers[0])
    assert plot_curves(table, "svg") == plot_curves(table, "svg")


@needs_matplotlib
def test_the_png_is_as_large_as_its_rows() -> None:
    """Eleven inches wide; 3.6 inches a row and 0.9 around them; 150 dots an inch."""
    image = plot_curves(only(MACHINE.transfers[0]), "png")
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", image[16:24]) == (1650, 675)


def test_a_machine_of_many_cards_still_fits_into_a_png() -> None:
    """Its format ends at 65,536 dots."""
    assert picture_size(2) == pytest.approx((11, 8.1, 150))
    _, height, dots_per_inch = picture_size(200)
    assert height * dots_per_inch == pytest.approx(30_000)


@needs_matplotlib
@pytest.mark.filterwarnings("error")
def test_any_name_can_be_drawn() -> None:
    names = ("a $x_$ card", "显卡 <&>")
    table = msgspec.structs.replace(
        only(MACHINE.transfers[0], MACHINE.transfers[3]),
        devices=(
            MACHINE.devices[0],
            *(device(id, name) for id, name in zip(("cuda:0", "opencl:0"), names, strict=True)),
        ),
    )
    found = texts(table)
    assert "cpu:0 and cuda:0 (a $x_$ card), pageable memory" in found
