"""Updates and requirements as JSON objects, in the form of the REST catalog protocol.

Input is not trusted: every value is checked, and a wrong value raises ``InvalidArgument`` with its path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from icefield.base.limits import NameText, ValueText
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.metadata.entries import EncryptedKey, Int, Long, PartitionStatisticsFile, StatisticsFile
from icefield.metadata.refs import SnapshotRef
from icefield.metadata.requirements import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotID,
    AssertTableUUID,
    TableRequirement,
)
from icefield.metadata.snapshots import Snapshot
from icefield.metadata.updates.base import TableUpdate
from icefield.metadata.updates.definitions import (
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    RemovePartitionSpecs,
    RemoveSchemas,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
)
from icefield.metadata.updates.snapshots import (
    AddSnapshot,
    RemovePartitionStatistics,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetPartitionStatistics,
    SetSnapshotRef,
    SetStatistics,
)
from icefield.metadata.updates.table import (
    AddEncryptionKey,
    AssignUUID,
    RemoveEncryptionKey,
    RemoveProperties,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
)
from icefield.metadata.view_updates import (
    AddViewSchema,
    AddViewVersion,
    AssertViewUUID,
    AssignViewUUID,
    SetCurrentViewVersion,
    SetViewProperties,
    UpgradeViewFormatVersion,
    ViewRequirement,
    ViewUpdate,
)
from icefield.metadata.views import ViewVersion
from icefield.partitioning import PartitionSpec, SortOrder
from icefield.partitioning.sort_order import sort_order_from_json, sort_order_to_json
from icefield.partitioning.spec import spec_from_json, spec_to_json
from icefield.schema import Schema, schema_from_json, schema_to_json

Json = dict[str, Any]
"""A JSON object."""

_Properties = dict[NameText, ValueText]
_MAX_STEPS: Final = 100_000

# The key and the type of the value, for updates with a single value. Schemas, specs and sort orders have their own
# JSON; updates with several values are written out below.
_SINGLE: Final[dict[type, tuple[str, Any]]] = {
    AssignUUID: ("uuid", NameText),
    UpgradeFormatVersion: ("format-version", Int),
    AddSchema: ("schema", Schema),
    SetCurrentSchema: ("schema-id", Int),
    AddPartitionSpec: ("spec", PartitionSpec),
    SetDefaultSpec: ("spec-id", Int),
    AddSortOrder: ("sort-order", SortOrder),
    SetDefaultSortOrder: ("sort-order-id", Int),
    AddSnapshot: ("snapshot", Snapshot),
    RemoveSnapshots: ("snapshot-ids", list[Long]),
    RemoveSnapshotRef: ("ref-name", NameText),
    SetLocation: ("location", NameText),
    SetProperties: ("updates", _Properties),
    RemoveProperties: ("removals", list[NameText]),
    SetStatistics: ("statistics", StatisticsFile),
    RemoveStatistics: ("snapshot-id", Long),
    SetPartitionStatistics: ("partition-statistics", PartitionStatisticsFile),
    RemovePartitionStatistics: ("snapshot-id", Long),
    RemovePartitionSpecs: ("spec-ids", list[Int]),
    RemoveSchemas: ("schema-ids", list[Int]),
    AddEncryptionKey: ("encryption-key", EncryptedKey),
    RemoveEncryptionKey: ("key-id", NameText),
}
_SINGLE_OF_VIEWS: Final[dict[type, tuple[str, Any]]] = {
    AssignViewUUID: ("uuid", NameText),
    UpgradeViewFormatVersion: ("format-version", Int),
    AddViewSchema: ("schema", Schema),
    SetLocation: ("location", NameText),
    SetViewProperties: ("updates", _Properties),
    RemoveProperties: ("removals", list[NameText]),
    AddViewVersion: ("view-version", ViewVersion),
    SetCurrentViewVersion: ("view-version-id", Int),
}
_REQUIREMENTS: Final[dict[type, tuple[str, Any]]] = {
    AssertTableUUID: ("uuid", NameText),
    AssertLastAssignedFieldId: ("last-assigned-field-id", Int),
    AssertCurrentSchemaId: ("current-schema-id", Int),
    AssertLastAssignedPartitionId: ("last-assigned-partition-id", Int),
    AssertDefaultSpecId: ("default-spec-id", Int),
    AssertDefaultSortOrderId: ("default-sort-order-id", Int),
}
_REQUIREMENTS_OF_VIEWS: Final[dict[type, tuple[str, Any]]] = {AssertViewUUID: ("uuid", NameText)}

_OWN_JSON: Final[dict[Any, tuple[Callable[[Any], Json], Callable[[Json], Any]]]] = {
    Schema: (schema_to_json, schema_from_json),
    PartitionSpec: (spec_to_json, spec_from_json),
    SortOrder: (sort_order_to_json, sort_order_from_json),
}


def updates_to_json(updates: Iterable[TableUpdate]) -> list[Json]:
    """The updates of a table as the protocol writes them.

    Raises ``UnsupportedFeature`` for an update without a form in the protocol.
    """
    return [_written(update) for update in updates]


def updates_from_json(given: Any) -> tuple[TableUpdate, ...]:
    """The updates of a table that a request holds. Raises ``InvalidArgument``, ``InvalidSchema``."""
    return tuple(_read("updates", given, "action", _TABLE_UPDATES))


def requirements_to_json(requirements: Iterable[TableRequirement]) -> list[Json]:
    """The requirements of a change of a table as the protocol writes them."""
    return [_requirement_to_json(requirement) for requirement in requirements]


def requirements_from_json(given: Any) -> tuple[TableRequirement, ...]:
    """The requirements that a request holds. Raises ``InvalidArgument``."""
    return tuple(_read("requirements", given, "type", _TABLE_REQUIREMENTS))


def view_updates_to_json(updates: Iterable[ViewUpdate]) -> list[Json]:
    """The updates of a view as the protocol writes them."""
    return [_single(update, update.action, "action", _SINGLE_OF_VIEWS) for update in updates]


def view_updates_from_json(given: Any) -> tuple[ViewUpdate, ...]:
    """The updates of a view that a request holds. Raises ``InvalidArgument``, ``InvalidSchema``."""
    return tuple(_read("updates", given, "action", _VIEW_UPDATES))


def view_requirements_to_json(requirements: Iterable[ViewRequirement]) -> list[Json]:
    """The requirements of a change of a view as the protocol writes them."""
    return [_single(requirement, requirement.type, "type", _REQUIREMENTS_OF_VIEWS) for requirement in requirements]


def view_requirements_from_json(given: Any) -> tuple[ViewRequirement, ...]:
    """The requirements on a view that a request holds. Raises ``InvalidArgument``."""
    return tuple(_read("requirements", given, "type", _VIEW_REQUIREMENTS))


# -- writing --------------------------------------------------------------------------------------------------------


def _written(update: TableUpdate) -> Json:
    if isinstance(update, SetSnapshotRef):
        return {"action": update.action, "ref-name": update.name, **msgspec.to_builtins(update.ref)}
    written = _single(update, update.action, "action", _SINGLE)
    if isinstance(update, AddSchema) and update.last_column_id is not None:
        written["last-column-id"] = update.last_column_id
    if isinstance(update, SetStatistics):
        written["snapshot-id"] = update.statistics.snapshot_id
    return written


def _requirement_to_json(requirement: TableRequirement) -> Json:
    match requirement:
        case AssertCreate():
            return {"type": requirement.type}
        case AssertRefSnapshotID():
            return {"type": requirement.type, "ref": requirement.ref, "snapshot-id": requirement.snapshot_id}
    return _single(requirement, requirement.type, "type", _REQUIREMENTS)


def _single(value: Any, name: str, tag: str, known: Mapping[type, tuple[str, Any]]) -> Json:
    found = known.get(type(value))
    if found is None:
        raise UnsupportedFeature(f"the REST catalog protocol has no form for {type(value).__name__}")
    key, kind = found
    (held, *_) = (getattr(value, attribute) for attribute in value.__dataclass_fields__)
    if kind in _OWN_JSON:
        return {tag: name, key: _OWN_JSON[kind][0](held)}
    return {tag: name, key: sorted(held) if isinstance(held, frozenset) else msgspec.to_builtins(held)}


# -- reading --------------------------------------------------------------------------------------------------------

_Reader = Callable[[Json], Any]


def _read(what: str, given: Any, tag: str, readers: Mapping[str, _Reader]) -> Iterator[Any]:
    if not isinstance(given, list):
        raise InvalidArgument(f"'{what}' must be a list")
    if len(given) > _MAX_STEPS:
        raise InvalidArgument(f"'{what}' has {len(given):,} elements; {_MAX_STEPS:,} are the most")
    for place, item in enumerate(given):
        where = f"{what}[{place}]"
        if not isinstance(item, dict):
            raise InvalidArgument(f"{where} must be an object")
        name = item.get(tag)
        reader = readers.get(name) if isinstance(name, str) else None
        if reader is None:
            raise InvalidArgument(f"{where}: unknown {tag} {name!r:.80}; known are: {', '.join(sorted(readers))}")
        try:
            yield reader(item)
        except KeyError as error:
            raise InvalidArgument(f"{where} ({name}) lacks {error}") from error
        except (TypeError, msgspec.ValidationError, RecursionError) as error:
            raise InvalidArgument(f"{where} ({name}): {error}") from error


def _reader(kind: type, key: str, of: Any) -> _Reader:
    if of in _OWN_JSON:
        return lambda given: kind(_OWN_JSON[of][1](given[key]))
    return lambda given: kind(msgspec.convert(given[key], of))


def _schema(given: Json) -> AddSchema:
    schema = schema_from_json(given["schema"])
    return AddSchema(schema, msgspec.convert(given.get("last-column-id"), Int | None))


def _snapshot_ref(given: Json) -> SetSnapshotRef:
    ref = {key: value for key, value in given.items() if key not in ("action", "ref-name") and value is not None}
    return SetSnapshotRef(msgspec.convert(given["ref-name"], NameText), msgspec.convert(ref, SnapshotRef))


def _ref_requirement(given: Json) -> AssertRefSnapshotID:
    stated = msgspec.convert(given.get("snapshot-id"), Long | None)
    return AssertRefSnapshotID(msgspec.convert(given["ref"], NameText), stated)


def _snapshot(given: Json) -> AddSnapshot:
    held = given["snapshot"]
    if isinstance(held, dict):
        held = {key: value for key, value in held.items() if value is not None}
    return AddSnapshot(msgspec.convert(held, Snapshot))


_TABLE_UPDATES: Final[dict[str, _Reader]] = {
    **{kind.action: _reader(kind, key, of) for kind, (key, of) in _SINGLE.items()},  # type: ignore[attr-defined]
    "add-schema": _schema,
    "add-snapshot": _snapshot,
    "set-snapshot-ref": _snapshot_ref,
}
_TABLE_REQUIREMENTS: Final[dict[str, _Reader]] = {
    **{kind.type: _reader(kind, key, of) for kind, (key, of) in _REQUIREMENTS.items()},  # type: ignore[attr-defined]
    "assert-create": lambda given: AssertCreate(),
    "assert-ref-snapshot-id": _ref_requirement,
}
_VIEW_UPDATES: Final[dict[str, _Reader]] = {
    kind.action: _reader(kind, key, of)  # type: ignore[attr-defined]
    for kind, (key, of) in _SINGLE_OF_VIEWS.items()
}
_VIEW_REQUIREMENTS: Final[dict[str, _Reader]] = {
    kind.type: _reader(kind, key, of)  # type: ignore[attr-defined]
    for kind, (key, of) in _REQUIREMENTS_OF_VIEWS.items()
}
