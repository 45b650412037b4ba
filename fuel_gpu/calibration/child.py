"""The child process that measures one device: ``python -m fuel_gpu.calibration.child``.

Its standard input brings the request, one JSON line, and then stays open: when it closes, the
parent is gone, and so is the reason to go on. Records go to its standard output as JSON lines.
"""

import os
import sys
import threading
from collections.abc import Iterator
from typing import IO, cast

import msgspec

from fuel_gpu.calibration.backends import ConnectedDevice, open_device
from fuel_gpu.calibration.effort import FULL, QUICK
from fuel_gpu.calibration.measure import measure_device, measure_peer, measure_sizes
from fuel_gpu.calibration.records import Finished, Note, Record, Request
from fuel_gpu.probes.isolation import claim_stdout, leave_no_core_file


def main() -> None:
    """Measure the device of the request; ends the process without drivers' exit handlers."""
    leave_no_core_file()
    channel = claim_stdout()  # first of all: drivers print while they are loaded
    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=Request)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        for record in _records(request):
            _send(channel, record)
    except Exception as error:
        words = " ".join(str(error).split())[:300]
        _send(channel, Note(text=f"measuring stopped: {type(error).__name__}: {words}"))
    _send(channel, Finished())
    os._exit(0)


def _records(request: Request) -> Iterator[Record]:
    effort = FULL if request.full else QUICK
    device = open_device(request.device)
    if request.peer is not None:
        return measure_peer(request.device, cast(ConnectedDevice, device), request.peer, effort)
    if request.sizes_bytes:
        return measure_sizes(request.device, device, request.sizes_bytes, effort)
    return measure_device(request.device, device, effort)


def _send(channel: IO[bytes], record: Record) -> None:
    channel.write(msgspec.json.encode(record) + b"\n")
    channel.flush()


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main()
