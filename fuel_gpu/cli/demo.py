"""``fuel-gpu demo``: the whole path on a real model, from a bare machine to a measured plan."""

from pathlib import Path
from typing import Annotated

import typer

from fuel_gpu.errors import ModelError


def demo(
    again: Annotated[
        bool, typer.Option("--again", help="Measure again even if this machine has a table.")
    ] = False,
) -> None:
    """Probe, calibrate quickly, and plan the ResNet-50 that the onnx package carries."""
    from fuel_gpu.calibration.calibrate import calibrate
    from fuel_gpu.calibration.staleness import stale
    from fuel_gpu.calibration.table_file import default_table_path, load_table, save_table
    from fuel_gpu.cli.plan_view import print_plan
    from fuel_gpu.cli.progress import shown_progress
    from fuel_gpu.graph.onnx_reader import load_onnx
    from fuel_gpu.planner.plan import plan
    from fuel_gpu.probes.machine import probe

    graph = load_onnx(bundled_model())
    report = probe()
    for device in report.devices:
        print(f"found {device.id}: {device.name}")
    path = default_table_path()
    if not again and path.exists() and not stale(load_table(), report):
        print(f"using the table that was measured before: {path}")
        table = load_table()
    else:
        with shown_progress() as progress:
            table = calibrate(report, progress=progress)
        print(f"measured; the table is {save_table(table)}")
    print()
    print_plan(plan(graph, table), "ResNet-50 (batch 1)")


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
