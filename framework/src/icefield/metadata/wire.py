"""Updates and requirements as JSON objects, in the form of the REST catalog protocol.

Input is not trusted: every value is checked, and a wrong value raises ``InvalidArgument`` with its path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any, Final, get_type_hints

import msgspec

from icefield.base.limits import NameText
from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.metadata import requirements as table_requirements
from icefield.metadata import view_updates
from icefield.metadata.entries import Int, Long
from icefield.metadata.refs import SnapshotRef
from icefield.metadata.requirements import AssertCreate, AssertRefSnapshotID, TableRequirement
from icefield.metadata.snapshots import Snapshot
from icefield.metadata.updates import definitions, snapshots, table
from icefield.metadata.updates.base import TableUpdate
from icefield.metadata.updates.definitions import AddSchema
from icefield.metadata.updates.snapshots import AddSnapshot, SetSnapshotRef, SetStatistics
from icefield.metadata.updates.table import RemoveProperties, SetLocation
from icefield.metadata.view_updates import ViewRequirement, ViewUpdate
from icefield.partitioning import PartitionSpec, SortOrder
from icefield.partitioning.sort_order import sort_order_from_json, sort_order_to_json
from icefield.partitioning.spec import spec_from_json, spec_to_json
from icefield.schema import Schema, schema_from_json, schema_to_json

Json = dict[str, Any]
"""A JSON object."""

_MAX_STEPS: Final = 100_000


def _keys(tag: str, *modules: ModuleType) -> dict[type, str]:
    """The updates or requirements of some modules, each with the key of its first value."""
    found = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
    named = [(kind, fields(kind)) for kind in found if is_dataclass(kind) and tag in vars(kind)]
    keys = {kind: held[0].name.replace("_", "-") for kind, held in named if held}
    return {kind: "ref-name" if key == "name" else key for kind, key in keys.items()}


_UPDATES: Final = _keys("action", definitions, snapshots, table)
_REQUIREMENTS: Final = _keys("type", table_requirements)
_UPDATES_OF_VIEWS: Final = _keys("action", view_updates) | {SetLocation: "location", RemoveProperties: "removals"}
_REQUIREMENTS_OF_VIEWS: Final = _keys("type", view_updates)

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
    return [_single(update, update.action, "action", _UPDATES_OF_VIEWS) for update in updates]


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
    written = _single(update, update.action, "action", _UPDATES)
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


def _single(value: Any, name: str, tag: str, known: Mapping[type, str]) -> Json:
    key = known.get(type(value))
    if key is None:
        raise UnsupportedFeature(f"the REST catalog protocol has no form for {type(value).__name__}")
    held = getattr(value, fields(value)[0].name)
    if type(held) in _OWN_JSON:
        return {tag: name, key: _OWN_JSON[type(held)][0](held)}
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


def _readers(tag: str, known: Mapping[type, str]) -> dict[str, _Reader]:
    """The reader of each update or requirement, by its name, for the value that its first attribute holds."""
    return {getattr(kind, tag): _reader(kind, key) for kind, key in known.items()}


def _reader(kind: type, key: str) -> _Reader:
    of = get_type_hints(kind, include_extras=True)[fields(kind)[0].name]
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


_TABLE_UPDATES: Final = {
    **_readers("action", _UPDATES),
    "add-schema": _schema,
    "add-snapshot": _snapshot,
    "set-snapshot-ref": _snapshot_ref,
}
_TABLE_REQUIREMENTS: Final = {
    **_readers("type", _REQUIREMENTS),
    "assert-create": lambda given: AssertCreate(),
    "assert-ref-snapshot-id": _ref_requirement,
}
_VIEW_UPDATES: Final = _readers("action", _UPDATES_OF_VIEWS)
_VIEW_REQUIREMENTS: Final = _readers("type", _REQUIREMENTS_OF_VIEWS)
