"""The name of a device: a backend and an index, written ``cuda:0``."""

import re
from dataclasses import dataclass

from fuel_gpu.errors import UsageError

_NAME = re.compile(r"(?P<backend>[a-z][a-z0-9_]*)(?::(?P<index>[0-9]{1,9}))?")


@dataclass(frozen=True, slots=True, order=True)
class Device:
    """A memory space with kernels that can run on it.

    Parameters
    ----------
    backend
        How the device is driven: ``cpu``, ``cuda``, ``opencl``, ``vulkan``, ``metal``, or the name
        of a plugin's backend.
    index
        Which of that backend's devices, from 0.

    Raises
    ------
    UsageError
        If they are not that.
    """

    backend: str
    index: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.backend, str) or not self.backend.isidentifier():
            raise UsageError(
                f"backend: {self.backend!r:.60} is no backend's name, such as cpu or cuda; "
                "Device.parse reads cuda:0"
            )
        if not isinstance(self.index, int) or self.index < 0:
            raise UsageError(f"index: {self.index!r:.60} is no whole number from 0")

    def __str__(self) -> str:
        return f"{self.backend}:{self.index}"

    @classmethod
    def parse(cls, text: str) -> "Device":
        """Read ``cuda:0``; a backend alone means its device 0.

        Raises
        ------
        UsageError
            If `text` is not a backend name, optionally followed by a colon and an index.
        """
        match = _NAME.fullmatch(text.strip())
        if match is None:
            raise UsageError(
                f"{text!r} is not a device: write a backend and an index, such as cpu:0 or cuda:1"
            )
        return cls(match["backend"], int(match["index"] or 0))

    @classmethod
    def of(cls, value: "Device | str", argument: str) -> "Device":
        """Take a device or its name.

        Raises
        ------
        UsageError
            If it is neither; the message names the argument.
        """
        if isinstance(value, Device):
            return value
        if not isinstance(value, str):
            raise UsageError(f"{argument}: {value!r} is no device and no device's name")
        try:
            return cls.parse(value)
        except UsageError as error:
            raise UsageError(f"{argument}: {error}") from None

    @property
    def is_host(self) -> bool:
        """Whether the device's memory is the host's memory tier."""
        return self.backend == "cpu"


HOST = Device("cpu", 0)
