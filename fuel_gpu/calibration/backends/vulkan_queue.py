"""An adapter's buffers, what is submitted to it, and waiting until that is done."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.calibration.effort import MIB

_PIECE_BYTES: Final = 16 * MIB


class VulkanQueue:
    """A device of wgpu, as far as bytes and commands go to it; every call waits for its end."""

    def __init__(self, wgpu: Any, device: Any) -> None:
        self._usage = wgpu.BufferUsage
        self.device = device
        self._staging: Any = None

    def buffer(self, nbytes: int, *usages: str) -> Any:
        """Allocate zeros, to be used in some of the ways that WebGPU names."""
        flags = 0
        for usage in usages:
            flags |= getattr(self._usage, usage)
        return self.device.create_buffer(size=nbytes, usage=flags)

    def staging(self, nbytes: int) -> Any:
        """Give a buffer to copy to and to map for reading: one for all, as only one is mapped."""
        if self._staging is None or self._staging.size < nbytes:
            self._staging = self.buffer(nbytes, "COPY_DST", "MAP_READ")
        return self._staging

    def sent(self, host: NDArray[Any]) -> Any:
        """Copy an array into a new buffer for kernels."""
        buffer = self.buffer(host.nbytes, "STORAGE", "COPY_SRC", "COPY_DST")
        flat = host.reshape(-1).view(np.uint8)
        for start in range(0, len(flat), _PIECE_BYTES):  # each write is staged in new memory
            self.device.queue.write_buffer(buffer, start, flat[start : start + _PIECE_BYTES])
            self.finish()
        return buffer

    def write(self, buffer: Any, host: NDArray[Any]) -> None:
        """Copy an array to the start of a buffer."""
        self.device.queue.write_buffer(buffer, 0, host)
        self.finish()

    def clear(self, buffer: Any) -> None:
        """Fill a buffer with zeros."""
        encoder = self.device.create_command_encoder()
        encoder.clear_buffer(buffer)
        self.finish(encoder.finish())

    def copy(self, source: Any, target: Any, nbytes: int) -> None:
        """Copy between the starts of two buffers."""
        self.finish(self._copying(source, target, nbytes))

    def read(self, source: Any, staging: Any, host: NDArray[np.uint8]) -> None:
        """Copy a buffer through a mappable one to an array of bytes."""
        self.device.queue.submit([self._copying(source, staging, host.nbytes)])
        with self.mapped(staging, host.nbytes) as found:
            host[:] = found

    @contextmanager
    def fetched(self, buffer: Any, nbytes: int) -> Iterator[NDArray[np.uint8]]:
        """Show a buffer's first bytes, inside the context only."""
        staging = self.staging(nbytes)
        self.copy(buffer, staging, nbytes)
        with self.mapped(staging, nbytes) as found:
            yield found

    @contextmanager
    def mapped(self, staging: Any, nbytes: int) -> Iterator[NDArray[np.uint8]]:
        """Show a mappable buffer's first bytes in place, inside the context only."""
        self.map(staging, "READ", nbytes)
        try:
            yield np.frombuffer(staging.read_mapped(0, nbytes, copy=False), dtype=np.uint8)
        finally:
            staging.unmap()

    def map(self, buffer: Any, mode: str, nbytes: int) -> None:
        """Let the host ``READ`` or ``WRITE`` a buffer's first bytes, once it is not in use.

        Waiting here spares the change of threads that wgpu's map_sync goes through.
        """
        promise = buffer.map_async(mode, 0, nbytes)
        self.device._poll_wait()
        promise.sync_wait()

    def finish(self, *commands: Any) -> None:
        """Submit, and wait for all that was submitted.

        The queue's own on_submitted_work_done_sync raises TypeError in wgpu 0.32, and goes through
        another thread of Python; `_poll_wait` is wgpu-native's wait.
        """
        self.device.queue.submit(list(commands))
        self.device._poll_wait()

    def _copying(self, source: Any, target: Any, nbytes: int) -> Any:
        encoder = self.device.create_command_encoder()
        encoder.copy_buffer_to_buffer(source, 0, target, 0, nbytes)
        return encoder.finish()
