"""How a plan is shown: runs of nodes by device, copies, baselines, memory, and explanations."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from fuel_gpu.cli.console import (
    console,
    format_bytes,
    format_flops,
    format_ns,
    plural,
    printable,
)
from fuel_gpu.planner.explain import Explanation
from fuel_gpu.planner.plan import Plan
from fuel_gpu.planner.pools import device_limits
from fuel_gpu.planner.recorded import RecordedDecision

_MOST_ROWS = 20
_PROVEN = 1e-4
"""How close to its lower bound a plan must be to be called the fastest; the bound is rounded."""


def print_plan(plan: Plan, model: str) -> None:
    """Print the plan for people."""
    out = console()
    took = format_ns(plan.total_ns)
    out.print(f"{printable(model)}: predicted {took} on {_used(plan)} ({_origin(plan)})")
    out.print()
    _print_runs(out, plan)
    _print_time(out, plan)
    _print_copies(out, plan)
    _print_baselines(out, plan)
    _print_memory(out, plan)
    for note in notes(plan):
        out.print(f"note: {note}")


def notes(plan: Plan) -> list[str]:
    """List what a reader must know of the figures: which were not measured, which estimated."""
    provenances: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    compared: dict[str, set[str]] = {}
    for step, node_id in enumerate(plan.problem.nodes):
        points = plan.execution.retained[node_id].points
        for device, row in plan.rows[node_id].items():
            provenance = points.provenance(row)
            if device == plan.placement[step]:
                provenances[provenance] += 1
                cost = points.costs[points.point[row]]
                if cost.estimated:
                    reasons[cost.estimate] += 1
            else:
                compared.setdefault(provenance, set()).add(str(points.choice(row).device))
    paths = [plan.transfers.provenance_of(c.src, c.dst) for c in plan.copies]
    copied: Counter[str] = Counter(str(path.provenance) for path in paths)
    listed = []
    for counts, one, many in ((provenances, "node", "nodes"), (copied, "copy", "copies")):
        listed += [
            f"{counts[provenance]} of {plural(counts.total(), one, many)} priced from {meaning}"
            for provenance, meaning in _MEANING.items()
            if counts[provenance]
        ]
    for other in sorted(compared.keys() - provenances.keys() - {"measured"}):
        names = ", ".join(sorted(compared[other]))
        listed.append(f"what {names} would take is priced from {_MEANING[other]}")
    listed += [f"{plural(n, 'node')} estimated: {why}" for why, n in reasons.items()]
    used = {str(device) for device in plan.problem.devices}
    shaky = sorted({r.device for r in plan.table.rates if r.flags and r.device in used})
    if shaky:
        listed.append(
            f"some rates of {', '.join(shaky)} are unsettled (fuel-gpu export shows which): "
            "calibrate again when the machine is quiet"
        )
    listed += [f"the table says: {n}" for n in plan.table.notes if n.split(": ")[0] in used]
    return listed


_MEANING: dict[str, str] = {
    "datasheet": "datasheet figures, not measurements",
    "fallback": "fallback figures: the table has none of their own",
    "shared": "measurements of an equivalent device",
}


def _used(plan: Plan) -> str:
    counts = Counter(str(plan.device_of(step)) for step in range(len(plan.placement)))
    used = [f"{device} ({plural(count, 'node')})" for device, count in counts.items()]
    return ", ".join(used) or "no device"


def _origin(plan: Plan) -> str:
    origin = {
        "placement-dp": "by the placement DP",
        "min-cut": "by minimum cuts from the placement DP's",
        "fitted": "moved until it fits the memory",
        "greedy": "the greedy placement, no slower than the DP's",
    }.get(plan.chosen, f"everything on {plan.chosen}, no slower than the DP's placement")
    bound = plan.lower_bound_ns
    if bound is not None and plan.total_ns <= bound * (1 + _PROVEN):
        origin += "; no placement on these two devices is faster"
    return origin


def runs(plan: Plan) -> Iterator[tuple[int, int]]:
    """Give the first and last step of each stretch of nodes on one device."""
    first = 0
    for step in range(1, len(plan.placement) + 1):
        if step == len(plan.placement) or plan.placement[step] != plan.placement[first]:
            yield first, step - 1
            first = step


def _print_runs(out: Console, plan: Plan) -> None:
    table = _table("Steps", "Nodes>", "Device", "Time>", "First node", "Last node")
    listed = list(runs(plan)) if plan.placement else []
    names = [printable(plan.graph.node(n).name) for n in plan.problem.nodes]
    for first, last in listed[:_MOST_ROWS]:
        time_ns = sum(plan.step_ns(step) for step in range(first, last + 1))
        table.add_row(
            f"{first + 1}-{last + 1}" if last > first else f"{first + 1}",
            str(last - first + 1),
            str(plan.device_of(first)),
            format_ns(time_ns),
            names[first],
            names[last],
        )
    _print_table(out, "Placement", table, len(listed))


def _print_time(out: Console, plan: Plan) -> None:
    busy = [f"{device} {format_ns(ns)}" for device, ns in plan.device_ns.items()]
    out.print(f"Time: {', '.join(busy)}, copies {format_ns(plan.copy_ns)}")
    out.print()


def _print_copies(out: Console, plan: Plan) -> None:
    if not plan.copies:
        out.print("Copies: none")
        out.print()
        return
    table = _table("Tensor", "From", "To", "Bytes>", "Time>", "Priced from")
    for copy in sorted(plan.copies, key=lambda c: -c.ns)[:_MOST_ROWS]:
        node = plan.problem.values[copy.value].node
        table.add_row(
            printable(plan.graph.node(node).name) or str(node),
            str(copy.src),
            str(copy.dst),
            format_bytes(copy.bytes),
            format_ns(copy.ns),
            str(plan.transfers.provenance_of(copy.src, copy.dst)),
        )
    _print_table(out, "Copies", table, len(plan.copies))


def _print_baselines(out: Console, plan: Plan) -> None:
    table = _table("Placement", "Time>", "Against this plan>", "")
    table.add_row("this plan", format_ns(plan.total_ns), "1.00x", "")
    but = ", but for the pins" if plan.held_steps else ""
    for baseline in plan.baselines:
        name = baseline.name if baseline.name == "greedy" else f"all on {baseline.name}{but}"
        ns = baseline.total_ns
        ratio = "-" if ns is None else f"{ns / plan.total_ns:.2f}x" if plan.total_ns else "1.00x"
        table.add_row(name, format_ns(ns), ratio, baseline.reason)
    _print_table(out, "Compared with", table, 0)


def _print_memory(out: Console, plan: Plan) -> None:
    limits = device_limits(plan.pools)
    peaks = [
        f"{device} {format_bytes(peak)}"
        + (f" of {format_bytes(limits[device])}" if device in limits else "")
        for device, peak in plan.peak_bytes.items()
        if peak
    ]
    out.print(f"Peak memory: {', '.join(peaks) or 'none'}")


def print_nodes(plan: Plan) -> None:
    """Print every node that a kernel runs, in the order of execution."""
    out = console()
    out.print()
    table = _table("Step>", "Node", "Operator", "Device", "Kernel", "Time>")
    for step, node_id in enumerate(plan.problem.nodes):
        node = plan.graph.node(node_id)
        points, row = plan.chosen_candidate(step)
        choice = points.choice(row)
        table.add_row(
            str(step + 1),
            printable(node.name),
            node.op,
            str(choice.device),
            choice.kernel.name,
            format_ns(plan.step_ns(step)),
        )
    _print_table(out, "Nodes", table, 0)


def print_decisions(plan: Plan, decisions: Sequence[RecordedDecision]) -> None:
    """Print the recorded decisions, the closest first."""
    out = console()
    out.print()
    if not decisions:
        out.print("Recorded decisions: none; no node has a choice between two devices")
        return

    def margin(decision: RecordedDecision) -> int:
        return decision.arms[1].time_ns - decision.arms[0].time_ns

    table = _table("Node", "Arm 0", "Takes>", "Arm 1", "Takes>", "Difference>")
    for decision in sorted(decisions, key=margin)[:_MOST_ROWS]:
        cells = [printable(plan.graph.node(decision.node).name)]
        for arm in decision.arms[:2]:
            cells += [str(arm.device), format_ns(arm.time_ns)]
        table.add_row(*cells, _signed(margin(decision)))
    _print_table(out, "Recorded decisions, the closest first", table, len(decisions))


def print_explanation(plan: Plan, explanation: Explanation) -> None:
    """Print why a node is where it is."""
    out = console()
    heading = f"{printable(explanation.name)} ({explanation.op})"
    if explanation.device is None:
        out.print(f"{heading}: {explanation.note}")
        return
    work = f"{format_flops(explanation.flops)}, {format_bytes(explanation.bytes_moved)} moved"
    if explanation.estimate:
        work += f", estimated: {explanation.estimate}"
    out.print(f"{heading} runs on {explanation.device}: {work}")
    out.print()
    table = _table("Device", "Kernel", "Time>", "Digits>", "Accuracy>", "Rates", "")
    for c in explanation.candidates[:_MOST_ROWS]:
        table.add_row(
            str(c.device),
            c.kernel,
            format_ns(c.time_ns),
            str(c.precision_digits),
            str(c.accuracy),
            c.provenance,
            c.fate,
        )
    _print_table(out, "Candidates", table, len(explanation.candidates))
    out.print("Digits: decimal digits that the kernel promises, 18 for an exact result.")
    out.print("Accuracy: 0 no bound, 1 the same bits again, 2 over 2 ULP, 3 to 2 ULP, 4 exact.")
    out.print()
    moves = _table("On", "Plan takes>", "Node>", "Copies>", "")
    for move in explanation.moves:
        here = move.device == explanation.device
        moves.add_row(
            str(move.device),
            format_ns(move.total_ns),
            "" if here else _signed(move.node_ns),
            "" if here else _signed(move.copy_ns),
            "where it is" if here else "" if move.fits else "does not fit the memory",
        )
    _print_table(out, "This node alone elsewhere", moves, 0)
    for move in explanation.moves:
        if move.copies_added:
            out.print(f"Copies avoided by not running on {move.device}:")
            for copy in move.copies_added:
                out.print(f"  {printable(copy)}")
        if move.copies_removed:
            out.print(f"Copies that running on {move.device} would save:")
            for copy in move.copies_removed:
                out.print(f"  {printable(copy)}")


def _signed(ns: int) -> str:
    return f"{'+' if ns >= 0 else '-'}{format_ns(abs(ns))}"


def _table(*columns: str) -> Table:
    """Make a table; a column whose name ends in ``>`` is set to the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        right = column.endswith(">")
        table.add_column(column.rstrip(">"), justify="right" if right else "left", overflow="fold")
    return table


def _print_table(out: Console, title: str, table: Table, rows: int) -> None:
    out.print(title, style="bold")
    out.print(table)
    if rows > _MOST_ROWS:
        out.print(f"  and {rows - _MOST_ROWS} more: --json lists all")
