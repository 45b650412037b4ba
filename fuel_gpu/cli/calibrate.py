"""``fuel-gpu calibrate``: measure this machine's devices and write its table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fuel_gpu.errors import UsageError

if TYPE_CHECKING:
    from fuel_gpu.device import Device
    from fuel_gpu.probes.report import ProbeReport


def calibrate(
    quick: Annotated[
        bool, typer.Option("--quick", help="Ten to forty seconds a device (the default).")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="About a minute a device: more sizes, more samples.")
    ] = False,
    table: Annotated[
        Path | None,
        typer.Option("--table", help="Write the table here; in the user's cache by default."),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option("--device", help="Measure this device only; may be repeated."),
    ] = None,
    without_device: Annotated[
        list[str] | None, typer.Option("--without-device", help="Do not measure this device.")
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Measure copies of sizes that the table was not fitted to, and judge its curves "
            "by them: exit status 1 if one is off by more than twice the worst error of its fit "
            "and more than 25 %. Changes no table.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the table, or the verification, as JSON.")
    ] = False,
) -> None:
    """Measure how fast this machine's devices compute, and how fast bytes get there and back.

    Ctrl-C keeps what is finished. What is not measured again to the end stays as an earlier table
    has it. Exit status 1 if it was interrupted, or nothing was measured of a device that was named.
    """
    import sys

    from fuel_gpu.calibration.table_file import default_table_path
    from fuel_gpu.calibration.table_text import encode_table
    from fuel_gpu.cli.calibration_view import print_summary
    from fuel_gpu.cli.measuring import measure_and_save
    from fuel_gpu.probes.machine import probe

    if quick and full:
        raise UsageError("--quick and --full exclude each other: give one of them")
    if table == Path():
        raise UsageError("--table is empty, or the folder one is in: name a file")
    if verify:
        _verify(table, full, device or [], without_device or [], as_json)
        return
    path = table or default_table_path()
    report = probe()
    chosen = _chosen(report, device or [], without_device or [])
    made = measure_and_save(report, path, full=full, devices=chosen)
    if as_json:
        print(encode_table(made.table).decode(), end="")
    else:
        print_summary(made.table)
    for ended in made.stopped:
        print(
            f"fuel-gpu: warning: {ended.device} was not measured to the end: "
            f"{'; '.join(ended.notes)}",
            file=sys.stderr,
        )
    named = {str(one) for one in chosen or ()} if device else set()
    missed = sorted(named - made.renewed)
    if missed and not made.interrupted:
        print(f"fuel-gpu: nothing was measured of {', '.join(missed)}", file=sys.stderr)
    print(f"{'incomplete ' if made.interrupted else ''}table written: {path}", file=sys.stderr)
    if made.interrupted or missed:
        raise typer.Exit(1)


def _verify(
    path: Path | None, full: bool, wanted: list[str], unwanted: list[str], as_json: bool
) -> None:
    from fuel_gpu.calibration.table_file import load_table
    from fuel_gpu.calibration.verify import verify
    from fuel_gpu.cli.calibration_view import print_verification, verification_json
    from fuel_gpu.cli.progress import shown_progress
    from fuel_gpu.probes.machine import probe

    table, report = load_table(path), probe()
    chosen = _chosen(report, wanted, unwanted)
    with shown_progress() as show:
        verification = verify(table, report, full=full, devices=chosen, progress=show)
    if as_json:
        print(verification_json(verification))
    else:
        print_verification(verification)
    if not verification.holds:
        raise typer.Exit(1)


def _chosen(report: "ProbeReport", wanted: list[str], unwanted: list[str]) -> "list[Device] | None":
    from fuel_gpu.calibration.calibrate import measurable
    from fuel_gpu.device import Device

    if not wanted and not unwanted:
        return None
    known = [d.device for d in measurable(report)]
    named, left_out = ([Device.parse(text) for text in names] for names in (wanted, unwanted))
    for one in (*named, *left_out):
        if one not in known:
            raise UsageError(
                f"there is no device {one} to measure; there are {', '.join(map(str, known))}"
            )
    chosen = [one for one in named or known if one not in left_out]
    if not chosen:
        raise UsageError("no device is left to measure")
    return chosen
