"""Requests with one idempotency key run one after another, beside requests with other keys."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from icefield_rest_server import idempotency
from icefield_rest_server.answers import Answer, Refused
from icefield_rest_server.idempotency import Begun, IdempotencyKeys


class _Lock:
    """A lock that calls a function once, right after it was released."""

    def __init__(self) -> None:
        self._lock = idempotency.threading.RLock()
        self.then: Callable[[], None] | None = None

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        then, self.then = self.then, None
        if then is not None:
            then()


def test_the_end_of_one_attempt_wakes_no_request_that_waits_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, key = _Lock(), str(uuid4())
    monkeypatch.setattr(idempotency.threading, "Lock", lambda: lock)
    keys = IdempotencyKeys(1800)
    monkeypatch.undo()
    assert keys.begin("ann", key, "asked", 0.0) is Begun.NEW

    def again() -> None:
        assert keys.begin("ann", key, "asked", 0.0) is Begun.AGAIN

    lock.then = again
    keys.end("ann", key, None)
    with ThreadPoolExecutor(1) as pool:  # the second attempt is under way: a third request is refused, and at once
        refused = pool.submit(keys.begin, "ann", key, "asked", 0.0)
        try:
            assert isinstance(refused.exception(60), Refused)
        finally:
            keys.end("ann", key, Answer(200, b"done"))


def test_answers_of_others_evict_no_request_that_is_under_way() -> None:
    keys, slow = IdempotencyKeys(1800, most_bytes=100), str(uuid4())
    assert keys.begin("ann", slow, "asked", 0.0) is Begun.NEW
    for number in range(5):
        other = str(uuid4())
        assert keys.begin("bob", other, "asked", 0.0) is Begun.NEW
        keys.end("bob", other, Answer(200, b"x" * 60 + str(number).encode()))
    with pytest.raises(Refused, match="under way"):
        keys.begin("ann", slow, "asked", 0.0)
    keys.end("ann", slow, Answer(200, b"done"))
    found = keys.begin("ann", slow, "asked", 0.0)
    assert isinstance(found, Answer)
    assert found.body == b"done"
