"""The pytest plugin: skips tests whose device is missing, or fails them where it is required.

It is loaded into every pytest run of an environment that has fuel-gpu. So it imports nothing
heavier than the name of a device before a test asks for one.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from fuel_gpu.errors import DeviceUnavailableError, UsageError

if TYPE_CHECKING:
    from fuel_gpu.probes.report import DeviceInfo, ProbeReport
    from fuel_gpu.probes.selection import Wish

_MARKS: Final = {
    "gpu": "gpu: needs a GPU of any backend",
    "cuda": "cuda: needs a CUDA device",
    "opencl": "opencl: needs an OpenCL device, a GPU or a processor",
    "vulkan": "vulkan: needs a Vulkan device, a GPU or software",
    "device": 'device(name): needs this device, such as device("cuda:0")',
    "device_memory": "device_memory(size): the device must have this much memory, such as"
    ' device_memory("8GiB"); alone, it asks for a GPU',
}

_required: Final = pytest.StashKey[tuple[str, ...]]()
_device: Final = pytest.StashKey["DeviceInfo"]()
_report: Final = pytest.StashKey["ProbeReport | DeviceUnavailableError"]()
_backends: Final = pytest.StashKey[list[str]]()
_absent: Final = pytest.StashKey[list[str]]()
_folder: Final = pytest.StashKey[Path]()
_FOLDER_INPUT: Final = "fuel_gpu_folder"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--require-device``."""
    parser.getgroup("fuel-gpu", "tests with devices").addoption(
        "--require-device",
        action="append",
        default=[],
        metavar="NAME",
        help="fail where this device is missing, rather than skip: gpu, cuda, opencl, vulkan, or"
        " a name such as cuda:1; may be repeated",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks, and check the names of the required devices."""
    for line in _MARKS.values():
        config.addinivalue_line("markers", line)
    config.stash[_required] = ()
    if names := config.getoption("require_device"):
        from fuel_gpu.probes.selection import parse_name

        known = _known_backends(config)
        try:
            config.stash[_required] = tuple(parse_name(name, known) for name in names)
        except UsageError as error:
            raise pytest.UsageError(f"--require-device: {error}") from None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist where all of them find one report."""
    stash = node.config.stash
    with contextlib.suppress(OSError):  # then each worker probes for itself
        if _folder not in stash:
            stash[_folder] = Path(tempfile.mkdtemp(prefix="fuel-gpu-"))
        node.workerinput[_FOLDER_INPUT] = str(stash[_folder])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what the workers shared."""
    if _folder in config.stash:
        shutil.rmtree(config.stash[_folder], ignore_errors=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip or fail a test whose device is missing, before its fixtures are set up."""
    marks = [mark for mark in item.iter_markers() if mark.name in _MARKS]
    if not marks:
        return
    try:
        wishes = _wishes(item.config, marks)
    except UsageError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    devices: list[DeviceInfo] = []
    missing: list[tuple[Wish, DeviceUnavailableError]] = []
    for wish in wishes:
        try:
            devices.append(_select(item.config, wish))
        except DeviceUnavailableError as error:
            missing.append((wish, error))
    for wish, why in missing:
        for name in item.config.stash[_required]:
            if wish.asks_for(name):
                pytest.fail(f"--require-device {name}: {why}", pytrace=False)
    if missing:
        pytest.skip(missing[0][1].reason)  # from here, so that -rs shows each reason once
    item.stash[_device] = devices[0]


@pytest.fixture
def fuel_device(request: pytest.FixtureRequest) -> "DeviceInfo":
    """Give the device that the test's marks ask for, as the probe describes it."""
    device: DeviceInfo | None = request.node.stash.get(_device, None)
    if device is None:
        pytest.fail(
            "fuel_device: say which device by a mark on the test: gpu, cuda, opencl, vulkan or"
            ' device("cuda:0")',
            pytrace=False,
        )
    return device


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Let the run fail if a required device is missing, even if no test asked for it."""
    config = session.config
    required = config.stash.get(_required, ())
    ran = exitstatus in (
        pytest.ExitCode.OK,
        pytest.ExitCode.TESTS_FAILED,
        pytest.ExitCode.NO_TESTS_COLLECTED,
    )
    if not required or not ran or hasattr(config, "workerinput") or config.getoption("collectonly"):
        return
    from fuel_gpu.probes.selection import Wish

    absent = config.stash[_absent] = []
    for name in dict.fromkeys(required):
        try:
            _select(config, Wish(name))
        except DeviceUnavailableError as error:
            absent.append(f"{name}: {error}")
    if absent and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Name the required devices that are missing."""
    if absent := config.stash.get(_absent, []):
        terminalreporter.section("required devices that are missing", red=True)
        for line in absent:
            terminalreporter.line(line)


def _wishes(config: pytest.Config, marks: Iterable[pytest.Mark]) -> "list[Wish]":
    """Read what marks ask for, the closest to the test first."""
    from fuel_gpu.probes.selection import ANY_GPU, Wish, parse_device
    from fuel_gpu.sizes import parse_bytes

    names: list[str] = []
    memory_bytes = 0
    for mark in marks:
        if mark.name == "device":
            names.append(parse_device(_argument(mark), _known_backends(config)))
        elif mark.name == "device_memory":
            memory_bytes = memory_bytes or parse_bytes(_argument(mark))
        elif mark.args or mark.kwargs:
            raise UsageError(f"the mark {mark.name} takes no argument: {_MARKS[mark.name]}")
        elif mark.name != ANY_GPU:
            names.append(mark.name)
    on_gpu = any(mark.name == ANY_GPU for mark in marks)
    return [Wish(name, on_gpu, memory_bytes) for name in dict.fromkeys(names or [ANY_GPU])]


def _known_backends(config: pytest.Config) -> list[str]:
    """List the backends that have a probe; the first call of a run looks for plugins."""
    if _backends not in config.stash:
        from fuel_gpu.probes.registry import known_backends

        config.stash[_backends] = known_backends()
    return config.stash[_backends]


def _argument(mark: pytest.Mark) -> str:
    if len(mark.args) != 1 or mark.kwargs:
        raise UsageError(f"the mark {mark.name} takes one argument: {_MARKS[mark.name]}")
    return str(mark.args[0])


def _select(config: pytest.Config, wish: "Wish") -> "DeviceInfo":
    """Give the device that is wished for; the first call of a run probes the machine."""
    from fuel_gpu.probes.selection import select

    if _report not in config.stash:
        try:
            config.stash[_report] = _probe(config)
        except Exception as error:  # whatever it is, it must not end the run
            words = f"{type(error).__name__}: {error}"
            config.stash[_report] = DeviceUnavailableError(f"the probe failed: {words}")
    report = config.stash[_report]
    if isinstance(report, DeviceUnavailableError):
        raise DeviceUnavailableError(f"no {wish}: {report}")
    return select(report, wish)


def _probe(config: pytest.Config) -> "ProbeReport":
    from fuel_gpu.probes.machine import probe
    from fuel_gpu.probes.shared import shared_report

    worker_input: dict[str, str] = getattr(config, "workerinput", {})
    folder = worker_input.get(_FOLDER_INPUT) or config.stash.get(_folder, None)
    if folder is not None and Path(folder).is_dir():  # not on another machine
        return shared_report(Path(folder))
    return probe()
