"""Random placement problems, as arrays and as the calls that the plain oracle takes."""

import random
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from placement_oracle import MAX, Commitments, OracleDP

from fuel_gpu.device import Device
from fuel_gpu.planner.placement_dp import ChainInput
from fuel_gpu.planner.placement_problem import Closings, PlacementProblem

Shape = Literal["chain", "forest", "graph"]


@dataclass(frozen=True)
class Closing:
    row: int
    after: int
    device: int
    link: int


@dataclass(frozen=True)
class Case:
    """Rows that list the same devices in orders of their own.

    `reads` has for each row the producers and the links that price the edges; a link is a matrix
    of times between devices in every scenario.
    """

    listed: list[list[int]]
    reads: list[list[tuple[int, int]]]
    closings: list[Closing]
    cost_ns: NDArray[np.uint64]
    available: NDArray[np.bool_] | None
    link_ns: NDArray[np.uint64]
    exit_device: int | None
    exit_links: list[int]

    def problem(self) -> PlacementProblem:
        _, slots, scenarios = self.cost_ns.shape
        flat = [(row, *read) for row, reads in enumerate(self.reads) for read in reads]
        crossings = [
            self.link_ns[link][np.ix_(self.listed[producer], self.listed[row])]
            for row, producer, link in flat
        ]
        exits = None
        if self.exit_device is not None:
            exits = np.array(
                [
                    self.link_ns[link, listed, self.exit_device]
                    for listed, link in zip(self.listed, self.exit_links, strict=True)
                ]
            )
        closings = None
        if self.closings:
            closings = Closings(
                row=np.array([c.row for c in self.closings]),
                after=np.array([c.after for c in self.closings]),
                crossing_ns=np.array(
                    [self.link_ns[c.link, self.listed[c.row], c.device] for c in self.closings]
                ),
            )
        return PlacementProblem(
            first_edge=np.cumsum([0, *map(len, self.reads)]),
            producer=np.array([producer for _, producer, _ in flat], np.int64),
            crossing=np.arange(len(flat)),
            cost_ns=self.cost_ns,
            crossing_ns=np.array(crossings, np.uint64).reshape(-1, slots, slots, scenarios),
            exit_ns=exits,
            available=self.available,
            closings=closings,
        )

    def expected(self, scenario: int) -> tuple[list[int], int]:
        """Give the oracle's slots, and the sum of what its terminal rows cost."""
        oracle, links, rows = OracleDP(), _Links(self.link_ns[..., scenario]), len(self.listed)
        made: Commitments = []
        for row in range(rows + 1):
            for closing in self.closings:
                if closing.after == row:
                    target = Device("d", closing.device)
                    made += oracle.close_toward(closing.row, target, [closing.link], links)
            if row < rows:
                self._push(oracle, links, row, scenario)
        exit_device = None if self.exit_device is None else Device("d", self.exit_device)
        exits: dict[Hashable, int] = dict(enumerate(self.exit_links))
        made += oracle.finish(exit_device, exits.__getitem__, links)
        devices = dict(made)
        slots = [self.listed[row].index(devices[row].index) for row in range(rows)]
        return slots, min(sum(oracle.terminal_ns), MAX)

    def _push(self, oracle: OracleDP, links: "_Links", row: int, scenario: int) -> None:
        fixed: list[tuple[Device, int]] = []
        chained: list[ChainInput[Hashable]] = []
        for producer, link in self.reads[row]:
            device = oracle.committed_device(producer)
            if device is not None:
                fixed.append((device, link))
            elif oracle.is_open(producer):
                chained.append(ChainInput(producer, (link,)))
        costs = [
            (Device("d", device), int(self.cost_ns[row, slot, scenario]))
            for slot, device in enumerate(self.listed[row])
            if self.available is None or self.available[row, slot, scenario]
        ]
        oracle.push_row(row, costs, fixed, chained, links)


@dataclass(frozen=True)
class _Links:
    """Looks times up: a size is the number of a link."""

    ns: NDArray[np.uint64]

    def estimate_transfer_ns(self, src: Device, dst: Device, bytes: int) -> int:
        return int(self.ns[bytes, src.index, dst.index])


def random_case(
    seed: int,
    shape: Shape,
    *,
    rows: int,
    slots: int,
    scenarios: int,
    scale: int = 1000,
    closings: int = 0,
    absent: float = 0.0,
) -> Case:
    """Draw a case with times in 0 .. `scale`, many of them 0, 1 or `scale` itself.

    Parameters
    ----------
    shape
        A chain; a forest, where every value has at most one reader; or any graph, with up to three
        reads a row from nearby or from anywhere before.
    absent
        The share of devices that a row cannot run on; one stays.
    """
    rng, arrays = random.Random(seed), np.random.default_rng(seed)

    def times(*axes: int) -> NDArray[np.uint64]:
        drawn = arrays.integers(0, scale, axes, dtype=np.uint64, endpoint=True)
        extreme = np.array([0, 1, scale], np.uint64)[arrays.integers(0, 3, axes)]
        return np.where(arrays.random(axes) < 0.3, extreme, drawn)

    links = 6
    reads: list[list[tuple[int, int]]] = [[] for _ in range(rows)]
    for row in range(1, rows):
        if shape == "chain":
            reads[row].append((row - 1, rng.randrange(links)))
        elif shape == "graph":
            first = max(0, row - rng.choice([1, 2, 3, rows]))
            count = min(row - first, rng.choice([0, 1, 1, 2, 3]))
            reads[row] += [(p, rng.randrange(links)) for p in rng.sample(range(first, row), count)]
        elif rng.random() < 0.95:
            reader = rng.randrange(row, min(rows, row + rng.choice([1, 3, rows])))
            reads[reader].append((row - 1, rng.randrange(links)))
    available = None
    if absent:
        available = arrays.random((rows, slots, scenarios)) >= absent
        available[np.arange(rows), arrays.integers(0, slots, rows)] |= ~available.any(axis=1)
    closed = [
        Closing(
            rng.randrange(rows), rng.randrange(rows + 1), rng.randrange(slots), rng.randrange(links)
        )
        for _ in range(closings)
    ]
    return Case(
        listed=[rng.sample(range(slots), slots) for _ in range(rows)],
        reads=reads,
        closings=sorted(closed, key=lambda closing: closing.after),
        cost_ns=times(rows, slots, scenarios),
        available=available,
        link_ns=times(links, slots, slots, scenarios),
        exit_device=rng.choice([None, *range(slots)]),
        exit_links=rng.choices(range(links), k=rows),
    )
