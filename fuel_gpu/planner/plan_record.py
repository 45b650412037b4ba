"""A plan as plain data, for programs: what `fuel-gpu plan --json` prints.

Format history
--------------
1   first format
"""

from collections.abc import Sequence

import msgspec

from fuel_gpu.planner.explain import Explanation
from fuel_gpu.planner.plan import Plan
from fuel_gpu.planner.pools import device_limits
from fuel_gpu.planner.recorded import RecordedDecision

FORMAT_VERSION = 1


class NodeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A node that a kernel runs. `estimated`: no formula, or a shape or trip count is assumed."""

    name: str
    op: str
    device: str
    backend: str
    kernel: str
    time_ns: int
    flops: int
    bytes_moved: int
    precision_digits: int
    estimated: bool
    provenance: str


class CopyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor that crosses; `reader` is the first node there, or null where the caller is."""

    tensor: str
    src: str
    dst: str
    bytes: int
    ns: int
    reader: str | None
    provenance: str


class MemoryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Peak memory in use on a device, and the limit that was kept (null: none known)."""

    device: str
    peak_bytes: int
    limit_bytes: int | None


class ArmRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A route of a recorded decision, with the price of its kernel and copies."""

    device: str
    backend: str
    time_ns: int
    bytes: int


class BranchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded decision: `arms[0]` is the plan's own."""

    node: str
    diverge: str
    reconverge: str
    arms: tuple[ArmRecord, ...]


class CandidateRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate of an explained node; `fate` is ``chosen``, ``kept`` or ``dropped``."""

    device: str
    kernel: str
    time_ns: int
    bytes_moved: int
    precision_digits: int
    accuracy: int
    provenance: str
    fate: str


class MoveRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan would take with an explained node alone on another device."""

    device: str
    total_ns: int | None
    node_ns: int
    copy_ns: int
    copies_added: tuple[str, ...]
    copies_removed: tuple[str, ...]
    fits: bool


class WhyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Why a node is where it is; `device` is null where no kernel runs it, and `note` says why."""

    node: str
    op: str
    device: str | None
    note: str
    candidates: tuple[CandidateRecord, ...]
    moves: tuple[MoveRecord, ...]


class PlanRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A whole plan. Baselines are null where they cannot run; `baseline_reasons` says why.

    `lower_bound_ns` is a time that no placement over the plan's two devices falls below, memory
    limits aside; null with more devices. `branches` and `why` are null unless the recorded
    decisions or explanations were asked for.
    """

    version: int
    total_ns: int
    lower_bound_ns: int | None
    chosen: str
    device_ns: dict[str, int]
    copy_ns: int
    nodes: tuple[NodeRecord, ...]
    copies: tuple[CopyRecord, ...]
    baselines: dict[str, int | None]
    baseline_reasons: dict[str, str]
    memory: tuple[MemoryRecord, ...]
    cold: bool
    table_fingerprint: str
    branches: tuple[BranchRecord, ...] | None = None
    why: tuple[WhyRecord, ...] | None = None


def plan_record(
    plan: Plan,
    decisions: Sequence[RecordedDecision] | None = None,
    explanations: Sequence[Explanation] | None = None,
) -> PlanRecord:
    """Collect a plan's figures, with its recorded decisions and explanations if given."""
    limits = device_limits(plan.pools)
    values = plan.problem.values
    names = [plan.graph.node(n).name or str(n) for n in plan.problem.nodes]
    return PlanRecord(
        version=FORMAT_VERSION,
        total_ns=plan.total_ns,
        lower_bound_ns=plan.lower_bound_ns,
        chosen=plan.chosen,
        device_ns={str(device): ns for device, ns in plan.device_ns.items()},
        copy_ns=plan.copy_ns,
        nodes=tuple(_node(plan, step, names[step]) for step in range(len(names))),
        copies=tuple(
            CopyRecord(
                tensor=plan.graph.node(values[c.value].node).name or str(values[c.value].node),
                src=str(c.src),
                dst=str(c.dst),
                bytes=c.bytes,
                ns=c.ns,
                reader=names[c.step] if c.step < len(names) else None,
                provenance=str(plan.transfers.provenance_of(c.src, c.dst)),
            )
            for c in plan.copies
        ),
        baselines={b.name: b.total_ns for b in plan.baselines},
        baseline_reasons={b.name: b.reason for b in plan.baselines if b.reason},
        memory=tuple(
            MemoryRecord(device=str(d), peak_bytes=peak, limit_bytes=limits.get(d))
            for d, peak in plan.peak_bytes.items()
        ),
        cold=plan.cold,
        table_fingerprint=plan.table.machine.fingerprint,
        branches=None if decisions is None else tuple(_branch(plan, d) for d in decisions),
        why=None if explanations is None else tuple(map(_why, explanations)),
    )


def _node(plan: Plan, step: int, name: str) -> NodeRecord:
    points, row = plan.chosen_candidate(step)
    choice = points.choice(row)
    cost = points.costs[points.point[row]]
    return NodeRecord(
        name=name,
        op=plan.graph.node(plan.problem.nodes[step]).op,
        device=str(choice.device),
        backend=choice.kernel.backend,
        kernel=choice.kernel.name,
        time_ns=plan.step_ns(step),
        flops=cost.flops,
        bytes_moved=cost.bytes_moved,
        precision_digits=int(points.digits[row]),
        estimated=cost.estimated,
        provenance=points.provenance(row),
    )


def _branch(plan: Plan, decision: RecordedDecision) -> BranchRecord:
    names = [
        plan.graph.node(n).name or str(n)
        for n in (decision.node, decision.diverge, decision.reconverge)
    ]
    return BranchRecord(
        node=names[0],
        diverge=names[1],
        reconverge=names[2],
        arms=tuple(
            ArmRecord(
                device=str(arm.device), backend=arm.backend, time_ns=arm.time_ns, bytes=arm.bytes
            )
            for arm in decision.arms
        ),
    )


def _why(explanation: Explanation) -> WhyRecord:
    return WhyRecord(
        node=explanation.name,
        op=explanation.op,
        device=None if explanation.device is None else str(explanation.device),
        note=explanation.note,
        candidates=tuple(
            CandidateRecord(
                device=str(c.device),
                kernel=c.kernel,
                time_ns=c.time_ns,
                bytes_moved=c.bytes_moved,
                precision_digits=c.precision_digits,
                accuracy=c.accuracy,
                provenance=c.provenance,
                fate=c.fate,
            )
            for c in explanation.candidates
        ),
        moves=tuple(
            MoveRecord(
                device=str(m.device),
                total_ns=m.total_ns,
                node_ns=m.node_ns,
                copy_ns=m.copy_ns,
                copies_added=m.copies_added,
                copies_removed=m.copies_removed,
                fits=m.fits,
            )
            for m in explanation.moves
        ),
    )


def encode_plan(
    plan: Plan,
    decisions: Sequence[RecordedDecision] | None = None,
    explanations: Sequence[Explanation] | None = None,
) -> bytes:
    """Write the plan's record as indented JSON."""
    record = plan_record(plan, decisions, explanations)
    return msgspec.json.format(msgspec.json.encode(record), indent=2)
