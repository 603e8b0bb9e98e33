"""The limits on the bytes of requests that a process holds at once, in total and for one client."""

from __future__ import annotations

from collections import Counter

from icefield_rest_server.answers import Refused


class BodyBudget:
    """Bytes of bodies under way. It is used only on the event loop, so it needs no lock.

    One client holds at most half of the bytes, so that other clients are served; a single body always has room.
    """

    def __init__(self, most: int, largest: int) -> None:
        self._most = max(most, largest)
        self._share = max(most // 2, largest)
        self._held: Counter[str] = Counter()
        self._total = 0

    def take(self, who: str, size: int) -> None:
        """Count bytes that came from a client. Raises ``Refused`` where there are too many."""
        if self._total + size > self._most or self._held[who] + size > self._share:
            message = "the server has too many bytes of requests under way; nothing was done"
            raise Refused(503, "ServiceUnavailableException", message, {"Retry-After": "2"})
        self._total += size
        self._held[who] += size

    def give_back(self, who: str, size: int) -> None:
        """Release bytes that are no longer held."""
        self._total -= size
        self._held[who] -= size
        if self._held[who] <= 0:
            del self._held[who]
