"""A compute pass timed by the adapter's own clock."""

import importlib
from typing import Any

import numpy as np

from fuel_gpu.calibration.backends.vulkan_queue import VulkanQueue


class Timestamps:
    """The start and the end of a pass, written by the adapter.

    Notes
    -----
    wgpu-native gives ticks, not the nanoseconds of WebGPU. The period of a tick has a call of its
    own in recent versions; where it is missing a nanosecond is assumed, for a comparison with
    the wall clock to judge.
    """

    def __init__(self, queue: VulkanQueue) -> None:
        self._queue = queue
        self._period_ns = _period_ns(queue.device)
        self._queries = queue.device.create_query_set(type="timestamp", count=2)
        self._ticks = queue.buffer(16, "QUERY_RESOLVE", "COPY_SRC")
        self._staging = queue.buffer(16, "COPY_DST", "MAP_READ")
        self.writes: dict[str, Any] = {
            "query_set": self._queries,
            "beginning_of_pass_write_index": 0,
            "end_of_pass_write_index": 1,
        }

    def resolve(self, encoder: Any) -> None:
        """Let the encoder's commands end with handing over the ticks."""
        encoder.resolve_query_set(self._queries, 0, 2, self._ticks, 0)
        encoder.copy_buffer_to_buffer(self._ticks, 0, self._staging, 0, 16)

    def elapsed_ns(self) -> int:
        """Nanoseconds between start and end, after the commands are done.

        Raises
        ------
        RuntimeError
            If the end is not after the start.
        """
        with self._queue.mapped(self._staging, 16) as found:
            start, end = found.view(np.uint64).tolist()
        if end <= start:
            raise RuntimeError(f"a pass ended at timestamp {end}, having begun at {start}")
        return max(1, round(int(end - start) * self._period_ns))


def _period_ns(device: Any) -> float:
    native = importlib.import_module("wgpu.backends.wgpu_native")
    period = getattr(native.lib, "wgpuQueueGetTimestampPeriod", None)
    return float(period(device.queue._internal)) if period else 1.0
