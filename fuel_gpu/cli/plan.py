"""``fuel-gpu plan``: place a model's operations by a table, and show where, why and how long."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fuel_gpu.calibration.table import Table


def plan(
    model: Annotated[str, typer.Argument(help="The ONNX model to place.")],
    table: Annotated[
        Path | None,
        typer.Option("--table", help="A calibration table; this machine's own by default."),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option("--batch", min=1, max=2**63 - 1, help="The inputs' leading dimension."),
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
        int,
        typer.Option(
            min=0, help="Candidates that each node keeps on each device; few may drop fast ones."
        ),
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
    nodes: Annotated[
        bool, typer.Option("--nodes", help="List every node with its device, kernel and time.")
    ] = False,
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
    from fuel_gpu.calibration.table_file import default_table_path, load_table
    from fuel_gpu.cli.console import working
    from fuel_gpu.cli.output import refuse_overwriting, write_stdout
    from fuel_gpu.cli.plan_options import (
        read_devices,
        read_dimensions,
        read_engine,
        read_limits,
        read_pins,
    )
    from fuel_gpu.cli.plan_view import (
        print_decisions,
        print_explanation,
        print_nodes,
        print_plan,
    )
    from fuel_gpu.files import write_output
    from fuel_gpu.graph.onnx_reader import load_onnx
    from fuel_gpu.planner.explain import explain
    from fuel_gpu.planner.plan import plan as place
    from fuel_gpu.planner.plan_record import encode_plan
    from fuel_gpu.planner.recorded import recorded_decisions

    refuse_overwriting(out, Path(model), table or default_table_path())
    with working(f"reading {model}"):
        graph = load_onnx(model, batch=batch, dims=read_dimensions(dim or []))
    loaded = load_table(table)
    if table is None:
        _warn_if_stale(loaded)
    with working(f"placing {len(graph)} nodes"):
        placed = place(
            graph,
            loaded,
            devices=read_devices(loaded, device or [], without_device or []),
            pins=read_pins(pin or []),
            entry=entry,
            exit=exit_device,
            cold=cold,
            precision_digits=precision_digits,
            bit_stable=bit_stable,
            memory=read_limits(memory or []),
            keep=keep,
            engine=read_engine(engine),
        )
    explanations = [explain(placed, name) for name in why or []]
    with working("recording decisions"):
        decisions = recorded_decisions(placed) if branches else None
    encoded = encode_plan(placed, decisions, explanations or None)
    if out is not None:
        write_output(out, encoded)
    if as_json:
        write_stdout(encoded + b"\n")
        return
    if not explanations:
        print_plan(placed, Path(model).name)
    if nodes:
        print_nodes(placed)
    for explanation in explanations:
        print_explanation(placed, explanation)
    if decisions is not None:
        print_decisions(placed, decisions)


def _warn_if_stale(table: "Table") -> None:
    import sys

    from fuel_gpu.calibration.staleness import stale
    from fuel_gpu.probes.machine import probe

    for difference in stale(table, probe()):
        print(f"fuel-gpu: warning: the table is stale: {difference}", file=sys.stderr)
