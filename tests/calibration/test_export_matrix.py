"""Matrices: bandwidth and latency of every ordered pair, worked by hand, and how each is known."""

import pytest
from export_tables import DOWN, MACHINE, MIB, UP, copies, device

from fuel_gpu.calibration.export_matrix import Matrix, Paths, host_memory_kinds, matrices
from fuel_gpu.calibration.table import FORMAT_VERSION, Machine, Table, Transfer


def table_of(*transfers: Transfer) -> Table:
    ids = dict.fromkeys(end for t in transfers for end in (t.src, t.dst))
    return Table(
        version=FORMAT_VERSION,
        machine=Machine(fingerprint="abc"),
        created="",
        devices=tuple(device(name, "a device") for name in ids),
        transfers=transfers,
        rates=(),
    )


def pageable(table: Table) -> Matrix:
    return next(m for m in matrices(table) if m.memory == "pageable")


def test_bandwidth_is_the_size_over_the_measured_median() -> None:
    matrix = pageable(MACHINE)
    assert matrix.devices == ("cpu:0", "cuda:0", "opencl:0")
    assert matrix.bandwidth_bytes == 32 * MIB
    assert matrix.bytes_per_ns(0, 1) == 8.0
    assert matrix.bytes_per_ns(1, 0) == 4.0
    assert str(matrix.bandwidth_cells[0][1]) == "measured"


def test_latency_is_the_time_of_the_smallest_copy() -> None:
    matrix = pageable(MACHINE)
    assert matrix.latency_bytes == 4096
    up, down = matrix.latency_cells[0][1], matrix.latency_cells[1][0]
    assert up is not None
    assert down is not None
    assert (up.ns, down.ns) == (11_000, 9_000)
    assert up.is_measured


def test_the_latencies_of_one_matrix_are_of_one_size() -> None:
    table = table_of(copies("cpu:0", "cuda:0", UP), copies("cuda:0", "cpu:0", {MIB: 1, 2 * MIB: 2}))
    assert pageable(table).latency_bytes == MIB


def test_a_pair_without_copies_of_its_own_goes_through_the_host() -> None:
    """cuda:0 down to the host, 2**23 ns, and up to opencl:0, 1,000 ns and 32 MiB at 16 byte/ns."""
    cell = pageable(MACHINE).bandwidth_cells[1][2]
    assert cell is not None
    assert cell.ns == 2**23 + 1_000 + 2**21
    assert str(cell) == "datasheet, through cpu:0"


def test_a_pair_of_which_nothing_is_known_has_no_number() -> None:
    matrix = pageable(MACHINE)
    assert matrix.bandwidth_cells[2][0] is None
    assert matrix.bytes_per_ns(2, 0) is None
    assert [matrix.bandwidth_cells[i][i] for i in range(3)] == [None, None, None]


def test_each_kind_of_host_memory_has_its_matrix() -> None:
    assert host_memory_kinds(MACHINE) == ("pageable", "pinned")
    pinned = matrices(MACHINE)[1]
    assert pinned.memory == "pinned"
    assert pinned.bytes_per_ns(0, 1) == 16.0
    assert pinned.bandwidth_cells[1][0] is None


def test_copies_between_cards_are_in_the_matrix_of_each_kind() -> None:
    table = table_of(
        copies("cpu:0", "cuda:0", UP),
        copies("cpu:0", "cuda:0", UP, memory="pinned"),
        copies("cuda:0", "cuda:1", {4096: 1_000, 32 * MIB: 2**20}, memory="peer"),
        copies("cuda:0", "cuda:1", DOWN, memory="staged"),
    )
    assert [m.bytes_per_ns(1, 2) for m in matrices(table)] == [32.0, 32.0]


def test_without_the_host_there_is_one_matrix() -> None:
    table = table_of(copies("cuda:0", "cuda:1", UP, memory="peer"))
    (matrix,) = matrices(table)
    assert (matrix.memory, matrix.bytes_per_ns(0, 1)) == ("", 8.0)


@pytest.mark.parametrize(
    ("size", "ns", "basis"),
    [
        (MIB, 2**17, "measured"),
        (2 * MIB, 2**17 + (2**22 - 2**17) // 31, "measured, fitted"),
        (40 * MIB, 2**22 + MIB, "measured, extrapolated"),  # 8 MiB more, at 8 byte/ns
        (0, 10_000, "measured, extrapolated"),
    ],
)
def test_a_size_that_was_not_measured_says_so(size: int, ns: int, basis: str) -> None:
    cell = Paths(MACHINE, ("pageable",)).cell("cpu:0", "cuda:0", size)
    assert cell is not None
    assert (cell.ns, str(cell)) == (ns, basis)
    assert cell.is_measured == (basis == "measured")


def test_the_first_kind_of_memory_that_a_pair_has_is_taken() -> None:
    paths = Paths(MACHINE, ("pinned", "pageable"))
    up, down = paths.cell("cpu:0", "cuda:0", 32 * MIB), paths.cell("cuda:0", "cpu:0", 32 * MIB)
    assert up is not None
    assert down is not None
    assert (up.ns, down.ns) == (2**21, 2**23)


def test_a_table_without_copies_has_an_empty_matrix() -> None:
    (matrix,) = matrices(table_of())
    assert (matrix.devices, matrix.bandwidth_cells, matrix.latency_bytes) == ((), (), 4096)
