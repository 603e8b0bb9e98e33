"""Arrays of table metadata, kept as their original JSON text until an element is accessed.

A table with ten thousand snapshots is usually loaded for one of them. The text of the others is checked and indexed by
id, but not decoded. A rewrite copies it byte for byte, with every key that this version does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any, Generic, TypeVar, overload

import msgspec

from icefield.errors import IcefieldError, InvalidArgument, InvalidMetadata, UnsupportedFeature

T = TypeVar("T")
_Text = bytes | msgspec.Raw

_split = msgspec.json.Decoder(list[msgspec.Raw])

DAMAGE = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""The errors of decoding damaged JSON, besides the project's own errors."""


@cache
def _decoder(kind: Any, *, many: bool = False) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(list[kind] if many else kind)


@dataclass(frozen=True, slots=True)
class ItemCodec(Generic[T]):
    """How the elements of one array are read.

    ``record`` is the type of the light record, with the id, that is decoded of every element when metadata is loaded;
    if ``decode`` is None the record is the element itself. ``rewrite`` tells by the record whether an element must be
    written in a form other than its original one. ``content`` is an element without its id.
    """

    name: str
    record: Any
    identify: Callable[[Any], Any]
    encode: Callable[[T], bytes]
    decode: Callable[[_Text], T] | None = None
    rewrite: Callable[[Any], bool] | None = None
    unique: bool = True
    content: Callable[[T], Hashable] | None = None


