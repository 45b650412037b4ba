"""The pathfinder that records each genuine choice of placement as a branch."""

from collections import Counter
from dataclasses import dataclass, replace

from fuel_gpu.device import Device
from fuel_gpu.errors import InvalidBranchError
from fuel_gpu.graph.arena import Graph, NodeId
from fuel_gpu.graph.branches import ArmPrice, Branch, check_branch
from fuel_gpu.numbers import saturating_add
from fuel_gpu.planner.candidate import Candidate
from fuel_gpu.planner.passes import OptimizationContext


@dataclass(frozen=True, slots=True)
class _Fork:
    """A node that the plan could also have placed elsewhere."""

    node: NodeId
    diverge: NodeId
    reconverge: NodeId
    winner: Candidate
    runner_up: Candidate


class PlacementForkPathfinder:
    """Record the winner and the runner-up of each node that has a choice of placement.

    A choice is genuine if the plan retained two distinct (backend, device) placements, the node
    has an input to part from, and exactly one node reads it, once: there the routes meet. Arm 0 is
    the node itself; arm 1 is a clone of it that only the branch reads, stamped with the
    runner-up's backend and placed on its device, so the live flow is untouched. A node whose
    surroundings break a rule of branches is left as it is, and so is one that has a branch already.

    An arm's price is its kernel's time and the copies that it would need with every other node
    where the plan has it: its inputs to its device, once each, and its result to the devices that
    read it. Its bytes are what it reads and what it gives.
    """

    name = "PlacementForkSeed"

    def propose(self, graph: Graph, context: OptimizationContext) -> None:
        """Record a branch for each genuine choice of placement in the context's order."""
        for fork in _forks(graph, context):
            node = graph.node(fork.node)
            device = fork.runner_up.device
            prices = [_price(graph, context, fork, c) for c in (fork.winner, fork.runner_up)]
            clone = graph.push(replace(node, name=f"{node.name}@{device}" if node.name else ""))
            graph.target_backends[clone] = fork.runner_up.backend
            graph.placements[clone] = device
            builder = graph.open_branch(fork.diverge)
            builder.add_arm(fork.node, prices[0]).add_arm(clone, prices[1])
            builder.finalize_branches(graph, fork.reconverge)


def _forks(graph: Graph, context: OptimizationContext) -> list[_Fork]:
    edges = [(value, reader) for reader in context.order for value in graph.node(reader).inputs]
    reads = Counter(value for value, _ in edges)
    reader_of = dict(edges)
    recorded = {branch.arms[0] for branch in graph.branches.values()}
    forks: list[_Fork] = []
    for node_id in context.order:
        inputs = graph.node(node_id).inputs
        if not inputs or reads[node_id] != 1 or node_id in recorded:
            continue
        placements = _winner_and_runner_up(context, node_id)
        if placements is None:
            continue
        fork = _Fork(node_id, inputs[0], reader_of[node_id], *placements)
        if _stands_alone(graph, fork):
            forks.append(fork)
    return forks


def _winner_and_runner_up(
    context: OptimizationContext, node_id: NodeId
) -> tuple[Candidate, Candidate] | None:
    choices = context.plan.decision_set(node_id)
    if choices is None or choices.winner is None:
        return None
    winner = choices.winner
    for candidate in choices.alternatives:
        if (candidate.backend, candidate.device) != (winner.backend, winner.device):
            return winner, candidate
    return None


def _stands_alone(graph: Graph, fork: _Fork) -> bool:
    """Whether the node alone can be an arm; then a clone of it can be another."""
    alone = Branch(fork.diverge, fork.reconverge, (fork.node,), (None,))
    try:
        (nodes,) = check_branch(graph, alone)
    except InvalidBranchError:
        return False
    return nodes == {fork.node}


def _price(
    graph: Graph, context: OptimizationContext, fork: _Fork, candidate: Candidate
) -> ArmPrice:
    inputs = list(dict.fromkeys(graph.storage(value) for value in graph.node(fork.node).inputs))
    given = [fork.node]
    if graph.node(fork.reconverge).kind == "pick":
        given.append(fork.reconverge)
    size = {value: graph.node(value).type.bytes for value in (*inputs, *given)}
    time_ns = candidate.time_ns
    options, device = context.options, candidate.device
    if options is not None and options.estimator is not None:
        residency = context.plan.residency
        moved = [v for v in inputs if v in residency and not _is_weight(graph, v)]
        crossings = [(residency[value], device, size[value]) for value in moved]
        reached = _where_read(graph, context, fork)
        crossings += [(device, reader, size[value]) for value, reader in reached]
        time_ns = saturating_add(
            candidate.composite_ns,
            *(options.estimator.estimate_transfer_ns(*crossing) for crossing in crossings),
        )
    return ArmPrice(device, candidate.backend, time_ns, sum(size.values()))


def _is_weight(graph: Graph, value: NodeId) -> bool:
    return graph.node(graph.carrier(value)).kind in ("weight", "constant")


def _where_read(
    graph: Graph, context: OptimizationContext, fork: _Fork
) -> list[tuple[NodeId, Device]]:
    """List the fork's results with the devices that read them, past views, the caller's too."""
    live = set(context.order)
    found: dict[tuple[NodeId, Device | None], None] = {}
    waiting = [(fork.node, fork.reconverge)]
    while waiting:
        value, reader = waiting.pop()
        kind = graph.node(reader).kind
        if kind not in ("view", "pick"):
            found[value, context.plan.residency.get(reader)] = None
            continue
        value = reader if kind == "pick" else value
        if reader in graph.outputs and context.options is not None:
            found[value, context.options.exit_device] = None
        waiting.extend((value, each) for each in graph.readers(reader) if each in live)
    return [(value, device) for value, device in found if device is not None]
