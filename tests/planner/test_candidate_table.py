"""Whole graphs at once: every node keeps what its own alternative set would."""

import tracemalloc

import naive_alternatives as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel_gpu.errors import UsageError
from fuel_gpu.planner.candidate_table import CandidateTable, rank_and_retain

U64_MAX = 2**64 - 1
_COLUMNS = (
    "time_ns",
    "host_bytes",
    "device_bytes",
    "precision",
    "accuracy",
    "device",
    "backend",
)


def table_of(rows: list[tuple[int, naive.Row]]) -> CandidateTable:
    """Make a table of (node, row) pairs."""
    return CandidateTable(
        node=np.array([node for node, _ in rows], np.int64),
        **{
            name: np.array([row[at] for _, row in rows], np.uint64 if at < 3 else np.int32)
            for at, name in enumerate(_COLUMNS)
        },
    )


def random_rows(rng: np.random.Generator, count: int, nodes: int) -> list[tuple[int, naive.Row]]:
    spread = int(rng.choice([1, 2, 4, 10**6]))
    devices, backends = int(rng.choice([1, 3, 5])), int(rng.choice([1, 3, 40]))
    degenerate = int(rng.integers(0, 12))  # an axis, or none of them
    tiers = rng.choice(["one", "both", "saturated"])
    rows = []
    for number in range(count):
        device = int(rng.integers(0, devices))
        memory = int(rng.integers(0, spread))
        host, vram = (memory, 0) if device == 0 else (0, memory)
        if tiers != "one":
            huge = [0, U64_MAX, U64_MAX - 1] if tiers == "saturated" else [0, 3]
            host, vram = huge[rng.integers(0, len(huge))], int(rng.integers(0, spread))
        row = [
            int(rng.integers(0, spread)) if rng.random() < 0.95 else U64_MAX,
            host,
            vram,
            int(rng.integers(0, 19)),
            int(rng.integers(0, 5)),
            device * 1000,
            int(rng.integers(0, backends)) - 7,
        ]
        if degenerate < 5:
            row[degenerate] = 3
        elif degenerate == 5:  # time against memory: long frontiers
            row[0], row[1], row[2] = number, count - number, 0
        rows.append((int(rng.integers(0, nodes)) * 10 - 4, tuple(row)))
    return rows  # type: ignore[return-value]  # seven ints each


def expected(rows: list[tuple[int, naive.Row]], keep: int) -> dict[int, list[int]]:
    kept = {}
    for node in sorted({node for node, _ in rows}):
        mine = [at for at, (of_node, _) in enumerate(rows) if of_node == node]
        kept[node] = [mine[at] for at in naive.rank_and_retain([rows[at][1] for at in mine], keep)]
    return kept


def retained(rows: list[tuple[int, naive.Row]], keep: int) -> dict[int, list[int]]:
    result = rank_and_retain(table_of(rows), keep)
    starts = result.node_starts.tolist()
    return {
        node: result.rows[start:stop].tolist()
        for node, start, stop in zip(result.nodes.tolist(), starts, starts[1:], strict=False)
    }


def test_a_worked_table() -> None:
    rows = [
        # node, (time, host, device, digits, accuracy, device code, backend code)
        (9, (30, 8, 0, 18, 4, 0, 0)),  # dominated by the next but one
        (2, (50, 0, 4, 0, 0, 1, 1)),  # the only one on its device
        (9, (20, 8, 0, 18, 4, 0, 0)),
        (2, (10, 4, 0, 9, 1, 0, 0)),
        (9, (20, 8, 0, 18, 4, 0, 0)),  # equal: stays, after its twin
        (9, (90, 8, 0, 0, 0, 0, 2)),  # dominated, but the only one of its backend
        (2, (10, 4, 0, 18, 1, 0, 0)),  # more digits: leads, and dominates
    ]
    result = rank_and_retain(table_of(rows))
    assert result.nodes.tolist() == [2, 9]
    assert result.node_starts.tolist() == [0, 2, 5]
    assert result.rows.tolist() == [6, 1, 2, 4, 5]


