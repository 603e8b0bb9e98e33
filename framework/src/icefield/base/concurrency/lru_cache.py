"""A least-recently-used cache, bounded by the size of its values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from threading import Lock
from typing import Final, Generic, TypeVar

from icefield.base.concurrency.forks import reset_after_fork

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_REMEMBERED_USES: Final = 1 << 17
"""The most keys, of evicted values as well, whose last use is known."""


class LruCache(Generic[K, V]):
    """A thread-safe cache. Beyond ``capacity``, the least recently used values are evicted.

    ``size_of`` gives the size of a value, mostly in bytes; without it each value counts as one. ``size`` is the size of
    all values together. A value beyond the capacity is not kept. A forked process begins with an empty cache.
    """

    def __init__(self, capacity: int, size_of: Callable[[V], int] = lambda _: 1) -> None:
        self.capacity = capacity
        self._size_of = size_of
        self._begin()
        reset_after_fork(self._begin)

    def _begin(self) -> None:
        self._lock = Lock()
        self.size = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._pending: dict[K, _Pending[V]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def get(self, key: K) -> V | None:
        """The value of a key; marks it as most recently used."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def get_many(self, keys: Iterable[K]) -> dict[K, V]:
        """The values of the keys that are present; their order of use stays as it is."""
        with self._lock:
            return {key: self._entries[key][0] for key in keys if key in self._entries}

    def put(self, key: K, value: V) -> bool:
        """Store a value, or update the size of a value that has grown. Return whether it fits."""
        size = self._size_of(value)
        with self._lock:
            self._remove(key)
            if size > self.capacity:
                return False
            self._entries[key] = (value, size)
            self.size += size
            self._shrink()
            return True

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made if it is missing. Other threads that want the same value wait for it.

        Values of other keys can be made at the same time. Raises the error of ``make``, which is not kept.
        """
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
                return found[0]
            pending = self._pending.setdefault(key, _Pending())
        with pending.lock:
            if pending.made is None:
                try:
                    pending.made = (make(),)
                    self.put(key, pending.made[0])
                finally:
                    with self._lock:
                        if self._pending.get(key) is pending:
                            del self._pending[key]
            return pending.made[0]

    def pop(self, key: K) -> V | None:
        """Drop the value of a key, and return it."""
        with self._lock:
            return self._remove(key)

    def resize(self, capacity: int) -> None:
        """Set the capacity."""
        with self._lock:
            self.capacity = capacity
            self._shrink()

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._entries.clear()
            self.size = 0

    def _remove(self, key: K) -> V | None:
        found = self._entries.pop(key, None)
        if found is None:
            return None
        self.size -= found[1]
        return found[0]

    def _shrink(self) -> None:
        while self.size > self.capacity:
            _, (_, size) = self._entries.popitem(last=False)
            self.size -= size


class _Pending(Generic[V]):
    """A value that one thread makes and others wait for."""

    __slots__ = ("lock", "made")

    def __init__(self) -> None:
        self.lock = Lock()
        self.made: tuple[V] | None = None


class ReuseCache(LruCache[K, V]):
    """A cache for values that are read in order, again and again, and may exceed the capacity together.

    A plain LRU cache would evict each value just before its next use. Here, a value displaces only values that were
    last used before its own last use. Values read in a cycle stay as far as the capacity reaches; values that are no
    longer used make room when others are read a second time.
    """

    def _begin(self) -> None:
        super()._begin()
        self._clock = 0
        self._used: OrderedDict[int, int] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The value of a key, which counts as a use."""
        found = super().get(key)
        if found is not None:
            with self._lock:
                self._use(key)
        return found

    def put(self, key: K, value: V) -> bool:
        """Store a value in place of an older one under the key. Return whether there was room."""
        size = self._size_of(value)
        with self._lock:
            since = self._use(key)
            room = self.capacity - self.size + self._entries.get(key, (None, 0))[1]
            displaced = [key]
            for oldest, (_, freed) in self._entries.items():
                if room >= size:
                    break
                if oldest != key:
                    if self._used.get(hash(oldest), 0) >= since:
                        return False
                    displaced.append(oldest)
                    room += freed
            if room < size:
                return False
            for each in displaced:
                self._remove(each)
            self._entries[key] = (value, size)
            self.size += size
            return True

    def _use(self, key: K) -> int:
        """Note a use of a key; return the time of its last one, 0 if it is not known."""
        self._clock += 1
        number = hash(key)
        before = self._used.pop(number, 0)
        self._used[number] = self._clock
        if len(self._used) > _REMEMBERED_USES:
            self._used.popitem(last=False)
        return before
