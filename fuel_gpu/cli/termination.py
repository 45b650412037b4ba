"""Lets a request to end (SIGTERM, a closed terminal) do what Ctrl-C does."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)


@contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt at the first SIGTERM or SIGHUP; more of them change nothing.

    Who ends a process often sends two (``timeout``, a closing shell): the second must not stop what
    the first made it save. A signal that is ignored (``nohup``) stays ignored.
    """
    told = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal told
        if not told:
            told = True
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # which alone gets signals
        yield
        return
    taken = [one for one in _SIGNALS if signal.getsignal(one) is signal.SIG_DFL]
    for one in taken:
        signal.signal(one, interrupt)
    try:
        yield
    finally:
        for one in taken:
            signal.signal(one, signal.SIG_DFL)