def test_an_empty_table() -> None:
    result = rank_and_retain(table_of([]))
    assert result.rows.tolist() == result.nodes.tolist() == []
    assert result.node_starts.tolist() == [0]


@pytest.mark.parametrize("seed", range(200))
def test_many_small_nodes_equal_the_plain_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 120))
    rows = random_rows(rng, count, count // 4 + 1)
    keep = int(rng.choice([0, 1, 2, 3, 32]))
    assert retained(rows, keep) == expected(rows, keep)


@pytest.mark.parametrize("seed", range(150))
def test_large_nodes_equal_the_plain_loops(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    rows = random_rows(rng, int(rng.integers(20, 180)), int(rng.choice([1, 2, 4])))
    keep = int(rng.choice([0, 1, 2, 5, 10, 32]))
    assert retained(rows, keep) == expected(rows, keep)


@pytest.mark.parametrize("size", range(1, 20))
def test_nodes_of_one_size_equal_the_plain_loops(size: int) -> None:
    rng = np.random.default_rng(size)
    rows = [(n // size, row) for n, (_, row) in enumerate(random_rows(rng, 12 * size, 1))]
    for keep in (1, 4, 32):
        assert retained(rows, keep) == expected(rows, keep)


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(0, 5))
def test_every_pair_stays_and_the_winner_leads(seed: int, count: int, keep: int) -> None:
    rows = random_rows(np.random.default_rng(seed), count, 3)
    for node, kept in retained(rows, keep).items():
        mine = [row for of_node, row in rows if of_node == node]
        stays = [rows[at][1] for at in kept]
        assert {row[5:] for row in stays} == {row[5:] for row in mine}
        assert naive.order_key(stays[0]) == min(map(naive.order_key, mine))
        for device in {row[5] for row in mine}:
            backends = len({row[6] for row in mine if row[5] == device})
            assert sum(row[5] == device for row in stays) <= max(keep, 1, backends + 1)


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_the_winner_lies_on_its_frontier_unless_total_memory_saturates(
    seed: int, count: int
) -> None:
    rows = [row for _, row in random_rows(np.random.default_rng(seed), count, 1)]
    winner = rows[naive.rank(rows)[0]]
    if winner[1] + winner[2] <= U64_MAX:
        assert not any(naive.dominates(row, winner) for row in rows if row[5] == winner[5])


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("time_ns", np.array([1, -1]), "column time_ns has a value that uint64 does not hold"),
        ("precision", np.array([1, 300]), "column precision .* uint8"),
        ("device", np.array([0.0, 1.0]), "column device must be 2 integers"),
        ("backend", np.array([1]), "column backend must be 2 integers"),
    ],
)
def test_impossible_columns_are_refused(
    column: str, value: np.ndarray[tuple[int], np.dtype[np.generic]], message: str
) -> None:
    columns = {name: np.zeros(2, np.int64) for name in ("node", *_COLUMNS)}
    with pytest.raises(UsageError, match=message):
        rank_and_retain(CandidateTable(**{**columns, column: value}))


def test_a_frontier_that_is_cut_takes_130_bytes_a_candidate() -> None:
    """Beside the table: ten million in one node stay within two GiB in all."""
    rng, count = np.random.default_rng(0), 200_000
    table = CandidateTable(
        node=np.zeros(count, np.int64),
        device=np.zeros(count, np.int32),
        backend=np.zeros(count, np.int32),
        time_ns=np.sort(rng.integers(0, 10**12, count, np.uint64)),
        host_bytes=np.zeros(count, np.uint64),
        device_bytes=np.sort(rng.integers(0, 10**12, count, np.uint64))[::-1].copy(),
        precision=rng.integers(0, 19, count, np.uint8),
        accuracy=rng.integers(0, 5, count, np.uint8),
    )
    tracemalloc.start()
    kept = rank_and_retain(table, 32, engine="numpy")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept.rows.size == 32
    assert peak < 130 * count
