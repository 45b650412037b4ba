"""Every error that a user can cause or mend: one clear message each."""


class FuelGpuError(Exception):
    """The base of all errors that fuel-gpu raises on purpose.

    The message names the file, field or value that is wrong and what to do about it.
    """


class UsageError(FuelGpuError):
    """An argument that cannot be meant: an unknown device, a malformed size (exit status 2)."""


class ModelError(FuelGpuError):
    """A model file that is missing, damaged, or leaves a dimension open."""


class TableError(FuelGpuError):
    """A calibration table that is missing, truncated, or holds an impossible value."""


class CalibrationError(FuelGpuError):
    """A measurement that could not be made."""


class PlanError(FuelGpuError):
    """A graph that cannot be placed as asked; the message names the node."""


class InvalidBranchError(PlanError):
    """A branch that breaks one of the rules of recording a decision; the graph is unchanged."""


class DeviceUnavailableError(FuelGpuError):
    """A device that was asked for is not here.

    Parameters
    ----------
    reason
        Why, in the words of the probe.
    remedy
        What mends it; empty if nothing is known to.
    """

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason + (f"; to mend it: {remedy}" if remedy else ""))
        self.reason = reason
        self.remedy = remedy
