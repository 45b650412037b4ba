"""``fuel-gpu demo``: the whole path on a real model, from a bare machine to a measured plan."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fuel_gpu.errors import ModelError, TableError

if TYPE_CHECKING:
    from fuel_gpu.calibration.table import Table
    from fuel_gpu.probes.report import ProbeReport


def demo(
    again: Annotated[
        bool, typer.Option("--again", help="Measure again even if this machine has a table.")
    ] = False,
) -> None:
    """Probe, calibrate quickly, and plan the ResNet-50 that the onnx package carries."""
    from fuel_gpu.calibration.table_file import default_table_path
    from fuel_gpu.cli.measuring import measure_and_save
    from fuel_gpu.cli.plan_view import print_plan
    from fuel_gpu.graph.onnx_reader import load_onnx
    from fuel_gpu.planner.plan import plan
    from fuel_gpu.probes.machine import probe

    graph = load_onnx(bundled_model())
    report = probe()
    for device in report.devices:
        print(f"found {device.id}: {device.name}")
    for missing in report.unavailable:
        print(f"not found: {missing.backend}: {missing.reason} (`fuel-gpu probe` says more)")
    path = default_table_path()
    table = None if again else _current_table(path, report)
    if table is None:
        measured = measure_and_save(report, path, full=False, devices=None)
        table = measured.table
        print(f"measured; the{' incomplete' if measured.interrupted else ''} table is {path}")
        if measured.interrupted:
            raise typer.Exit(1)
    else:
        print(f"using the table that was measured before, {path}; --again measures anew")
    print()
    print_plan(plan(graph, table), "ResNet-50 (batch 1)")


def _current_table(path: Path, report: "ProbeReport") -> "Table | None":
    """Read the table of this machine, if it has a whole one that still describes it."""
    from fuel_gpu.calibration.staleness import stale
    from fuel_gpu.calibration.table_file import load_table

    if not path.is_file():
        return None
    try:
        table = load_table(path)
    except TableError:
        return None
    return None if stale(table, report) else table


def bundled_model() -> Path:
    """Find the ResNet-50 graph in the installed onnx package.

    Raises
    ------
    ModelError
        If that package does not carry it.
    """
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    model = folder / "light_resnet50.onnx"
    if not model.is_file():
        raise ModelError(
            f"{model}: the installed onnx package does not carry the demo's model; "
            "run `fuel-gpu plan MODEL` on one of your own"
        )
    return model
