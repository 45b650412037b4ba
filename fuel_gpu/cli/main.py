"""The `fuel-gpu` command: registers the commands; an error becomes one line and a status."""

import sys
from typing import Annotated

import typer

from fuel_gpu.cli.calibrate import calibrate
from fuel_gpu.cli.demo import demo
from fuel_gpu.cli.diff import diff
from fuel_gpu.cli.doctor import doctor
from fuel_gpu.cli.export import export
from fuel_gpu.cli.output import silence_stdout
from fuel_gpu.cli.plan import plan
from fuel_gpu.cli.probe import probe
from fuel_gpu.errors import FuelGpuError, UsageError

_CTRL_C = 130
"""Typer's own exit status for an interrupt; ours is 1."""

_DEBUG_HINT = "Add --debug to see a full traceback when something fails."

app = typer.Typer(
    name="fuel-gpu",
    help="Decide where each operation of a compute graph should run, from numbers measured here.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog=_DEBUG_HINT,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"fuel-gpu {version('fuel-gpu')}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


for command in (probe, calibrate, plan, export, diff, doctor, demo):
    app.command(command.__name__, epilog=_DEBUG_HINT)(command)


def main() -> None:
    """Run the command line. Exit status: 0 fine, 2 wrong usage, 1 anything else."""
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    if sys.stdout is None:
        print("fuel-gpu: standard output is closed", file=sys.stderr)
        sys.exit(1)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # text streams
    sys.exit(run([a for a in arguments if a != "--debug"], debug=debug))


def run(arguments: list[str], *, debug: bool = False) -> int:
    """Run one command and give its exit status."""
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
        return 1
    except KeyboardInterrupt:
        print("fuel-gpu: interrupted", file=sys.stderr)
        return 1
    except FuelGpuError as error:
        if debug:
            raise
        print(f"fuel-gpu: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except OSError as error:
        if debug:
            raise
        silence_stdout()
        print(f"fuel-gpu: {error.filename or 'standard output'}: {error.strerror}", file=sys.stderr)
        return 1
    except Exception as error:
        if debug:
            raise
        print(
            f"fuel-gpu: unexpected {type(error).__name__}: {error}; this is a fault of fuel-gpu: "
            "run the command again with --debug and report what it prints",
            file=sys.stderr,
        )
        return 1
    return status


def _run(arguments: list[str]) -> int:
    try:
        app(args=arguments, prog_name="fuel-gpu", standalone_mode=True)
    except SystemExit as end:
        if end.code == _CTRL_C:
            raise KeyboardInterrupt from None
        return 0 if not end.code else 2 if end.code == 2 else 1
    return 0


if __name__ == "__main__":
    main()
