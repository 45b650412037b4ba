"""Lower a graph with recorded decisions to one route: the order in which its nodes run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from fuel_gpu.errors import InvalidBranchError, PlanError
from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.graph.branches import Branch

Picks = Mapping[NodeId, int]
"""The arm picked at each branch node; arm 0 where none is named."""

ARM_0: Picks = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Route:
    """One way through the graph.

    Parameters
    ----------
    order
        The nodes that run, producers first.
    reads
        What the nodes read whose inputs a pick changed; every other node reads its own inputs.
    """

    order: tuple[NodeId, ...]
    reads: Mapping[NodeId, tuple[NodeId, ...]]

    def inputs(self, graph: Graph, node_id: NodeId) -> tuple[NodeId, ...]:
        """Give the values that a node reads on this route."""
        return self.reads.get(node_id, graph.node(node_id).inputs)


def lower(graph: Graph, order: Sequence[NodeId], picks: Picks = ARM_0) -> Route:
    """Follow the picked arm of each branch, arm 0 where none is picked.

    Parameters
    ----------
    order
        The plan's order: the live nodes, producers first.
    picks
        Decisions upstream are taken first; one inside an arm that is not taken changes nothing.

    Returns
    -------
    Route
        With arm 0 everywhere, exactly `order`. Otherwise the picked arm's nodes stand where arm
        0's exit stood, and the other nodes keep their places. A node that overwrites its input
        stays behind the readers that were before it.

    Raises
    ------
    InvalidBranchError
        If a pick names no branch of the graph or no arm of it.
    PlanError
        If the picked arms, each fine alone, need one another's results.
    """
    instead = _redirections(graph, picks)
    if not instead:
        return Route(tuple(order), {})
    reads = _changed_reads(graph, instead)
    route = Route((), reads)
    read = {value for node_id in order for value in graph.node(node_id).inputs}
    outputs = set(graph.outputs)
    needed = _needed(graph, route, [n for n in order if n not in read or n in outputs])

    def inputs(node_id: NodeId) -> tuple[NodeId, ...]:
        return route.inputs(graph, node_id)

    places = _places(order, instead, needed, inputs)
    writers = [n for n in places if graph.node(n).writes_input is not None]
    if writers:
        earlier = _earlier_readers(graph, route, places, writers)
        places = _places(order, instead, needed, lambda n: (*inputs(n), *earlier.get(n, ())))
    return Route(tuple(places), {n: reads[n] for n in places if n in reads})


def nodes_on_route(graph: Graph, picks: Picks) -> set[NodeId]:
    """Give the nodes that run with these picks: what the outputs then need.

    Before outputs are named, every node that nothing reads counts as one.

    Raises
    ------
    InvalidBranchError
        If a pick names no branch of the graph or no arm of it.
    """
    route = Route((), _changed_reads(graph, _redirections(graph, picks)))
    last = (
        n for n, node in enumerate(graph.nodes) if node.kind != "branch" and not graph.readers(n)
    )
    return _needed(graph, route, graph.outputs or last)


def upstream_first(graph: Graph) -> list[tuple[NodeId, Branch]]:
    """List the recorded branches, one that contains another before it."""

    def place(item: tuple[NodeId, Branch]) -> tuple[int, int, NodeId]:
        node_id, branch = item
        return graph.position(branch.diverge), -graph.position(branch.reconverge), node_id

    return sorted(graph.branches.items(), key=place)


def _redirections(graph: Graph, picks: Picks) -> dict[NodeId, NodeId]:
    """For arm 0's exit of each branch that leaves arm 0, the exit that is read instead."""
    for node_id, arm in picks.items():
        branch = graph.branches.get(node_id)
        if branch is None:
            raise InvalidBranchError(f"node {node_id} is picked but is no branch of the graph")
        if not 0 <= arm < len(branch.arms):
            raise InvalidBranchError(
                f"arm {arm} of branch {node_id} does not exist: it has {len(branch.arms)} arms"
            )
    instead: dict[NodeId, NodeId] = {}
    for node_id, branch in upstream_first(graph):
        exit_id = branch.arms[picks.get(node_id, 0)]
        while exit_id in instead:
            exit_id = instead[exit_id]
        if branch.arms[0] not in instead and exit_id != branch.arms[0]:
            instead[branch.arms[0]] = exit_id
    return instead


def _changed_reads(
    graph: Graph, instead: Mapping[NodeId, NodeId]
) -> dict[NodeId, tuple[NodeId, ...]]:
    reads: dict[NodeId, tuple[NodeId, ...]] = {}
    for exit_id in instead:
        for reader in graph.readers(exit_id):
            if graph.node(reader).kind != "branch":
                reads[reader] = tuple(_follow(instead, i) for i in graph.node(reader).inputs)
    return reads


def _follow(instead: Mapping[NodeId, NodeId], node_id: NodeId) -> NodeId:
    while node_id in instead:
        node_id = instead[node_id]
    return node_id


def _needed(graph: Graph, route: Route, roots: Iterable[NodeId]) -> set[NodeId]:
    waiting = list(roots)
    needed = set(waiting)
    while waiting:
        for value in route.inputs(graph, waiting.pop()):
            if value not in needed:
                needed.add(value)
                waiting.append(value)
    return needed


def _places(
    order: Sequence[NodeId],
    instead: Mapping[NodeId, NodeId],
    needed: set[NodeId],
    waits_for: Callable[[NodeId], Iterable[NodeId]],
) -> dict[NodeId, int]:
    """Walk `order` and put each needed node down after what it waits for.

    Returns
    -------
    dict
        The nodes in the order of running, each with its place in `order`; a picked arm's node has
        the place of arm 0's exit.
    """
    planned = {node_id: place for place, node_id in enumerate(order)}
    places: dict[NodeId, int] = {}
    begun: set[NodeId] = set()
    for place, node_id in enumerate(order):
        for start in dict.fromkeys((node_id, _follow(instead, node_id))):
            if start not in needed or start in places:
                continue
            begun.add(start)
            stack = [(start, iter(waits_for(start)))]
            while stack:
                each, waiting = stack[-1]
                value = next((v for v in waiting if v not in places), None)
                if value is None:
                    stack.pop()
                    places[each] = planned.get(each, place)
                elif value in begun:
                    raise PlanError(
                        f"the picked arms need one another: node {value} would wait for itself; "
                        "pick arm 0 at one of their branches"
                    )
                else:
                    begun.add(value)
                    stack.append((value, iter(waits_for(value))))
    return places


def _earlier_readers(
    graph: Graph, route: Route, places: Mapping[NodeId, int], writers: Sequence[NodeId]
) -> dict[NodeId, list[NodeId]]:
    """For each node that overwrites bytes, the other readers of them whose place is before its."""
    storage: dict[NodeId, NodeId] = {}
    readers: dict[NodeId, list[NodeId]] = {}
    for node_id in places:
        inputs = route.inputs(graph, node_id)
        is_view = graph.node(node_id).kind == "view"
        storage[node_id] = storage[inputs[0]] if is_view else node_id
        for value in inputs:
            readers.setdefault(storage[value], []).append(node_id)
    earlier: dict[NodeId, list[NodeId]] = {}
    for writer in writers:
        position = graph.node(writer).writes_input or 0
        overwritten = storage[route.inputs(graph, writer)[position]]
        earlier[writer] = [n for n in readers[overwritten] if places[n] < places[writer]]
    return earlier
