"""The child process of one sitting of one device: ``python -m fuel_gpu.calibration.child``.

Its standard input brings the request, one JSON line; records go to its standard output, one JSON
line each. It ends with its parent, and soon after its time limit even if nobody stops it.
"""

import os
import sys
from collections.abc import Iterator
from typing import IO, Final, cast

import msgspec

from fuel_gpu.calibration.backends import ConnectedDevice, open_device
from fuel_gpu.calibration.effort import FULL, QUICK, Effort
from fuel_gpu.calibration.measure import measure_device, measure_peer, measure_sizes
from fuel_gpu.calibration.records import Finished, Note, Record, Request
from fuel_gpu.probes.isolation import (
    claim_stdout,
    end_with_deadline,
    end_with_parent,
    leave_no_core_file,
)

_GRACE_S: Final = 5.0
"""How much longer than its limit a child may live that its parent does not stop."""


def main() -> None:
    """Measure the device of the request; ends the process without drivers' exit handlers."""
    end_with_parent()
    leave_no_core_file()
    channel = claim_stdout()  # first of all: drivers print while they are loaded
    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=Request)
    effort = FULL if request.full else QUICK
    end_with_deadline(effort.limit_s + _GRACE_S)
    whole = True
    try:
        for record in _records(request, effort):
            _send(channel, record)
    except Exception as error:
        whole = False
        words = " ".join(str(error).split())[:300]
        _send(channel, Note(text=f"measuring stopped: {type(error).__name__}: {words}"))
    _send(channel, Finished(whole=whole))
    os._exit(0)


def _records(request: Request, effort: Effort) -> Iterator[Record]:
    device = open_device(request.device)
    if request.peer is not None:
        return measure_peer(request.device, cast(ConnectedDevice, device), request.peer, effort)
    if request.sizes_bytes:
        return measure_sizes(
            request.device, device, request.sizes_bytes, effort, request.agenda
        )
    return measure_device(request.device, device, effort, request.agenda)


def _send(channel: IO[bytes], record: Record) -> None:
    channel.write(msgspec.json.encode(record) + b"\n")
    channel.flush()


if __name__ == "__main__":
    main()
