"""Copies between the host and an OpenCL buffer: enqueued, or written and read through its map."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fuel_gpu.calibration.backends.answers import change_words, number_words, same_words
from fuel_gpu.calibration.clock import timed

_WITHOUT_INVALIDATE: Final = ("OpenCL 1.0", "OpenCL 1.1")
"""Versions in which a map cannot say that the buffer's contents need not be fetched."""


class EnqueuedCopies:
    """Blocking copies between a NumPy array and a buffer."""

    memory: str = "pageable"

    def __init__(
        self,
        cl: Any,
        context: Any,
        queue: Any,
        arrays: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    ) -> None:
        self._cl, self._queue = cl, queue
        self._host, self._back = arrays
        number_words(self._host)
        self._buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, self._host.nbytes)

    def upload(self, nbytes: int) -> int:
        """Copy the first `nbytes` to the device; gives nanoseconds."""
        part = self._host[:nbytes]
        return timed(lambda: self._cl.enqueue_copy(self._queue, self._buffer, part))

    def download(self, nbytes: int) -> int:
        """Copy the first `nbytes` back; gives nanoseconds."""
        part = self._back[:nbytes]
        return timed(lambda: self._cl.enqueue_copy(self._queue, part, self._buffer))

    def arrived(self, nbytes: int) -> bool:
        """Send fresh bytes there and back: whether they are the same."""
        change_words(self._host[:nbytes])
        self.upload(nbytes)
        self.download(nbytes)
        return same_words(self._host[:nbytes], self._back[:nbytes])

    def release(self) -> None:
        """Free the buffer."""
        self._buffer.release()


class MappedCopies:
    """Copies between a NumPy array and a buffer in memory that the driver maps for the host.

    Mapping, writing or reading, and unmapping all count: a device that works in the host's memory
    maps in no time, and writing is then the copy. A device with memory of its own may leave such a
    buffer in the host's; that its kernels then read it more slowly is no part of this time.
    """

    memory: str = "mapped"

    def __init__(
        self,
        cl: Any,
        context: Any,
        queue: Any,
        arrays: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    ) -> None:
        self._cl, self._queue = cl, queue
        self._host, self._back = arrays
        number_words(self._host)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        self._buffer = cl.Buffer(context, flags, self._host.nbytes)
        older = queue.device.version.startswith(_WITHOUT_INVALIDATE)
        maps = cl.map_flags
        self._to_write = maps.WRITE if older else maps.WRITE_INVALIDATE_REGION

    def upload(self, nbytes: int) -> int:
        """Write the first `nbytes` through the map; gives nanoseconds."""
        return timed(lambda: self._write(self._host[:nbytes]))

    def download(self, nbytes: int) -> int:
        """Read the first `nbytes` through the map; gives nanoseconds."""
        return timed(lambda: self._read(self._back[:nbytes]))

    def arrived(self, nbytes: int) -> bool:
        """Whether what is written through the map is in the buffer, and the other way round.

        Each way is checked against a copy by the queue: one map's writes seen in another's would
        say nothing of the device.
        """
        host, back = self._host[:nbytes], self._back[:nbytes]
        change_words(host)
        self._write(host)
        self._cl.enqueue_copy(self._queue, back, self._buffer)
        written = same_words(host, back)
        change_words(host)
        self._cl.enqueue_copy(self._queue, self._buffer, host)
        self._read(back)
        return written and same_words(host, back)

    def release(self) -> None:
        """Free the buffer."""
        self._buffer.release()

    def _write(self, host: NDArray[np.uint8]) -> None:
        mapped = self._map(self._to_write, host.nbytes)
        mapped[:] = host
        self._unmap(mapped)

    def _read(self, host: NDArray[np.uint8]) -> None:
        mapped = self._map(self._cl.map_flags.READ, host.nbytes)
        host[:] = mapped
        self._unmap(mapped)

    def _map(self, flags: int, nbytes: int) -> NDArray[np.uint8]:
        mapped, _ = self._cl.enqueue_map_buffer(
            self._queue, self._buffer, flags, 0, (nbytes,), np.uint8
        )
        return mapped  # type: ignore[no-any-return]  # pyopencl has no types

    def _unmap(self, mapped: NDArray[np.uint8]) -> None:
        mapped.base.release(self._queue)  # type: ignore[union-attr]  # pyopencl's MemoryMap
        self._queue.finish()
