"""Copies of a CUDA card both ways at once, so that several of its copy engines work."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fuel_gpu.calibration.backends import Workload
from fuel_gpu.calibration.backends.answers import change_words, number_words, same_words
from fuel_gpu.calibration.backends.cuda_copies import host_array

if TYPE_CHECKING:
    from fuel_gpu.calibration.backends.cuda import CudaDevice


def both_ways(device: "CudaDevice", nbytes: int, memory: str) -> Workload:
    """Copy `nbytes` from the host and as many to it, each on a stream of its own."""
    cuda, runtime = device.cuda, device.cuda.runtime
    outward, inward, back = (host_array(cuda, nbytes, memory) for _ in range(3))
    number_words(outward)
    number_words(back)
    change_words(back)
    inward[:] = 0
    target, source = device.alloc(nbytes), device.alloc(nbytes)
    device.send(back, source)
    other = cuda.Stream(non_blocking=True)

    def there() -> None:
        address = outward.ctypes.data
        runtime.memcpyAsync(
            target.ptr, address, nbytes, runtime.memcpyHostToDevice, device.queue.ptr
        )

    def here() -> None:
        address = inward.ctypes.data
        runtime.memcpyAsync(address, source.ptr, nbytes, runtime.memcpyDeviceToHost, other.ptr)

    def correct() -> bool:
        found = np.zeros(nbytes, dtype=np.uint8)
        device.fetch(found, target)
        return same_words(found, outward) and same_words(inward, back)

    return _at_once(device, device.index, other, there, here, nbytes, correct)


def peer_both_ways(device: "CudaDevice", other: int, nbytes: int) -> Workload:
    """Copy `nbytes` to another card and as many from it, each on its source's stream."""
    cuda, runtime = device.cuda, device.cuda.runtime
    host = np.zeros(nbytes, dtype=np.uint8)
    near_source, near_target = device.alloc(nbytes), device.alloc(nbytes)
    with cuda.Device(other):
        far_source, far_target = cuda.alloc(nbytes), cuda.alloc(nbytes)
        stream = cuda.Stream(non_blocking=True)
    number_words(host)
    device.send(host, near_source)
    back = host.copy()
    change_words(back)
    device.send(back, near_target)
    _copy_between(device, far_source, other, near_target, device.index, nbytes)
    device.send(np.zeros_like(host), near_target)
    _copy_between(device, far_target, other, near_target, device.index, nbytes)

    def there() -> None:
        ends = (far_target.ptr, other, near_source.ptr, device.index)
        runtime.memcpyPeerAsync(*ends, nbytes, device.queue.ptr)

    def here() -> None:
        ends = (near_target.ptr, device.index, far_source.ptr, other)
        runtime.memcpyPeerAsync(*ends, nbytes, stream.ptr)

    def correct() -> bool:
        found = np.zeros(nbytes, dtype=np.uint8)
        device.fetch(found, near_target)
        came = same_words(found, back)
        _copy_between(device, near_target, device.index, far_target, other, nbytes)
        device.fetch(found, near_target)
        return came and same_words(found, host)

    return _at_once(device, other, stream, there, here, nbytes, correct)


def _at_once(
    device: "CudaDevice",
    owner: int,
    other: Any,
    first: Callable[[], None],
    second: Callable[[], None],
    nbytes: int,
    correct: Callable[[], bool],
) -> Workload:
    """Time two copies, one on the device's stream and one on that of `owner`, begun together.

    The other stream waits for the start, and the device's for the other's end, so that the two
    events that are read lie on one stream.
    """
    cuda = device.cuda

    def enqueue() -> None:
        begun = cuda.Event()
        begun.record(device.queue)
        with cuda.Device(owner), other:
            other.wait_event(begun)
            second()
            done = cuda.Event()
            done.record(other)
        first()
        device.queue.wait_event(done)

    return Workload(2 * nbytes, lambda: device.between_events(enqueue), correct)


def _copy_between(
    device: "CudaDevice", dst: Any, dst_device: int, src: Any, src_device: int, nbytes: int
) -> None:
    memcpy, stream = device.cuda.runtime.memcpyPeerAsync, device.queue.ptr
    device.between_events(lambda: memcpy(dst.ptr, dst_device, src.ptr, src_device, nbytes, stream))
