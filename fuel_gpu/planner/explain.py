"""Why a node is where it is: its candidates, what moving it alone would change, copies avoided."""

from dataclasses import dataclass

from fuel_gpu.device import Device
from fuel_gpu.graph.arena import NodeId
from fuel_gpu.planner.arguments import find_node
from fuel_gpu.planner.fit import excesses
from fuel_gpu.planner.plan import Plan
from fuel_gpu.planner.pricing import copies, total_ns


@dataclass(frozen=True, slots=True)
class ExplainedCandidate:
    """A candidate of the node.

    Parameters
    ----------
    device, kernel
        What would run it.
    time_ns
        The kernel's own time.
    bytes_moved, precision_digits, accuracy
        The other axes of its cost.
    provenance
        How its rates were obtained.
    fate
        ``chosen``, ``kept``, or ``dropped``: worse than another on that device, or crowded out.
    """

    device: Device
    kernel: str
    time_ns: int
    bytes_moved: int
    precision_digits: int
    accuracy: int
    provenance: str
    fate: str


@dataclass(frozen=True, slots=True)
class ExplainedMove:
    """What the plan would take with this node alone on another device.

    Parameters
    ----------
    device
        Where it would run.
    total_ns
        The plan's predicted time then; None where no kernel can run it there.
    node_ns, copy_ns
        How much the node's own time and all copies would change, nanoseconds.
    copies_added, copies_removed
        Descriptions of the copies that would appear and disappear.
    fits
        Whether memory limits would still be kept.
    """

    device: Device
    total_ns: int | None
    node_ns: int
    copy_ns: int
    copies_added: tuple[str, ...]
    copies_removed: tuple[str, ...]
    fits: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a node is where it is. `note` says so for nodes that no kernel runs."""

    name: str
    op: str
    device: Device | None
    flops: int
    bytes_moved: int
    estimate: str
    pinned: bool
    note: str
    candidates: tuple[ExplainedCandidate, ...]
    moves: tuple[ExplainedMove, ...]


def explain(plan: Plan, name: str) -> Explanation:
    """Explain the node of that name.

    Raises
    ------
    UsageError
        If the graph has no such node; the message names similar ones.
    """
    node_id = find_node(plan.graph, name)
    node = plan.graph.node(node_id)
    if node_id not in plan.rows:
        return Explanation(
            node.name, node.op, None, 0, 0, "", False, _no_kernel(plan, node_id), (), ()
        )
    step = plan.problem.nodes.index(node_id)
    points, row = plan.chosen_candidate(step)
    point = int(points.point[row])
    cost = points.costs[point]
    return Explanation(
        name=node.name,
        op=node.op,
        device=plan.device_of(step),
        flops=cost.flops,
        bytes_moved=cost.bytes_moved,
        estimate=cost.estimate,
        pinned=len(plan.rows[node_id]) == 1,
        note="",
        candidates=_candidates(plan, node_id, step, point),
        moves=tuple(
            _move(plan, step, d)
            for d in range(len(plan.problem.devices))
            if d in plan.rows[node_id]
        ),
    )


def _no_kernel(plan: Plan, node_id: NodeId) -> str:
    node = plan.graph.node(node_id)
    source = plan.graph.node(plan.graph.carrier(node_id)).name
    return {
        "input": f"a graph input: it lies on {plan.problem.entry}",
        "weight": "a weight: it lies wherever it is used, and its bytes count there",
        "constant": "depends on no input: computed once at load, then like a weight",
        "view": f"a view of {source}: it costs nothing and lies where that lies",
        "pick": f"a further output of {source}: it lies where that lies",
    }.get(node.kind, "no kernel runs it")


def _candidates(
    plan: Plan, node_id: NodeId, step: int, point: int
) -> tuple[ExplainedCandidate, ...]:
    retained = plan.execution.retained[node_id]
    points = retained.points
    kept = set(retained.rows.tolist())
    _, chosen = plan.chosen_candidate(step)
    rows = range(int(points.starts[point]), int(points.starts[point + 1]))
    explained = []
    for row in sorted(rows, key=lambda r: (r != chosen, int(points.static_ns[r]))):
        choice = points.choice(row)
        fate = "chosen" if row == chosen else "kept" if row in kept else "dropped"
        explained.append(
            ExplainedCandidate(
                choice.device,
                choice.kernel.name,
                int(points.static_ns[row]),
                int(points.bytes_moved[row]),
                int(points.digits[row]),
                int(points.accuracy[row]),
                points.provenance(row),
                fate,
            )
        )
    return tuple(explained)


def _move(plan: Plan, step: int, device: int) -> ExplainedMove:
    problem = plan.problem
    transfer = plan.transfers.estimate_transfer_ns
    moved = list(plan.placement)
    moved[step] = device
    total = total_ns(problem, moved, transfer, cold=plan.cold)
    now = _described(plan, plan.placement)
    then = _described(plan, moved)
    here_ns, there_ns = plan.step_ns(step), problem.time_ns[step][device]
    return ExplainedMove(
        device=problem.devices[device],
        total_ns=total,
        node_ns=(there_ns or 0) - here_ns,
        copy_ns=sum(then.values()) - sum(now.values()),
        copies_added=tuple(c for c in then if c not in now),
        copies_removed=tuple(c for c in now if c not in then),
        fits=not excesses(problem, moved, plan.pools),
    )


def _described(plan: Plan, placement: list[int] | tuple[int, ...]) -> dict[str, int]:
    transfer = plan.transfers.estimate_transfer_ns
    described = {}
    for copy in copies(plan.problem, placement, transfer, cold=plan.cold):
        node = plan.problem.values[copy.value].node
        tensor = plan.graph.node(node).name or str(node)
        described[f"{tensor} {copy.src} -> {copy.dst} ({copy.bytes:,} bytes)"] = copy.ns
    return described
