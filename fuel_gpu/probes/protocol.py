"""What a probe is: a backend's name and a function that enumerates its devices.

Each built-in probe is a module of this package that has both. A third party's probe is any object
that has both, registered under the entry-point group ``fuel_gpu.probes`` with the backend's name::

    [project.entry-points."fuel_gpu.probes"]
    npu = "my_package.npu_probe"            # a module, or "module:object"

Both kinds run in a child process of their own (`fuel_gpu.probes.isolation`), so a probe may load
drivers that crash, hang or print. `examples/plugin_backend` is a complete one.
"""

from typing import Any, Protocol

from fuel_gpu.probes.report import DeviceInfo, ProbeReport


class Probe(Protocol):
    """Enumerates the devices of one backend."""

    @property
    def backend(self) -> str:
        """The backend's name, as in ``backend:index``; the same as the entry point's name."""

    def enumerate_devices(self) -> ProbeReport:
        """List the devices that can be used, and say of the others why not.

        Called once, in a child process, with a time limit. What it prints is discarded, and an
        exception becomes one line in the report; but a missing library, driver or device should
        be told as an `Unavailable` with a remedy.

        Returns
        -------
        ProbeReport
            Devices named ``backend:0``, ``backend:1``, … in an order that does not change from
            call to call.
        """


class MeasurableProbe(Probe, Protocol):
    """A probe whose devices can also be measured: without this they are only listed."""

    def open_device(self, device: DeviceInfo) -> Any:
        """Open a device for calibration.

        Called in the child process that measures `device`. The object returned is what
        calibration opens for its own backends, a `fuel_gpu.calibration.backends.OpenDevice`; this
        layer does not know that type.
        """
