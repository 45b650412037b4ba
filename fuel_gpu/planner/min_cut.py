"""The best division of steps between two devices, exactly: a minimum cut.

The predicted time of a placement over two devices is a cut of a graph. Steps on the first device
lie on the source's side; a step pays for its own device by the edge to the other side's terminal.
A value's copy is paid once however many steps read it, which one more node expresses: from a
producer on the source's side, ``producer -(copy)-> node -(infinite)-> each reader`` is cut once if
any reader lies across, and mirrored for the other direction (Kolmogorov and Zabih, "What energy
functions can be minimized via graph cuts?", 2004). With more than two devices, the steps of two
devices at a time are divided anew while that helps (Boykov, Veksler and Zabih, "Fast approximate
energy minimization via graph cuts", 2001, the swap move).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from fuel_gpu.device import HOST, Device
from fuel_gpu.planner.pricing import Transfer, total_ns
from fuel_gpu.planner.problem import Problem, Value

_SOURCE, _SINK = 0, 1
_CAPACITY = 2**30
"""What the flow solver's 32-bit capacities are scaled to; also stands for an infinite one."""


@dataclass(frozen=True, slots=True)
class Division:
    """A placement, and a bound that no placement over the two devices falls below.

    Parameters
    ----------
    placement
        A device's position for each step.
    lower_bound_ns
        The cut's value, rounded down.
    """

    placement: list[int]
    lower_bound_ns: int


def divide(
    problem: Problem,
    placement: Sequence[int],
    pair: tuple[int, int],
    transfer: Transfer,
    pins: Mapping[int, int],
    *,
    cold: bool = False,
    limit_ns: int,
) -> Division:
    """Divide the steps that lie on one of two devices between them in the least time.

    Parameters
    ----------
    placement
        Where the steps are now; those on other devices stay.
    pair
        Positions of the two devices.
    pins
        Steps that stay.
    cold
        Whether the weights' upload counts.
    limit_ns
        What the placement takes now; nothing dearer is of interest.
    """
    cut = _Cut(problem, placement, pair, transfer, pins, cold)
    for step in range(len(placement)):
        cut.add_step(step)
    for value in problem.values:
        if value.bytes and (cold or not value.is_weight):
            cut.add_value(value)
    on_first, flow_ns = cut.solve(limit_ns)
    divided = list(placement)
    for step in cut.node_of:
        divided[step] = pair[0] if step in on_first else pair[1]
    return Division(divided, flow_ns + cut.constant_ns)


def best_by_cuts(
    problem: Problem,
    placement: Sequence[int],
    transfer: Transfer,
    pins: Mapping[int, int],
    *,
    cold: bool = False,
) -> tuple[list[int], int | None]:
    """Divide two devices' steps at a time until no pair gains anything.

    Returns
    -------
    placement
        One that takes no longer than the one given.
    lower_bound_ns
        With two devices a time that no placement falls below; None with more.
    """
    best = list(placement)
    best_ns = total_ns(problem, best, transfer, cold=cold)
    assert best_ns is not None
    bound: int | None = None
    pairs = list(combinations(range(len(problem.devices)), 2))
    idle = 0
    while pairs and idle < len(pairs):
        pair = pairs.pop(0)
        pairs.append(pair)
        division = divide(problem, best, pair, transfer, pins, cold=cold, limit_ns=best_ns)
        ns = total_ns(problem, division.placement, transfer, cold=cold)
        if len(problem.devices) == 2:
            bound = division.lower_bound_ns
        if ns is not None and ns < best_ns:
            best, best_ns, idle = division.placement, ns, 0
        else:
            idle += 1
        if len(pairs) == 1:
            break
    return best, bound


