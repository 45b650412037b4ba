"""Copies between an array and an adapter's buffer: by the queue, or through mapped memory."""

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.calibration.backends.answers import change_words, number_words, same_words
from fuel_gpu.calibration.backends.vulkan_queue import VulkanQueue
from fuel_gpu.calibration.clock import timed


class VulkanCopies:
    """Copies from an ordinary array, and back to another.

    Parameters
    ----------
    memory
        ``pageable``: the queue takes the array, into memory that wgpu allocates for each call.
        ``mapped``: it is written to a buffer that was allocated once and is mapped for it;
        mapping, writing and unmapping count. Back there is one way: a queue of WebGPU reads
        nothing, so bytes are copied to a buffer that is then mapped, and read.
    """

    def __init__(
        self,
        queue: VulkanQueue,
        arrays: tuple[NDArray[np.uint8], NDArray[np.uint8]],
        memory: str,
    ) -> None:
        self._queue, self.memory = queue, memory
        self._host, self._back = arrays
        number_words(self._host)
        largest_bytes = self._host.nbytes
        self._buffer = queue.buffer(largest_bytes, "COPY_SRC", "COPY_DST")
        self._inward = queue.staging(largest_bytes)
        self._outward = (
            queue.buffer(largest_bytes, "COPY_SRC", "MAP_WRITE") if memory == "mapped" else None
        )

    def upload(self, nbytes: int) -> int:
        """Copy the first `nbytes` to the adapter; gives nanoseconds."""
        part = self._host[:nbytes]
        return timed(lambda: self._send(part))

    def download(self, nbytes: int) -> int:
        """Copy the first `nbytes` back; gives nanoseconds."""
        part = self._back[:nbytes]
        return timed(lambda: self._queue.read(self._buffer, self._inward, part))

    def arrived(self, nbytes: int) -> bool:
        """Send fresh bytes there and back: whether they are the same."""
        change_words(self._host[:nbytes])
        self.upload(nbytes)
        self.download(nbytes)
        return same_words(self._host[:nbytes], self._back[:nbytes])

    def release(self) -> None:
        """Free the buffers."""
        for buffer in (self._buffer, self._outward):
            if buffer is not None:
                buffer.destroy()

    def _send(self, part: NDArray[np.uint8]) -> None:
        if self._outward is None:
            self._queue.write(self._buffer, part)
            return
        self._queue.map(self._outward, "WRITE", part.nbytes)
        self._outward.write_mapped(part)
        self._outward.unmap()
        self._queue.copy(self._outward, self._buffer, part.nbytes)
