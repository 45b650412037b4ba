"""Copies between the host and an adapter: by its queue, and through mapped staging buffers."""

import numpy as np

from fuel_gpu.calibration.backends.answers import change_words, number_words
from fuel_gpu.calibration.backends.vulkan_queue import VulkanQueue
from fuel_gpu.calibration.clock import timed


class QueueCopies:
    """Copies from an ordinary array by the queue, and back through a mappable buffer."""

    memory: str = "pageable"

    def __init__(self, queue: VulkanQueue, largest_bytes: int) -> None:
        self._queue = queue
        self._host = np.zeros(largest_bytes, dtype=np.uint8)
        self._back = np.zeros(largest_bytes, dtype=np.uint8)
        number_words(self._host)
        self._buffer = queue.buffer(largest_bytes, "COPY_SRC", "COPY_DST")
        self._staging = queue.buffer(largest_bytes, "COPY_DST", "MAP_READ")

    def upload(self, nbytes: int) -> int:
        """Copy the first `nbytes` to the adapter; gives nanoseconds."""
        part = self._host[:nbytes]
        return timed(lambda: self._queue.write(self._buffer, part))

    def download(self, nbytes: int) -> int:
        """Copy the first `nbytes` back; gives nanoseconds."""
        part = self._back[:nbytes]
        return timed(lambda: self._queue.read(self._buffer, self._staging, part))

    def arrived(self, nbytes: int) -> bool:
        """Send fresh bytes there and back: whether they are the same."""
        change_words(self._host[:nbytes])
        self.upload(nbytes)
        self.download(nbytes)
        return bool(np.array_equal(self._host[:nbytes], self._back[:nbytes]))

    def release(self) -> None:
        """Free the buffers."""
        self._buffer.destroy()
        self._staging.destroy()


class MappedCopies:
    """Copies of what is written to, and read from, mapped staging buffers in place.

    Mapping and unmapping count, filling and reading do not: as with pinned memory, that is where
    the program has its bytes.
    """

    memory: str = "mapped"

    def __init__(self, queue: VulkanQueue, largest_bytes: int) -> None:
        self._queue = queue
        self._host = np.zeros(largest_bytes, dtype=np.uint8)
        number_words(self._host)
        self._buffer = queue.buffer(largest_bytes, "COPY_SRC", "COPY_DST")
        self._outward = queue.buffer(largest_bytes, "COPY_SRC", "MAP_WRITE")
        self._inward = queue.buffer(largest_bytes, "COPY_DST", "MAP_READ")
        self._fill(largest_bytes)

    def upload(self, nbytes: int) -> int:
        """Hand the first `nbytes` over and copy them to the adapter; gives nanoseconds."""

        def once() -> None:
            self._queue.map(self._outward, "WRITE", nbytes)
            self._outward.unmap()
            self._queue.copy(self._outward, self._buffer, nbytes)

        return timed(once)

    def download(self, nbytes: int) -> int:
        """Copy the first `nbytes` back and get them to read; gives nanoseconds."""

        def once() -> None:
            self._queue.copy(self._buffer, self._inward, nbytes)
            self._queue.map(self._inward, "READ", nbytes)
            self._inward.unmap()

        return timed(once)

    def arrived(self, nbytes: int) -> bool:
        """Send fresh bytes there and back: whether they are the same."""
        change_words(self._host[:nbytes])
        self._fill(nbytes)
        self.upload(nbytes)
        self.download(nbytes)
        with self._queue.mapped(self._inward, nbytes) as found:
            return bool(np.array_equal(found, self._host[:nbytes]))

    def release(self) -> None:
        """Free the buffers."""
        for buffer in (self._buffer, self._outward, self._inward):
            buffer.destroy()

    def _fill(self, nbytes: int) -> None:
        self._queue.map(self._outward, "WRITE", nbytes)
        self._outward.write_mapped(self._host[:nbytes])
        self._outward.unmap()
