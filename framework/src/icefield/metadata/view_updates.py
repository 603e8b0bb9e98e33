"""The updates of view metadata, as in the REST catalog protocol, and how they are applied together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Protocol, runtime_checkable
from uuid import uuid4

import msgspec

from icefield.base.limits import NameText, ValueText
from icefield.errors import InvalidArgument, UnsupportedFeature, ValidationFailed
from icefield.metadata.codecs import SCHEMAS
from icefield.metadata.entries import Int
from icefield.metadata.json_array import JsonArray
from icefield.metadata.properties import FrozenDict
from icefield.metadata.timestamps import now_ms
from icefield.metadata.updates.base import LAST_ADDED, Drafts, LastAdded
from icefield.metadata.updates.table import SetLocation
from icefield.metadata.validation import check_location, parsed_uuid
from icefield.metadata.views import (
    SQL,
    VERSION_LOG,
    VERSIONS,
    VIEW_FORMAT_VERSION,
    ViewHistoryEntry,
    ViewMetadata,
    ViewVersion,
)
from icefield.schema import Schema

_NONE: Final = -1
VERSIONS_KEPT: Final = "version.history.num-entries"
"""Property of a view: how many versions are kept, 10 by default."""

MAY_DROP_DIALECT: Final = "replace.drop-dialect.allowed"
"""Property of a view: whether a new version may lack a dialect of the version before."""

_KEPT_BY_DEFAULT = 10


@dataclass(slots=True)
class ViewDrafts(Drafts):
    """The state that the updates of one view change share."""

    timestamp_ms: int
    schemas: LastAdded = field(default_factory=LastAdded)
    versions: LastAdded = field(default_factory=LastAdded)
    logged: ViewHistoryEntry | None = None
    """The entry of the log for the version that was made current last."""


@runtime_checkable
class ViewUpdate(Protocol):
    """One step of a change of a view: ``apply`` returns new metadata, or the same object for no change."""

    action: ClassVar[str]
    """The step's name in the REST catalog protocol."""

    def apply(self, metadata: ViewMetadata, change: ViewDrafts) -> ViewMetadata:
        """The metadata after this step."""


@runtime_checkable
class ViewRequirement(Protocol):
    """A condition on the current metadata of a view; None stands for a view that does not exist."""

    type: ClassVar[str]
    """The condition's name in the REST catalog protocol."""

    def check(self, metadata: ViewMetadata | None) -> None:
        """Raise ``ValidationFailed`` unless the condition holds."""


@dataclass(frozen=True, slots=True)
class AssertViewUUID:
    """The view is the loaded view, not another one under the same name."""

    uuid: NameText
    type: ClassVar[str] = "assert-view-uuid"

    def check(self, metadata: ViewMetadata | None) -> None:
        found = None if metadata is None else metadata.view_uuid
        if (found or "").lower() != self.uuid.lower():
            raise ValidationFailed(f"the view's uuid was {self.uuid} and is now {found}", requirement=self.type)


@dataclass(frozen=True, slots=True)
class AssignViewUUID:
    """Give the view its uuid. An existing uuid never changes."""

    uuid: NameText
    action: ClassVar[str] = "assign-uuid"

    def apply(self, metadata: ViewMetadata, change: ViewDrafts) -> ViewMetadata:
        uuid = parsed_uuid(self.uuid)
        if not metadata.view_uuid:
            return replace(metadata, view_uuid=uuid)
        if metadata.view_uuid.lower() != uuid:
            raise InvalidArgument(f"view {metadata.location} has the uuid {metadata.view_uuid}, which cannot change")
        return metadata


@dataclass(frozen=True, slots=True)
class UpgradeViewFormatVersion:
    """Raise the format version of a view; 1 is the only version."""

    format_version: Int
    action: ClassVar[str] = "upgrade-format-version"

    def apply(self, metadata: ViewMetadata, change: ViewDrafts) -> ViewMetadata:
        if self.format_version > VIEW_FORMAT_VERSION:
            raise UnsupportedFeature(f"view format version {self.format_version} is not supported; version 1 is")
        if self.format_version < metadata.format_version:
            raise InvalidArgument(f"the format version of view {metadata.location} cannot be lowered")
        return metadata


