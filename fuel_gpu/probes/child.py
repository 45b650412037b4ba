"""The child process that enumerates one backend: ``python -m fuel_gpu.probes.child BACKEND S``."""

import sys

import msgspec

from fuel_gpu.probes import isolation, registry
from fuel_gpu.probes.report import ProbeReport, Unavailable

_GRACE_S = 5.0
"""How much longer than its limit a child may live that its parent does not stop."""


def main(backend: str, timeout_s: float) -> None:
    """Enumerate `backend` and hand the report back as JSON; the parent checks what it says."""
    isolation.end_with_parent()
    isolation.leave_no_core_file()
    isolation.end_with_deadline(timeout_s + _GRACE_S)
    channel = isolation.claim_stdout()
    try:
        payload = msgspec.json.encode(registry.load(backend).enumerate_devices())
    except Exception as error:
        words = " ".join(str(error).split())[:300]
        failed = Unavailable(
            backend=backend,
            reason=f"its probe raised {type(error).__name__}" + (f": {words}" if words else ""),
            remedy="report this to the probe's author",
        )
        payload = msgspec.json.encode(ProbeReport(devices=(), unavailable=(failed,)))
    isolation.hand_back(channel, payload)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
