"""Arrays of table metadata while the updates of one change are applied to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Any, TypeVar

from icefield.metadata.json_array import JsonArray

T = TypeVar("T")


class ArrayDraft(JsonArray[T]):
    """A copy of an array that grows and shrinks in place; ``array`` returns the result.

    n additions and removals, in any order, take time in proportion to n. A removed element leaves a gap. Finding an
    element by its id or content, the next id and the last record work with gaps. All other operations concern the
    whole sequence, and close the gaps first.
    """

    __slots__ = ("_end", "_gone", "_ids", "_start", "_twins")

    def __init__(self, start: JsonArray[T]) -> None:
        super().__init__(start._codec)
        self._take(start.extended(()))
        self._gone: set[int] = set()
        self._ids: list[Any] | None = None
        """A heap of the negated ids, including ids of removed elements; None until the next id is first needed."""
        self._forget_places()

    def _forget_places(self) -> None:
        self._start = 0
        self._end = self._size()
        self._twins: dict[Any, list[int]] | None = None
        """The positions of each id besides its last one; None until an element is removed."""

    def array(self) -> JsonArray[T]:
        """The array of the remaining elements. The draft must not be changed afterwards."""
        self._complete()
        result = JsonArray(self._codec)
        result._take(self)
        return result

    def add(self, item: T) -> None:
        """Add an element to the end."""
        identity = self._codec.identify(item)
        if self._twins is not None and self.has(identity):
            self._twins[identity].append(self._known_positions()[identity])
        if self._ids is not None:
            heappush(self._ids, -identity)
        self._append([item])
        self._end = self._size()

    def drop(self, identities: Iterable[Any]) -> None:
        """Remove all elements with one of these ids. Every id must be there."""
        if self._twins is None:
            self._twins, last = defaultdict(list), self.positions
            if len(last) < len(self):
                for position, identity in enumerate(map(self._codec.identify, self.records)):
                    if last[identity] != position:
                        self._twins[identity].append(position)
        for identity in identities:
            for position in (self._known_positions()[identity], *self._twins.pop(identity, ())):
                self._drop_at(position)

    def drop_through(self, identities: Iterable[Any]) -> None:
        """Remove the elements up to the last one with one of these ids. Every id must be there."""
        end = max(self._known_positions()[identity] for identity in identities) + 1
        for position in range(self._start, end):
            if position not in self._gone:
                self._drop_at(position)
        self._start = end

    def next_id(self) -> int:
        known = self._known_positions()
        if self._ids is None:
            self._ids = [-identity for identity in known]
            heapify(self._ids)
        while self._ids and -self._ids[0] not in known:
            heappop(self._ids)
        return 1 - self._ids[0] if self._ids else 0

    def last_record(self) -> Any:
        while self._end - 1 in self._gone:
            self._end -= 1
        return (self._records or self.records)[self._end - 1] if self._end else None

    def _drop_at(self, position: int) -> None:
        known, records = self._known_positions(), self._records
        assert records is not None
        identity = self._codec.identify(records[position])
        if known.get(identity) == position:
            del known[identity]
        if self._contents is not None:
            content = self._content(self._at(position))
            left = tuple(place for place in self._contents.pop(content) if place != position)
            if left:
                self._contents[content] = left
        self._gone.add(position)

    def _complete(self) -> None:
        if self._gone:
            gone, self._gone = self._gone, set()
            self._take(self.kept([position for position in range(self._size()) if position not in gone]))
            self._forget_places()