@dataclass(frozen=True, slots=True)
class AddViewSchema:
    """Add a schema under the next free id; an identical one is not added again."""

    schema: Schema
    action: ClassVar[str] = "add-schema"

    def apply(self, metadata: ViewMetadata, change: ViewDrafts) -> ViewMetadata:
        if metadata.schemas.alike(self.schema) is not None:
            return metadata  # -1 still means the last schema that the change added, if any
        added = self.schema.with_schema_id(metadata.schemas.next_id())
        change.schemas.add(added.schema_id)
        return replace(metadata, schemas=change.extended(metadata.schemas, added))


@dataclass(frozen=True, slots=True)
class SetViewProperties:
    """Set properties of the view."""

    updates: Mapping[NameText, ValueText]
    action: ClassVar[str] = "set-properties"

    def apply(self, metadata: ViewMetadata, change: ViewDrafts) -> ViewMetadata:
        if all(metadata.properties.get(name) == value for name, value in self.updates.items()):
            return metadata
        return replace(metadata, properties=change.updated("properties", metadata.properties, self.updates))


@dataclass(frozen=True, slots=True)
class AddViewVersion:
    """Add a version under the next free id, unless an equal one exists. Schema -1 means the last schema added."""

    view_version: ViewVersion
    action: ClassVar[str] = "add-view-version"

    def apply(self, metadata: ViewMetadata, change: ViewDrafts) -> ViewMetadata:
        given = self.view_version
        if given.schema_id == LAST_ADDED:
            if change.schemas.last is None:
                raise InvalidArgument("a version of a view names the schema that was added last, and none was")
            given = msgspec.structs.replace(given, schema_id=change.schemas.last)
        _check(given, metadata)
        # Java compares schema id -1 as it is, so that a version with a newly added schema is always new.
        known = metadata.versions.alike(self.view_version)
        if known is not None:
            change.versions.found(known.version_id)
            return metadata
        taken = len(metadata.versions) > 0
        added = msgspec.structs.replace(
            given, version_id=metadata.versions.next_id() if taken else max(given.version_id, 1)
        )
        change.versions.add(added.version_id)
        return replace(metadata, versions=change.extended(metadata.versions, added))


@dataclass(frozen=True, slots=True)
class SetCurrentViewVersion:
    """Make a version of the view the current one; -1 means the last version added."""

    view_version_id: Int = LAST_ADDED
    action: ClassVar[str] = "set-current-view-version"

    def apply(self, metadata: ViewMetadata, change: ViewDrafts) -> ViewMetadata:
        chosen = change.versions.chosen(self.view_version_id)
        version = None if chosen is None else metadata.versions.find(chosen)
        if version is None or chosen is None:
            raise InvalidArgument(f"view {metadata.location} has no version {self.view_version_id} to make current")
        if chosen == metadata.current_version_id:
            return metadata
        when = version.timestamp_ms if chosen in change.versions.added else change.timestamp_ms
        change.logged = ViewHistoryEntry(when, chosen)
        return replace(metadata, current_version_id=chosen)


def apply_view_updates(metadata: ViewMetadata, updates: Iterable[ViewUpdate]) -> ViewMetadata:
    """The metadata of a view after updates; the same object if nothing changes.

    Versions beyond ``version.history.num-entries`` are removed, and the log entries up to the last removed version.
    Raises ``InvalidArgument``; also for a new version that lacks a dialect of the version before, unless the property
    ``replace.drop-dialect.allowed`` is true.
    """
    change = ViewDrafts(now_ms())
    result = metadata
    for update in updates:
        result = update.apply(result, change)
    result = change.settled(result)
    if result is metadata:
        return metadata
    if metadata.versions.has(metadata.current_version_id):
        _check_dialects(metadata, result)
    if not result.versions.has(result.current_version_id):
        raise InvalidArgument(f"view {result.location} has no current version")
    if change.logged is not None:  # one entry for the whole change, however often it chose
        result = replace(result, version_log=result.version_log.extended([change.logged]))
    return _shortened(result, len(change.versions.added))


