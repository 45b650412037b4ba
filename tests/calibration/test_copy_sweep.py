"""The sweep over sizes: bounded, checked for arrival, refined at bends, released in the end."""

from fake_device import HASTY, FakeCopies

from fuel_gpu.calibration.copy_sweep import measure_copies, size_bound_bytes
from fuel_gpu.calibration.effort import Budget
from fuel_gpu.calibration.records import CopyMeasured, Note, Record
from fuel_gpu.probes.report import DeviceInfo

GIB = 2**30


def info(memory: int, largest: int | None = None) -> DeviceInfo:
    return DeviceInfo(
        id="cuda:0",
        backend="cuda",
        name="card",
        memory_bytes=memory,
        largest_allocation_bytes=largest,
    )


def sweep(
    copies: FakeCopies, *, bound_bytes: int = GIB, refine: bool = True
) -> tuple[list[Record], list[int]]:
    """Give the records, and the largest allocation that was asked for."""
    asked: list[int] = []

    def allocate(largest: int) -> FakeCopies:
        asked.append(largest)
        return copies

    records = list(
        measure_copies(
            ("cpu:0", "cuda:0"),
            allocate,
            HASTY.copy_sizes_bytes,
            bound_bytes,
            HASTY,
            Budget(HASTY.budget_s, 1.0),
            1.0,
            refine=refine,
        )
    )
    return records, asked


def line() -> FakeCopies:
    return FakeCopies("pageable", lambda n: 1000 + n, lambda n: 2000 + n)


def last_points(records: list[Record]) -> dict[tuple[str, str, int], CopyMeasured]:
    return {(r.src, r.dst, r.point.bytes): r for r in records if isinstance(r, CopyMeasured)}


def test_the_bound_is_an_eighth_of_the_smaller_memory_or_the_largest_allocation() -> None:
    assert size_bound_bytes(info(8 * GIB), 80 * GIB) == GIB
    assert size_bound_bytes(info(80 * GIB), 8 * GIB) == GIB
    assert size_bound_bytes(info(80 * GIB, largest=5000), 80 * GIB) == 5000


def test_every_size_is_measured_both_ways_and_the_bound_recorded() -> None:
    copies = line()
    found = last_points(sweep(copies)[0])
    assert {
        (src, dst): ns
        for (src, dst, size), r in found.items()
        if size == 8192
        for ns in [r.point.ns]
    } == {
        ("cpu:0", "cuda:0"): 1000 + 8192,
        ("cuda:0", "cpu:0"): 2000 + 8192,
    }
    assert {size for _, _, size in found} == set(HASTY.copy_sizes_bytes)
    assert {r.size_bound_bytes for r in found.values()} == {GIB}
    assert {r.memory for r in found.values()} == {"pageable"}


def test_the_first_pass_covers_all_sizes_before_any_is_visited_again() -> None:
    records, _ = sweep(line())
    first = [r.point.bytes for r in records if isinstance(r, CopyMeasured)][:8]
    assert sorted(first) == [4096, 4096, 8192, 8192, 16384, 16384, 32768, 32768]
    assert first[::2] == first[1::2]  # each size both ways


def test_short_copies_are_visited_again_however_late_it_is() -> None:
    late = Budget(1e-9, 1.0)
    copies = FakeCopies("pageable", lambda n: 100 * n, lambda n: 100 * n + 1)
    sizes = HASTY.copy_sizes_bytes
    records = list(
        measure_copies(("cpu:0", "cuda:0"), lambda _: copies, sizes, GIB, HASTY, late, 1.0)
    )
    runs = {size: len(r.point.samples) for (_, _, size), r in last_points(records).items()}
    assert runs[4096] == 5  # of 0.4 ms: once, and four times more
    assert runs[max(sizes)] == 1


def test_sizes_over_the_bound_are_not_tried() -> None:
    records, asked = sweep(line(), bound_bytes=9000)
    assert {size for _, _, size in last_points(records)} == {4096, 8192}
    assert asked == [8192]


def test_too_small_a_bound_is_told() -> None:
    records, asked = sweep(line(), bound_bytes=100)
    assert records == [Note(text="no copies: only 100 B of memory may be used for one")]
    assert asked == []


def test_samples_and_their_interval_are_kept() -> None:
    point = last_points(sweep(line())[0])["cpu:0", "cuda:0", 4096].point
    assert set(point.samples) == {1000 + 4096}
    assert len(point.samples) >= 6
    assert point.interval == (1000 + 4096, 1000 + 4096)
    assert point.flags == ()


def test_a_copy_that_did_not_arrive_is_left_out_with_a_note() -> None:
    copies = line()
    copies.lost_bytes = 16384
    records, _ = sweep(copies)
    assert {size for _, _, size in last_points(records)} == {4096, 8192}
    notes = [r.text for r in records if isinstance(r, Note)]
    assert "copies, pageable, 16 KiB: came back different, left out" in notes


def test_the_warm_up_is_discarded() -> None:
    calls: dict[int, int] = {}

    def slow_at_first(n: int) -> int:
        calls[n] = calls.get(n, 0) + 1
        return 10**9 if calls[n] == 1 else 1000 + n

    records, _ = sweep(FakeCopies("pageable", slow_at_first, lambda n: 2000 + n))
    assert all(max(r.point.samples) < 10**9 for r in records if isinstance(r, CopyMeasured))


def test_a_bend_gets_sizes_in_between() -> None:
    def cliff(n: int) -> int:
        return 1000 + n if n <= 8192 else 50 * n

    copies = FakeCopies("pageable", cliff, cliff)
    sizes = {size for _, _, size in last_points(sweep(copies)[0])}
    assert {11584, 5792} <= sizes  # amid 8 and 16 KiB, amid 4 and 8 KiB
    assert {size for _, _, size in last_points(sweep(copies, refine=False)[0])} == set(
        HASTY.copy_sizes_bytes
    )


def test_buffers_are_released_even_if_a_copy_raises() -> None:
    def broken(n: int) -> int:
        raise RuntimeError("the driver gave up")

    copies = FakeCopies("pageable", broken, broken)
    try:
        sweep(copies)
    except RuntimeError:
        assert copies.released
    else:
        raise AssertionError("the driver's error was lost")
