"""Copies of a CUDA card: with the host's memory of either kind, and with another card."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.calibration.backends.answers import change_words, number_words, same_words

if TYPE_CHECKING:
    from fuel_gpu.calibration.backends.cuda import CudaDevice


class HostCopies:
    """Copies between host memory of one kind and a buffer on the card."""

    def __init__(self, device: "CudaDevice", largest_bytes: int, memory: str) -> None:
        self._device = device
        self._runtime = device.cuda.runtime
        self.memory = memory
        self._host = host_array(device.cuda, largest_bytes, memory)
        self._back = host_array(device.cuda, largest_bytes, memory)
        number_words(self._host)
        self._buffer = device.alloc(largest_bytes)

    def upload(self, nbytes: int) -> int:
        """Copy the first `nbytes` there; gives nanoseconds."""
        kind = self._runtime.memcpyHostToDevice
        return self._device.copy(self._buffer.ptr, self._host.ctypes.data, nbytes, kind)

    def download(self, nbytes: int) -> int:
        """Copy the first `nbytes` back; gives nanoseconds."""
        kind = self._runtime.memcpyDeviceToHost
        return self._device.copy(self._back.ctypes.data, self._buffer.ptr, nbytes, kind)

    def arrived(self, nbytes: int) -> bool:
        """Send fresh bytes there and back: whether they are the same."""
        change_words(self._host[:nbytes])
        self.upload(nbytes)
        self.download(nbytes)
        return same_words(self._host[:nbytes], self._back[:nbytes])

    def release(self) -> None:
        """Free the memory."""
        del self._buffer, self._host, self._back


class PeerCopies:
    """Copies between two cards: directly where the driver can, else staged by it."""

    def __init__(self, device: "CudaDevice", other: int, largest_bytes: int) -> None:
        self._device, self._cuda = device, device.cuda
        self._here, self._there = device.index, other
        self.memory = "peer" if reach_each_other(self._cuda, self._here, self._there) else "staged"
        self._near = device.alloc(largest_bytes)
        with self._cuda.Device(other):
            self._far = self._cuda.alloc(largest_bytes)
        self._host = np.zeros(largest_bytes, dtype=np.uint8)
        self._back = np.zeros(largest_bytes, dtype=np.uint8)
        number_words(self._host)

    def upload(self, nbytes: int) -> int:
        """Copy the first `nbytes` there; gives nanoseconds."""
        return self._copy(self._far.ptr, self._there, self._near.ptr, self._here, nbytes)

    def download(self, nbytes: int) -> int:
        """Copy the first `nbytes` back; gives nanoseconds."""
        return self._copy(self._near.ptr, self._here, self._far.ptr, self._there, nbytes)

    def arrived(self, nbytes: int) -> bool:
        """Send bytes here, there, and, after overwriting them here, back."""
        host, back = self._host[:nbytes], self._back[:nbytes]
        change_words(host)
        self._device.send(host, self._near)
        self.upload(nbytes)
        back[:] = 0
        self._device.send(back, self._near)
        self.download(nbytes)
        self._device.fetch(back, self._near)
        return same_words(host, back)

    def release(self) -> None:
        """Free the memory."""
        del self._near, self._far

    def _copy(self, dst: int, dst_device: int, src: int, src_device: int, nbytes: int) -> int:
        memcpy = self._cuda.runtime.memcpyPeerAsync
        stream = self._device.queue.ptr
        return self._device.between_events(
            lambda: memcpy(dst, dst_device, src, src_device, nbytes, stream)
        )


def reach_each_other(cuda: Any, here: int, there: int) -> bool:
    """Let two cards use each other's memory; False where one of them cannot."""
    runtime = cuda.runtime
    ways = ((here, there), (there, here))
    if not all(runtime.deviceCanAccessPeer(*way) for way in ways):
        return False
    for card, other in ways:
        with cuda.Device(card):
            runtime.deviceEnablePeerAccess(other)
    return True


def host_array(cuda: Any, nbytes: int, memory: str) -> NDArray[np.uint8]:
    """Allocate on the host, ``pageable`` or ``pinned``."""
    if memory == "pageable":
        return np.zeros(nbytes, dtype=np.uint8)
    pinned = cuda.alloc_pinned_memory(nbytes)
    return np.frombuffer(pinned, dtype=np.uint8, count=nbytes)
