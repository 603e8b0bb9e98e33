"""Requests that carry an idempotency key are done once: another with the same key gets the same answer."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from icefield_rest_server.answers import Answer, Refused, error_answer
from icefield_rest_server.calls import Call
from icefield_rest_server.idempotency import Begun, IdempotencyStore
from icefield_rest_server.state import State
from icefield_rest_server.tables import committed_before, vended_again, without_credentials

_DOUBTFUL = (404, 409, 500, 503)


class Once:
    """Does requests once for each idempotency key. Answers are kept without credentials: a retry gets new ones."""

    def __init__(self, keys: IdempotencyStore, state: State, timeout: float) -> None:
        self._keys, self._state, self._timeout = keys, state, timeout

    def answer(self, key: str, call: Call, do: Callable[[], Answer], *, commits: bool) -> Answer:
        """Return the answer kept for the key, or do the request now."""
        who = call.who
        asked = sha256(repr((call.operation, call.parts, call.query, call.digest)).encode()).hexdigest()
        begun = self._keys.begin(who, key, asked, self._timeout)
        if isinstance(begun, Answer):
            return vended_again(self._state, call, begun)
        # This answer is kept if ``do`` raises; None if an earlier attempt may have done the request.
        answer = Answer(500) if begun is Begun.NEW else None
        try:
            answer = do() if begun is Begun.NEW else self._done_again(call, do, commits=commits)
        finally:
            # A commit is answered with 500 only if its outcome is not known: a retry must look for it.
            is_unknown = answer is None or (commits and answer.status == 500)
            self._keys.end(who, key, None if answer is None or is_unknown else without_credentials(answer))
        return _unknown(commits=commits) if answer is None else answer

    def _done_again(self, call: Call, do: Callable[[], Answer], *, commits: bool) -> Answer | None:
        """Answer a request after an attempt with an unknown outcome; None where it may be done already.

        That attempt is over. If that attempt changed anything, the repeated request runs into a conflict.
        """
        found, shows = committed_before(self._state, call) if commits else (None, False)
        answer = do() if found is None else found
        return None if answer.status in _DOUBTFUL and not shows else answer


def _unknown(*, commits: bool) -> Answer:
    """Answer a request with an unknown outcome. The status is not 503, which clients take for "not done" and repeat."""
    message = "a process of the server died while it did this request, and whether it was done is not known"
    return error_answer(Refused(500, "CommitStateUnknownException" if commits else "ServiceFailureException", message))