@dataclass(slots=True)
class _Cut:
    """The graph to cut: edges with times as capacities, None for infinite ones."""

    problem: Problem
    placement: Sequence[int]
    pair: tuple[int, int]
    transfer: Transfer
    pins: Mapping[int, int]
    cold: bool
    node_of: dict[int, int] = field(default_factory=dict)
    nodes: int = 2
    edges: list[tuple[int, int, int | None]] = field(default_factory=list)
    constant_ns: int = 0

    def _side(self, step: int) -> int | None:
        """The node of a step: its own if it may move, a terminal if it is fixed on the pair."""
        if step in self.node_of:
            return self.node_of[step]
        return self._terminal(self.problem.devices[self.placement[step]])

    def _terminal(self, device: Device) -> int | None:
        first, second = (self.problem.devices[d] for d in self.pair)
        return _SOURCE if device == first else _SINK if device == second else None

    def _new_node(self) -> int:
        self.nodes += 1
        return self.nodes - 1

    def add_step(self, step: int) -> None:
        """Let a step choose, at its own time on each device; one that stays only counts."""
        times = self.problem.time_ns[step]
        if step in self.pins or self.placement[step] not in self.pair:
            self.constant_ns += times[self.placement[step]] or 0
            return
        node = self.node_of[step] = self._new_node()
        first_ns, second_ns = (times[d] for d in self.pair)
        self.edges += [(_SOURCE, node, second_ns), (node, _SINK, first_ns)]

    def add_value(self, value: Value) -> None:
        """Price a value's copies."""
        first, second = (self.problem.devices[d] for d in self.pair)
        readers = [self._side(step) for step in value.readers]
        elsewhere = {self.problem.devices[self.placement[step]] for step in value.readers}
        elsewhere -= {first, second}
        if value.is_output:
            terminal = self._terminal(self.problem.exit)
            readers.append(terminal)
            if terminal is None:
                elsewhere.add(self.problem.exit)
        sides = list(dict.fromkeys(r for r in readers if r is not None))
        if value.producer is None:
            home = HOST if value.is_weight else self.problem.entry
            producer = self._terminal(home)
        else:
            home = self.problem.devices[self.placement[value.producer]]
            producer = self._side(value.producer)

        def copy_ns(src: Device, dst: Device) -> int:
            return self.transfer(src, dst, value.bytes)

        for device in sorted(elsewhere):
            if producer is None or producer in (_SOURCE, _SINK):
                self.constant_ns += copy_ns(home, device) if home != device else 0
            else:
                self.edges.append((_SOURCE, producer, copy_ns(second, device)))
                self.edges.append((producer, _SINK, copy_ns(first, device)))
        from_first, from_second = (home, home) if producer is None else (first, second)
        across = self._new_node()
        self.edges.append(
            (_SOURCE if producer is None else producer, across, copy_ns(from_first, second))
        )
        self.edges += [(across, reader, None) for reader in sides]
        back = self._new_node()
        self.edges.append(
            (back, _SINK if producer is None else producer, copy_ns(from_second, first))
        )
        self.edges += [(reader, back, None) for reader in sides]

    def solve(self, limit_ns: int) -> tuple[set[int], int]:
        """Give the steps on the source's side and the flow, rounded down to nanoseconds."""
        scale = _CAPACITY / (max(limit_ns, 1) + 1)
        kept = [edge for edge in self.edges if edge[0] != edge[1]]
        if not kept:
            return set(), 0
        capacity = [
            _CAPACITY if ns is None or ns > limit_ns else int(ns * scale) for *_, ns in kept
        ]
        tails = np.array([tail for tail, _, _ in kept], np.int32)
        heads = np.array([head for _, head, _ in kept], np.int32)
        graph = coo_array(
            (np.array(capacity, np.int64), (tails, heads)), shape=(self.nodes, self.nodes)
        ).tocsr()
        graph.data = np.minimum(graph.data, _CAPACITY).astype(np.int32)
        flow = maximum_flow(graph, _SOURCE, _SINK)
        rest = csr_array(graph - flow.flow)
        rest.data[rest.data < 0] = 0
        rest.eliminate_zeros()
        reached = breadth_first_order(rest, _SOURCE, return_predecessors=False)
        on_source = set(reached.tolist())
        steps = {step for step, node in self.node_of.items() if node in on_source}
        return steps, int(flow.flow_value / scale)
