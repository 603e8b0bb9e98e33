"""Calls of a service that takes each request and never answers: they end with an error, and in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from icefield_testing.service_faults import NO_REPLY, LossyProxy


def errors_in_silence(
    service: LossyProxy, calls: Mapping[str, Callable[[], object]], seconds: float
) -> dict[str, Exception | None]:
    """Make all calls at once while the service is silent; return the error of each, or None if it raised none.

    A call that still waits after these seconds fails the check.
    """
    errors: dict[str, Exception | None] = {}

    def make(name: str, call: Callable[[], object]) -> None:
        error = None
        try:
            call()
        except Exception as raised:
            error = raised
        errors[name] = error

    service.arm(lambda number: NO_REPLY)
    try:
        waiting = [threading.Thread(target=make, args=each, daemon=True) for each in calls.items()]
        for thread in waiting:
            thread.start()
        until = time.monotonic() + seconds
        for thread in waiting:
            thread.join(max(0.0, until - time.monotonic()))
        late = [name for name in calls if name not in errors]
    finally:
        service.disarm()
    assert not late, f"{', '.join(late)} still waits after {seconds:g} s without an answer of the service"
    return errors