def choose_view_version(metadata: ViewMetadata, schema: Schema, version: ViewVersion) -> tuple[ViewUpdate, ...]:
    """The updates that make a query with its columns the current version of a view.

    A schema or version that the view has already is named by its id, as for tables: see ``choose_schema``.
    """
    known = metadata.schemas.alike(schema)
    if known is None:
        new = msgspec.structs.replace(version, schema_id=LAST_ADDED)
        return AddViewSchema(schema), AddViewVersion(new), SetCurrentViewVersion()
    stated = msgspec.structs.replace(version, schema_id=known.schema_id)
    before = metadata.versions.alike(stated)
    if before is not None:
        return (SetCurrentViewVersion(before.version_id),)
    return AddViewVersion(stated), SetCurrentViewVersion()


def new_view_metadata(
    schema: Schema,
    version: ViewVersion,
    location: str,
    properties: Mapping[str, str] | None = None,
    view_uuid: str | None = None,
) -> ViewMetadata:
    """The metadata of a new view. Raises ``InvalidArgument``."""
    first = schema.with_schema_id(0)
    empty = ViewMetadata(
        view_uuid=str(uuid4()) if view_uuid is None else parsed_uuid(view_uuid),
        location=check_location(location),
        schemas=JsonArray.of(SCHEMAS, [first]),
        current_version_id=_NONE,
        versions=JsonArray(VERSIONS),
        version_log=JsonArray(VERSION_LOG),
        properties=FrozenDict(properties or {}),
    )
    stated = msgspec.structs.replace(version, schema_id=first.schema_id)
    return apply_view_updates(empty, [AddViewVersion(stated), SetCurrentViewVersion()])


def view_creation_updates(metadata: ViewMetadata) -> tuple[ViewUpdate, ...]:
    """The updates that lead from nothing to the metadata of a new view."""
    version = msgspec.structs.replace(metadata.current_version(), schema_id=LAST_ADDED)
    properties: Sequence[ViewUpdate] = [SetViewProperties(metadata.properties)] if metadata.properties else []
    return (
        AssignViewUUID(metadata.view_uuid),
        UpgradeViewFormatVersion(metadata.format_version),
        SetLocation(metadata.location),
        AddViewSchema(metadata.schema()),
        AddViewVersion(version),
        SetCurrentViewVersion(),
        *properties,
    )


def _check(version: ViewVersion, metadata: ViewMetadata) -> None:
    if not metadata.schemas.has(version.schema_id):
        raise InvalidArgument(f"a version of a view names schema {version.schema_id}, which does not exist")
    if not version.representations:
        raise InvalidArgument("a version of a view needs a query: give its SQL by dialect")
    seen: set[str] = set()
    for given in version.representations:
        if given.type != SQL:
            continue
        if not given.sql or not given.dialect:
            raise InvalidArgument("a query of a view needs its SQL and the dialect that it is in")
        if given.dialect.lower() in seen:
            raise InvalidArgument(
                f"a version of a view cannot have several queries in the dialect {given.dialect}", dialect=given.dialect
            )
        seen.add(given.dialect.lower())


def _check_dialects(before: ViewMetadata, after: ViewMetadata) -> None:
    if after.current_version_id == before.current_version_id:
        return
    if after.properties.get(MAY_DROP_DIALECT, "").lower() == "true":
        return
    had, has = ({name.lower() for name in view.current_version().sql} for view in (before, after))
    if lost := sorted(had - has):
        raise InvalidArgument(
            f"the new version of view {after.location} lacks the dialects that the one before had "
            f"({MAY_DROP_DIALECT}=false): {', '.join(lost)}; give them, or set {MAY_DROP_DIALECT} to true"
        )


def _shortened(metadata: ViewMetadata, added: int) -> ViewMetadata:
    string = metadata.properties.get(VERSIONS_KEPT, str(_KEPT_BY_DEFAULT))
    if not (string.isascii() and string.isdigit() and int(string[:10]) > 0):
        raise InvalidArgument(f"the property {VERSIONS_KEPT} of a view is a positive number, not {string!r:.40}")
    most = max(int(string[:10]), added)
    ids = sorted(metadata.versions.positions, reverse=True)
    if len(ids) <= most:
        return metadata
    kept = {metadata.current_version_id}
    for version_id in ids:
        if len(kept) < most:
            kept.add(version_id)
    log = list(metadata.version_log)
    first = max((place + 1 for place, entry in enumerate(log) if entry.version_id not in kept), default=0)
    return replace(
        metadata,
        versions=metadata.versions.without(set(ids) - kept),
        version_log=JsonArray.of(VERSION_LOG, log[first:]),
    )
