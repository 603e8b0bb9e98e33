"""The base of all updates of table metadata: small values that make new metadata from old."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

from icefield.metadata.array_draft import ArrayDraft
from icefield.metadata.json_array import JsonArray
from icefield.metadata.properties import FrozenDict
from icefield.metadata.refs import SnapshotRef
from icefield.metadata.table_metadata import TableMetadata

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
Metadata = TypeVar("Metadata", bound="DataclassInstance")

LAST_ADDED = -1
"""Stands for the id of the schema, spec or sort order that the same change added last."""


@dataclass(slots=True)
class LastAdded:
    """The ids that a change assigned to schemas, specs, orders or versions; -1 stands for ``last``.

    After an update that adds nothing new, -1 has no meaning, as in the builders of Iceberg's Java library. Services
    that are built on that library refuse a change that then uses -1.
    """

    first: int | None = None
    last: int | None = None
    added: set[int] = field(default_factory=set)

    def add(self, id_: int) -> None:
        """Note an added id."""
        self.last = id_
        self.first = id_ if self.first is None else min(self.first, id_)
        self.added.add(id_)

    def found(self, id_: int, *, after_any: bool = False) -> None:
        """Note that the object to add exists already under an id: -1 means that id if this change added it.

        With ``after_any``, it is enough that the change added the object that -1 meant before. This is Java's rule for
        specs and sort orders.
        """
        new = self.last if after_any else id_
        self.last = id_ if self.last is not None and new in self.added else None

    def chosen(self, given: int) -> int | None:
        """The id that an update names; None for -1 if the change has added nothing."""
        return self.last if given == LAST_ADDED else given


@dataclass(slots=True, kw_only=True)
class Drafts:
    """The arrays and mappings that the updates of one change make, and change in place.

    So the cost of n updates is linear in n. No other code may see the metadata before ``settled``.
    """

    _mappings: dict[str, FrozenDict[str, Any]] = field(default_factory=dict)

    def settled(self, metadata: Metadata) -> Metadata:
        """The finished metadata, which later updates will not change in place."""
        self._mappings.clear()
        held = ((each.name, getattr(metadata, each.name)) for each in fields(metadata))
        made = {name: value.array() for name, value in held if isinstance(value, ArrayDraft)}
        return replace(metadata, **made) if made else metadata

    def extended(self, array: JsonArray[T], item: T) -> JsonArray[T]:
        """An array with an element at its end."""
        draft = _draft(array)
        draft.add(item)
        return draft

    def dropped(self, array: JsonArray[T], identities: Iterable[Any]) -> JsonArray[T]:
        """An array without the elements that have one of these ids; the same array if no element has."""
        return _without(array, identities, ArrayDraft.drop)

    def dropped_through(self, array: JsonArray[T], identities: Iterable[Any]) -> JsonArray[T]:
        """The elements behind the last element with one of these ids; the same array if no element has."""
        return _without(array, identities, ArrayDraft.drop_through)

    def updated(self, name: str, mapping: Mapping[str, T], entries: Mapping[str, T]) -> Mapping[str, T]:
        """The mapping of that name with some entries added or replaced."""
        result = self._own(name, mapping)
        dict.update(result, entries)
        return result

    def without(self, name: str, mapping: Mapping[str, T], keys: Iterable[str]) -> Mapping[str, T]:
        """The mapping of that name without some entries; a missing key is no error."""
        result = self._own(name, mapping)
        for key in keys:
            dict.pop(result, key, None)
        return result

    def _own(self, name: str, mapping: Mapping[str, T]) -> FrozenDict[str, T]:
        if self._mappings.get(name) is not mapping:
            self._mappings[name] = FrozenDict(mapping)
        return self._mappings[name]


def _draft(array: JsonArray[T]) -> ArrayDraft[T]:
    return array if isinstance(array, ArrayDraft) else ArrayDraft(array)


def _without(
    array: JsonArray[T], identities: Iterable[Any], drop: Callable[[ArrayDraft[T], Iterable[Any]], None]
) -> JsonArray[T]:
    gone = set(filter(array.has, identities))
    if not gone:
        return array
    draft = _draft(array)
    drop(draft, gone)
    return draft


@dataclass(slots=True)
class TableDrafts(Drafts):
    """The state that the updates of one table change share."""

    base: TableMetadata
    timestamp_ms: int
    """The time of the change: the time of its newest snapshot, and never before the base's time."""

    schemas: LastAdded = field(default_factory=LastAdded)
    specs: LastAdded = field(default_factory=LastAdded)
    orders: LastAdded = field(default_factory=LastAdded)
    adds_snapshot: bool = False
    _refs: Mapping[str, SnapshotRef] | None = None
    _named: Counter[int] = field(default_factory=Counter)

    def named_by(self, refs: Mapping[str, SnapshotRef]) -> Set[int]:
        """The snapshots that branches and tags refer to; not recounted if ``refs`` belong to the latest metadata."""
        if self._refs is not refs:
            self._refs, self._named = refs, Counter(ref.snapshot_id for ref in refs.values())
        return self._named.keys()

    def with_ref(
        self, refs: Mapping[str, SnapshotRef], name: str, ref: SnapshotRef | None
    ) -> Mapping[str, SnapshotRef]:
        """The branches and tags with ``ref`` under that name, or without that name if ``ref`` is None."""
        before, counted = refs.get(name), self._refs is refs
        made = self.without("refs", refs, [name]) if ref is None else self.updated("refs", refs, {name: ref})
        if counted:
            self._refs = made
            if ref is not None:
                self._named[ref.snapshot_id] += 1
            if before is not None:
                self._named[before.snapshot_id] -= 1
                if not self._named[before.snapshot_id]:
                    del self._named[before.snapshot_id]
        return made


@runtime_checkable
class TableUpdate(Protocol):
    """One step of a change.

    ``apply`` returns new metadata, or the same object when there is nothing to change. It raises
    ``InvalidArgument`` or ``InvalidSchema`` for a step that breaks a rule of the format.
    """

    action: ClassVar[str]
    """The step's name in the REST catalog protocol."""

    def apply(self, metadata: TableMetadata, change: TableDrafts) -> TableMetadata:
        """The metadata after this step."""
