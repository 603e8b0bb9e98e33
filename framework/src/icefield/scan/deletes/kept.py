"""What was read of delete files, kept for the tasks of a scan: each thing made once, and no more than a bound of bytes.

Threads that want the same thing wait for the one that makes it; other things are made meanwhile.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

from icefield.base import reset_after_fork

T = TypeVar("T")


class _Place(Generic[T]):
    __slots__ = ("lock", "made")

    def __init__(self) -> None:
        self.lock = Lock()
        self.made: tuple[T, int] | None = None


class Kept(Generic[T]):
    """Things by key, the least recently used of them left out beyond ``most`` bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._begin()
        reset_after_fork(self._begin)

    def _begin(self) -> None:
        self._lock = Lock()
        self._places: OrderedDict[Hashable, _Place[T]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable, make: Callable[[], tuple[T, int]]) -> T:
        """The thing of that key; ``make`` gives it with its size in bytes when it is not kept. An error is not kept."""
        with self._lock:
            place = self._places.setdefault(key, _Place())
            self._places.move_to_end(key)
        with place.lock:
            if place.made is not None:
                return place.made[0]
            made, size = make()
            place.made = made, size
        with self._lock:
            self._bytes += size
            self._leave_out()
        return made

    def _leave_out(self) -> None:
        for key, place in list(self._places.items()):
            if self._bytes <= self._most:
                return
            if place.made is not None:
                self._bytes -= place.made[1]
                del self._places[key]
