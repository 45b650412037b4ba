"""The one question that placement asks about links: how long a copy takes."""

from typing import Protocol

from fuel_gpu.device import Device


class TransferEstimator(Protocol):
    """Anything that prices a copy between two devices.

    Placement asks for the same copy many times and keeps the answers, so an estimator gives the
    same answer for as long as one plan is being made.
    """

    def estimate_transfer_ns(self, src: Device, dst: Device, bytes: int) -> int:
        """Price one copy.

        Parameters
        ----------
        src, dst
            The devices between which the bytes move.
        bytes
            Size of the copy.

        Returns
        -------
        int
            Nanoseconds in 0 .. 2**64 - 1: 0 when `src` is `dst`, saturating, never falling as
            `bytes` grow. An estimator never raises: a path that it does not know gets a fallback.
        """
        ...
