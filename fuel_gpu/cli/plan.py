"""``fuel-gpu plan``: place a model's operations by a table, and show where, why and how long."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fuel_gpu.device import Device
from fuel_gpu.errors import UsageError

if TYPE_CHECKING:
    from fuel_gpu.arrays.engine import EngineName
    from fuel_gpu.calibration.table import Table


def plan(
    model: Annotated[Path, typer.Argument(help="The ONNX model to place.")],
    table: Annotated[
        Path | None,
        typer.Option("--table", help="A calibration table; this machine's own by default."),
    ] = None,
    batch: Annotated[
        int | None, typer.Option("--batch", min=1, help="The inputs' leading dimension.")
    ] = None,
    dim: Annotated[
        list[str] | None, typer.Option("--dim", help="A symbolic dimension, as NAME=VALUE.")
    ] = None,
    device: Annotated[
        list[str] | None, typer.Option("--device", help="Plan over this device; may be repeated.")
    ] = None,
    without_device: Annotated[
        list[str] | None, typer.Option("--without-device", help="Leave this device out.")
    ] = None,
    pin: Annotated[
        list[str] | None, typer.Option("--pin", help="A node that must run there: NODE=DEVICE.")
    ] = None,
    entry: Annotated[str, typer.Option("--entry", help="Where the inputs lie.")] = "cpu:0",
    exit_device: Annotated[
        str, typer.Option("--exit", help="Where the outputs are wanted.")
    ] = "cpu:0",
    memory: Annotated[
        list[str] | None,
        typer.Option("--memory", help="A memory limit, as DEVICE=SIZE (cuda:0=6GiB)."),
    ] = None,
    precision_digits: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=18,
            help="Decimal digits that every kernel must promise; admits kernels narrower than the "
            "model's dtype that do.",
        ),
    ] = None,
    bit_stable: Annotated[
        bool, typer.Option("--bit-stable", help="Only kernels that give the same bits again.")
    ] = False,
    keep: Annotated[
        int, typer.Option(min=0, help="Candidates that each node keeps on each device.")
    ] = 32,
    engine: Annotated[
        str | None,
        typer.Option("--engine", help="Where the planner's own arrays run: numpy, cupy or auto."),
    ] = None,
    cold: Annotated[
        bool, typer.Option("--cold", help="Price the upload of the weights as well.")
    ] = False,
    why: Annotated[
        list[str] | None, typer.Option("--why", help="Explain this node's placement.")
    ] = None,
    branches: Annotated[
        bool,
        typer.Option("--branches", help="Show the recorded decisions with each arm's price."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the plan as JSON to this file.")
    ] = None,
) -> None:
    """Place a model's operations on this machine's devices, from a calibration table."""
    from fuel_gpu.calibration.table_file import load_table
    from fuel_gpu.cli.plan_view import print_decisions, print_explanation, print_plan
    from fuel_gpu.files import write_output
    from fuel_gpu.graph.onnx_reader import load_onnx
    from fuel_gpu.planner.explain import explain, find_node
    from fuel_gpu.planner.plan import plan as place
    from fuel_gpu.planner.plan_record import encode_plan
    from fuel_gpu.planner.recorded import recorded_decisions

    graph = load_onnx(model, batch=batch, dims=_dimensions(dim or []))
    loaded = load_table(table)
    if table is None:
        _warn_if_stale(loaded)
    placed = place(
        graph,
        loaded,
        devices=_devices(loaded, device or [], without_device or []),
        pins={find_node(graph, node): where for node, where in _pairs("--pin", pin or [])},
        entry=Device.parse(entry),
        exit=Device.parse(exit_device),
        cold=cold,
        precision_digits=precision_digits,
        bit_stable=bit_stable,
        memory=_limits(memory or []),
        keep=keep,
        engine=_engine(engine),
    )
    explanations = [explain(placed, name) for name in why or []]
    decisions = recorded_decisions(placed) if branches else None
    encoded = encode_plan(placed, decisions)
    if out is not None:
        write_output(out, encoded)
    if as_json:
        print(encoded.decode())
    elif explanations:
        for explanation in explanations:
            print_explanation(placed, explanation)
    else:
        print_plan(placed, model.name)
        if decisions is not None:
            print_decisions(placed, decisions)


def _engine(name: str | None) -> "EngineName | None":
    if name not in (None, "numpy", "cupy", "auto"):
        raise UsageError(f"--engine {name!r} is none of numpy, cupy and auto")
    return name  # type: ignore[return-value]  # narrowed by the test above


def _dimensions(pairs: list[str]) -> dict[str, int]:
    dimensions = {}
    for pair in pairs:
        name, equals, value = pair.rpartition("=")
        if not equals or not name or not value.isdecimal() or int(value) < 1:
            raise UsageError(f"--dim {pair!r}: write NAME=VALUE with a positive whole number")
        dimensions[name] = int(value)
    return dimensions


def _pairs(option: str, pairs: list[str]) -> list[tuple[str, Device]]:
    split = []
    for pair in pairs:
        name, equals, device = pair.rpartition("=")
        if not equals or not name:
            raise UsageError(f"{option} {pair!r}: write NODE=DEVICE, such as conv1=cuda:0")
        split.append((name, Device.parse(device)))
    return split


def _limits(pairs: list[str]) -> dict[Device, int]:
    from fuel_gpu.sizes import parse_bytes

    limits = {}
    for pair in pairs:
        device, equals, size = pair.partition("=")
        if not equals:
            raise UsageError(f"--memory {pair!r}: write DEVICE=SIZE, such as cuda:0=6GiB")
        limits[Device.parse(device)] = parse_bytes(size)
    return limits


def _devices(table: "Table", wanted: list[str], unwanted: list[str]) -> list[Device] | None:
    if not wanted and not unwanted:
        return None
    known = {d.device: d for d in table.devices if not d.simulated}
    named = [Device.parse(text) for text in wanted]
    left_out = {Device.parse(text) for text in unwanted}
    for device in (*named, *left_out):
        if device not in known:
            raise UsageError(
                f"the table has no device {device} to plan on; it has {', '.join(map(str, known))}"
            )
    return [device for device in named or known if device not in left_out]


def _warn_if_stale(table: "Table") -> None:
    import sys

    from fuel_gpu.calibration.staleness import stale
    from fuel_gpu.probes.machine import probe

    for difference in stale(table, probe()):
        print(f"fuel-gpu: warning: the table is stale: {difference}", file=sys.stderr)
