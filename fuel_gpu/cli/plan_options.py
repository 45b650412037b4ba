"""Reads the options of ``fuel-gpu plan`` that are pairs, and refuses those that contradict."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from fuel_gpu.device import Device
from fuel_gpu.errors import UsageError

if TYPE_CHECKING:
    from fuel_gpu.arrays.engine import EngineName
    from fuel_gpu.calibration.table import Table

Key = TypeVar("Key")
Value = TypeVar("Value")

_LARGEST_DIMENSION = 2**63 - 1


def read_engine(name: str | None) -> "EngineName | None":
    """Read ``--engine``."""
    if name not in (None, "numpy", "cupy", "auto"):
        raise UsageError(f"--engine {name!r} is none of numpy, cupy and auto")
    return name  # type: ignore[return-value]  # narrowed by the test above


def read_dimensions(pairs: Sequence[str]) -> dict[str, int]:
    """Read ``--dim NAME=VALUE``."""
    dimensions: dict[str, int] = {}
    for pair in pairs:
        name, _, value = pair.rpartition("=")
        whole = value.isascii() and value.isdecimal()
        if not name or not whole or not 1 <= int(value) <= _LARGEST_DIMENSION:
            raise UsageError(f"--dim {pair!r}: write NAME=VALUE with a positive whole number")
        _put(dimensions, name, int(value), "--dim")
    return dimensions


def read_pins(pairs: Sequence[str]) -> dict[int | str, Device | str]:
    """Read ``--pin NODE=DEVICE``; a node's name may hold an equals sign."""
    pins: dict[int | str, Device | str] = {}
    for pair in pairs:
        name, _, device = pair.rpartition("=")
        if not name:
            raise UsageError(f"--pin {pair!r}: write NODE=DEVICE, such as conv1=cuda:0")
        _put(pins, name, Device.of(device, f"--pin {pair!r}"), "--pin")
    return pins


def read_limits(pairs: Sequence[str]) -> dict[Device | str, int]:
    """Read ``--memory DEVICE=SIZE``."""
    from fuel_gpu.sizes import parse_bytes

    limits: dict[Device | str, int] = {}
    for pair in pairs:
        device, equals, size = pair.partition("=")
        if not equals:
            raise UsageError(f"--memory {pair!r}: write DEVICE=SIZE, such as cuda:0=6GiB")
        _put(limits, Device.of(device, f"--memory {pair!r}"), parse_bytes(size), "--memory")
    return limits


def read_devices(
    table: "Table", wanted: Sequence[str], unwanted: Sequence[str]
) -> list[Device | str] | None:
    """Read ``--device`` and ``--without-device``; None where neither is given."""
    from fuel_gpu.calibration.rates import rated_devices
    from fuel_gpu.planner.arguments import known_device

    if not wanted and not unwanted:
        return None
    named = [known_device(table, text, "--device") for text in wanted]
    left_out = {known_device(table, text, "--without-device") for text in unwanted}
    both = left_out.intersection(named)
    if both:
        raise UsageError(f"{', '.join(map(str, both))} is both wanted and left out")
    return [device for device in named or rated_devices(table) if device not in left_out]


def _put(chosen: dict[Key, Value], key: Key, value: Value, option: str) -> None:
    if chosen.get(key, value) != value:
        raise UsageError(f"{option}: {key} is given twice, as {chosen[key]} and as {value}")
    chosen[key] = value
