"""Sittings joined: one figure of all of them, the next one's agenda, and when they are over."""

from collections.abc import Iterable

import pytest
from fake_device import HASTY

from fuel_gpu.calibration.effort import QUICK
from fuel_gpu.calibration.figures import figure, rate_of
from fuel_gpu.calibration.records import (
    Chosen,
    CopyMeasured,
    DuplexMeasured,
    Note,
    OthersBusy,
    RateMeasured,
    Record,
    Request,
    Swept,
    Wrong,
)
from fuel_gpu.calibration.sittings import Sittings
from fuel_gpu.calibration.table import Duplex, Point
from fuel_gpu.probes.report import DeviceInfo

CARD = DeviceInfo(id="cuda:0", backend="cuda", name="card", memory_bytes=2**30)
PRODUCT = Chosen(kernel="plain", size=512)
STREAM = Chosen(kernel="copy", size=2**20)
SWEPT = Swept(src="cpu:0", dst="cuda:0", memory="pinned")


def sittings(count: int = 6) -> Sittings:
    return Sittings(Request(device=CARD), HASTY, count)


def copy(*samples: int, size: int = 4096, memory: str = "pinned") -> CopyMeasured:
    point = Point(bytes=size, ns=0, samples=samples)
    return CopyMeasured(
        src="cpu:0", dst="cuda:0", memory=memory, size_bound_bytes=2**27, point=point, measured=""
    )


def rate(
    flops: float | None, moved: float | None, dtype: str = "float32", *, whole: bool = True
) -> RateMeasured:
    def made(value: float | None, kernel: str) -> object:
        return value and figure([[value] * 3], width=0.03, kernel=kernel)

    launch = figure([[500.0] * 3], width=0.03)
    return RateMeasured(
        rate=rate_of("cuda:0", dtype, launch, made(flops, "plain"), made(moved, "copy")),  # type: ignore[arg-type]
        whole=whole,
        product=PRODUCT if flops else None,
        stream=STREAM if moved else None,
    )


def duplex(value: float) -> DuplexMeasured:
    made = Duplex(
        ends=("cpu:0", "cuda:0"),
        memory="pinned",
        bytes=2**20,
        bytes_per_ns=value,
        provenance="measured",
        samples=(value,),
    )
    return DuplexMeasured(duplex=made)


def sit(joined: Sittings, records: Iterable[Record], *, whole: bool = True) -> list[Record]:
    """Take in a whole sitting."""
    given = [one for record in records for one in joined.joined(record)]
    joined.end(whole=whole)
    return given


def test_a_copys_figure_is_the_trimmed_mean_of_all_sittings_samples() -> None:
    joined = sittings()
    sit(joined, [copy(100, 100, 130)])
    sit(joined, [copy(200, 210, 190)])
    (found,) = sit(joined, [copy(150)])
    assert isinstance(found, CopyMeasured)
    assert found.point.ns == 154  # (100 + 130 + 150 + 190 + 200) / 5: one at either end is cut
    assert found.point.samples == (100, 100, 130, 200, 210, 190, 150)
    assert found.point.interval == (100, 210)  # of all samples: three sittings are too few


def test_a_later_record_of_one_sitting_replaces_its_earlier_one() -> None:
    joined = sittings()
    sit(joined, [copy(100), copy(100, 120, 110)])
    (found,) = sit(joined, [copy(130)])
    assert isinstance(found, CopyMeasured)
    assert found.point.samples == (100, 120, 110, 130)


def test_what_is_whole_is_told_when_all_is_over() -> None:
    joined = sittings(1)
    given = sit(joined, [copy(100), SWEPT, rate(4.0, None, whole=False), rate(4.0, 8.0)])
    assert SWEPT not in given
    assert not any(one.whole for one in given if isinstance(one, RateMeasured))
    closing = list(joined.closing())
    assert closing[0] == SWEPT
    assert [one.whole for one in closing if isinstance(one, RateMeasured)] == [True]


def test_a_rate_that_no_sitting_measured_to_the_end_is_not_whole() -> None:
    joined = sittings(1)
    sit(joined, [rate(4.0, None, whole=False)], whole=False)
    assert list(joined.closing()) == []


def test_the_first_sitting_finds_out_and_the_others_measure_its_winners() -> None:
    joined = sittings()
    assert joined.request.agenda is None
    sit(joined, [copy(100), copy(90, size=8192), rate(4.0, 8.0), rate(None, 8.0, "int8"), duplex(9)])
    agenda = joined.request.agenda
    assert agenda is not None
    assert agenda.copy_sizes_bytes == {"pinned": (4096, 8192)}
    assert agenda.products == {"float32": PRODUCT}
    assert agenda.streams == {"float32": STREAM, "int8": STREAM}
    assert agenda.duplex == ("pinned",)
    assert agenda.noded == ""


def test_a_wrong_result_in_a_later_sitting_withdraws_the_figure_for_good() -> None:
    joined = sittings()
    sit(joined, [rate(4.0, 8.0)])
    *_, found = sit(joined, [rate(None, 8.0), Wrong(quantity="flops", of="float32")])
    assert isinstance(found, RateMeasured)
    assert (found.rate.flops_per_ns, found.rate.bytes_per_ns) == (None, 8.0)
    agenda = joined.request.agenda
    assert agenda is not None
    assert agenda.products == {}
    assert agenda.streams == {"float32": STREAM}


def test_wrong_copies_both_ways_are_told_and_not_measured_again() -> None:
    joined = sittings()
    sit(joined, [duplex(9.0)])
    wrong = Wrong(quantity="duplex", of="pinned")
    assert sit(joined, [wrong]) == [wrong]
    assert sit(joined, [duplex(9.0)]) == []


def test_they_are_over_after_so_many() -> None:
    joined = sittings(2)
    sit(joined, [copy(100)])
    assert not joined.over
    sit(joined, [copy(150)])
    assert joined.over
    assert not joined.failed


def test_they_are_over_after_six_that_agree() -> None:
    joined = sittings(12)
    for index in range(6):
        assert not joined.over, index
        sit(joined, [copy(100, 100, 100)])
    assert joined.over


def test_they_go_on_while_a_figure_is_unsettled() -> None:
    joined = sittings(12)
    for ns in (100, 120, 100, 120, 100, 120):
        sit(joined, [copy(100), copy(ns, size=8192)])
    assert not joined.over


def test_one_that_is_not_whole_is_the_last() -> None:
    joined = sittings()
    sit(joined, [copy(100)], whole=False)
    assert joined.over
    assert joined.failed


def test_other_processes_are_complained_of_once_by_their_mean() -> None:
    joined = sittings(2)
    sit(joined, [OthersBusy(cores=0.0)])
    sit(joined, [OthersBusy(cores=2.0)])
    (note,) = joined.closing()
    assert isinstance(note, Note)
    assert note.text.startswith("other processes kept 1.0 of ")


@pytest.mark.parametrize(("ended", "of_sitting", "share"), [(0, 0.0, 0.0), (0, 1.0, 3 / 8), (1, 0.5, 3.5 / 8)])
def test_the_first_sitting_is_three_eighths_of_the_time(
    ended: int, of_sitting: float, share: float
) -> None:
    joined = Sittings(Request(device=CARD), QUICK, QUICK.sittings)
    for _ in range(ended):
        joined.end(whole=True)
    assert joined.spent(of_sitting) == pytest.approx(share)
