"""The `fuel-gpu` command: registers the commands; an error becomes one line and a status."""

import os
import sys

import typer

from fuel_gpu.cli.calibrate import calibrate
from fuel_gpu.cli.demo import demo
from fuel_gpu.cli.diff import diff
from fuel_gpu.cli.doctor import doctor
from fuel_gpu.cli.export import export
from fuel_gpu.cli.plan import plan
from fuel_gpu.cli.probe import probe
from fuel_gpu.errors import FuelGpuError, UsageError

app = typer.Typer(
    name="fuel-gpu",
    help="Decide where each operation of a compute graph should run, from numbers measured here.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Add --debug to any command to see a full traceback when something fails.",
)
app.callback()(lambda: None)  # so that a single command still goes by its name
app.command("probe")(probe)
app.command("calibrate")(calibrate)
app.command("plan")(plan)
app.command("export")(export)
app.command("diff")(diff)
app.command("doctor")(doctor)
app.command("demo")(demo)


def main() -> None:
    """Run the command line. Exit status: 0 fine, 2 wrong usage, 1 anything else."""
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    sys.exit(run([a for a in arguments if a != "--debug"], debug=debug))


def run(arguments: list[str], *, debug: bool = False) -> int:
    """Run one command and give its exit status."""
    try:
        app(args=arguments, prog_name="fuel-gpu", standalone_mode=True)
    except SystemExit as end:
        return 0 if not end.code else 2 if end.code == 2 else 1  # typer's own for Ctrl-C is 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except FuelGpuError as error:
        if debug:
            raise
        print(f"fuel-gpu: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except Exception as error:
        if debug:
            raise
        print(
            f"fuel-gpu: unexpected {type(error).__name__}: {error}; this is a fault of fuel-gpu: "
            "run the command again with --debug and report what it prints",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print("fuel-gpu: interrupted", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    main()