class JsonArray(Sequence[T]):
    """An immutable sequence of elements that are decoded on access."""

    __slots__ = (
        *("_base", "_codec", "_contents", "_highest", "_items", "_location"),
        *("_parts", "_positions", "_records", "_tail"),
    )

    def __init__(self, codec: ItemCodec[T], string: _Text = b"[]", location: str = "", tail: Iterable[bytes] = ()):
        self._codec = codec
        self._base = string
        self._location = location
        self._tail = list(tail)
        self._parts: list[_Text] | None = None
        self._records: list[Any] | None = None
        self._positions: dict[Any, int] | None = None
        self._contents: dict[Hashable, tuple[int, ...]] | None = None
        self._highest: int | None = None
        self._items: dict[int, T] = {}

    @property
    def name(self) -> str:
        """The key of the array in the JSON of the metadata."""
        return self._codec.name

    @classmethod
    def of(cls, codec: ItemCodec[T], items: Iterable[T]) -> JsonArray[T]:
        """An array of elements made here."""
        return cls(codec).extended(items)

    def checked(self) -> JsonArray[T]:
        """This array in the form to be written, after a check of the ids.

        Every element must have an id, and no id may occur twice if the codec requires unique ids.

        Raises ``InvalidMetadata``.
        """
        records = self.records
        rewrite = self._codec.rewrite
        if rewrite is not None and any(map(rewrite, records)):
            pairs = enumerate(zip(records, self._strings(), strict=True))
            parts = [self._codec.encode(self[i]) if rewrite(record) else part for i, (record, part) in pairs]
            return self._from_parts(parts).checked()
        if len(self.positions) != len(records) and self._codec.unique:
            raise self._damaged("two elements have the same id")
        return self

    @property
    def records(self) -> Sequence[Any]:
        """The light records of all elements, in order. Not to be changed."""
        self._complete()
        if self._records is None:
            try:
                records = _decoder(self._codec.record, many=True).decode(self._base)
                records += map(_decoder(self._codec.record).decode, self._tail)
            except DAMAGE as error:
                raise self._damaged(str(error)) from error
            self._records = records
        return self._records

    def last_record(self) -> Any:
        """The light record of the last element, or None."""
        return self.records[-1] if self.records else None

    @property
    def positions(self) -> dict[Any, int]:
        """The position of each id; the last one of a duplicate id. Not to be changed."""
        self._complete()
        return self._known_positions()

    def has(self, identity: Any) -> bool:
        """Whether an element has that id."""
        return identity in self._known_positions()

    def find(self, identity: Any) -> T | None:
        """The element with an id, or None."""
        position = self._known_positions().get(identity)
        return None if position is None else self._at(position)

    def alike(self, item: T) -> T | None:
        """The first element that equals ``item`` apart from the id, or None."""
        if self._contents is None:
            elements = list(self)
            self._contents = {}
            self._note_contents(elements, 0)
        places = self._contents.get(self._content(item))
        return None if places is None else self._at(places[0])

    def next_id(self) -> int:
        """The highest id plus one, or 0 for an empty array; for arrays with numeric ids."""
        if self._highest is None:
            self._highest = max(self._known_positions(), default=-1)
        return self._highest + 1

    def extended(self, items: Iterable[T]) -> JsonArray[T]:
        """A new array with elements at its end; it shares the existing elements. Raises ``InvalidArgument``."""
        self._complete()
        result = JsonArray(self._codec)
        result._copy(self)
        result._append(list(items))
        return result

    def without(self, identities: Collection[Any]) -> JsonArray[T]:
        """A new array without the elements that have one of these ids."""
        if self.positions.keys().isdisjoint(identities):
            return self
        identify = self._codec.identify
        return self.kept([i for i, record in enumerate(self.records) if identify(record) not in identities])

    def kept(self, positions: Sequence[int]) -> JsonArray[T]:
        """A new array of the elements at these positions."""
        if len(positions) == len(self):
            return self
        parts, records = self._strings(), self.records
        result = self._from_parts([parts[i] for i in positions])
        result._records = [records[i] for i in positions]
        result._items = {new: self._items[old] for new, old in enumerate(positions) if old in self._items}
        return result

    def mapped(self, change: Callable[[bytes], bytes]) -> JsonArray[T]:
        """A new array with the JSON of each element changed."""
        self._complete()
        return self._from_parts([change(bytes(part)) for part in self._strings()])

    def raw(self) -> _Text:
        """The JSON text of the array."""
        self._complete()
        if not self._tail:
            return self._base
        head = bytes(self._base).rstrip()[:-1].rstrip()
        separator = b"" if head == b"[" else b","
        return b"".join((head, separator, b",".join(self._tail), b"]"))

    def loaded(self, identity: Any) -> T | None:
        """The element with an id, or None also if it is not loaded: nothing is fetched."""
        return self.find(identity)

    def known_records(self) -> Sequence[Any]:
        """The light records of the elements that are loaded: all, unless some are fetched on first use."""
        return self.records

    def known_size(self) -> int:
        """How many elements are loaded: all of them, unless the rest can still be fetched."""
        return len(self)

    def __len__(self) -> int:
        self._complete()
        return self._size()

    @overload
    def __getitem__(self, position: int) -> T: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[T]: ...
    def __getitem__(self, position: int | slice) -> T | Sequence[T]:
        if isinstance(position, slice):
            return tuple(self[i] for i in range(*position.indices(len(self))))
        size = len(self)
        if not -size <= position < size:
            raise IndexError(position)
        return self._at(position % size)

    def __iter__(self) -> Iterator[T]:
        return map(self._at, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JsonArray):
            return NotImplemented
        if self._codec is not other._codec:
            return False
        return bytes(self.raw()) == bytes(other.raw()) or (len(self) == len(other) and list(self) == list(other))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._codec.name, bytes(self.raw()), self._location)

    def __repr__(self) -> str:
        return f"<{len(self)} {self._codec.name}>"

    def _complete(self) -> None:
        """Called before each access to the whole sequence, for subclasses that hold it incompletely until then."""

    def _known_positions(self) -> dict[Any, int]:
        if self._positions is None:
            self._positions = dict(zip(map(self._codec.identify, self.records), count()))
        return self._positions

    def _content(self, item: T) -> Hashable:
        content = self._codec.content
        assert content is not None, f"elements of '{self._codec.name}' are told apart by their ids alone"
        return content(item)

    def _note_contents(self, items: Iterable[T], start: int) -> None:
        assert self._contents is not None
        for position, content in enumerate(map(self._content, items), start):
            self._contents[content] = (*self._contents.get(content, ()), position)

    def _copy(self, other: JsonArray[T]) -> None:
        """Take over the state of another array, without sharing anything mutable with it."""
        self._take(other)
        for name in ("_tail", "_parts", "_records", "_positions", "_contents", "_items"):
            held = getattr(other, name)
            setattr(self, name, None if held is None else held.copy())

    def _take(self, other: JsonArray[T]) -> None:
        for name in JsonArray.__slots__:
            setattr(self, name, getattr(other, name))

    def _append(self, items: Sequence[T]) -> None:
        """Add elements to the end of this array in place, before any other code has seen it."""
        strings = list(map(self._encode, items))
        start = self._size()
        self._tail += strings
        self._items.update(enumerate(items, start))
        if self._parts is not None:
            self._parts += strings
        if self._records is not None:
            # Elements have all attributes of their records, so they can replace them.
            self._records += items
        if self._positions is not None:
            self._positions.update(zip(map(self._codec.identify, items), count(start)))
        if self._highest is not None:
            self._highest = max((self._highest, *map(self._codec.identify, items)))
        if self._contents is not None:
            self._note_contents(items, start)

    def _size(self) -> int:
        return len(self._records) if self._records is not None else len(self._strings())

    def _from_parts(self, parts: Sequence[_Text]) -> JsonArray[T]:
        result = JsonArray(self._codec, b"[" + b",".join(parts) + b"]", self._location)
        result._parts = list(parts)
        return result

    def _strings(self) -> list[_Text]:
        """The string of each element."""
        if self._parts is None:
            try:
                self._parts = [*_split.decode(self._base), *self._tail]
            except DAMAGE as error:
                raise self._damaged(str(error)) from error
        return self._parts

    def _at(self, position: int) -> T:
        found = self._items.get(position)
        if found is None:
            found = self._items[position] = self._decode_at(position)
        return found

    def _decode_at(self, position: int) -> T:
        if self._codec.decode is None:
            return (self._records or self.records)[position]  # type: ignore[no-any-return]
        try:
            return self._codec.decode(self._strings()[position])
        except UnsupportedFeature as error:
            raise UnsupportedFeature(self._message(str(error), position), **self._data(position)) from error
        except (IcefieldError, *DAMAGE) as error:
            raise self._damaged(str(error) or type(error).__name__, position) from error

    def _encode(self, item: T) -> bytes:
        try:
            return self._codec.encode(item)
        except UnicodeEncodeError as error:
            raise InvalidArgument(f"an element of '{self._codec.name}' holds invalid Unicode text: {error}") from error

    def _message(self, why: str, position: int | None) -> str:
        at = "" if position is None else f"[{position}]"
        return f"{self._location or 'table metadata'}: '{self._codec.name}'{at}: {why}"

    def _data(self, position: int | None) -> dict[str, Any]:
        return {"location": self._location, "key": self._codec.name, "position": position}

    def _damaged(self, why: str, position: int | None = None) -> InvalidMetadata:
        return InvalidMetadata(self._message(why, position), **self._data(position))


_registry: dict[str, ItemCodec[Any]] = {}


def register(codec: ItemCodec[T]) -> ItemCodec[T]:
    """Make a codec known by its array's name, under which arrays are pickled."""
    _registry[codec.name] = codec
    return codec


def _rebuild(name: str, string: bytes, location: str) -> JsonArray[Any]:
    return JsonArray(_registry[name], string, location)
