"""Sets and removes table properties, and changes the location of new files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from icefield.base.secrets import has_password
from icefield.errors import InvalidArgument
from icefield.metadata import TableMetadata, TableUpdate
from icefield.metadata.properties import FORMAT_VERSION, check_key, check_properties, property_strings
from icefield.metadata.updates.table import RemoveProperties, SetLocation, SetProperties
from icefield.transaction.action import Action, ActionContext, Changes
from icefield.transaction.metadata_changes.upgrade import OldSnapshots, upgrade


class UpdateProperties(Action):
    """Set and remove properties. The change applies to any base: it touches only the keys that it names.

    ``format-version`` is no property but may be given as one: it upgrades the table and is not stored.
    """

    def __init__(self, stage: Callable[[Action], None]) -> None:
        super().__init__(stage)
        self._sets: dict[str, str] = {}
        self._removals: dict[str, None] = {}
        self._old = OldSnapshots()

    def set(self, properties: Mapping[str, Any] | None = None, **more: Any) -> Self:
        """Set properties; numbers and booleans are written as a string. Raises ``InvalidArgument`` for other values."""
        strings = check_properties(property_strings({**(properties or {}), **more}))
        for key, value in strings.items():
            self._not_both(key, self._removals)
            self._sets[key] = value
        return self

    def remove(self, *keys: str) -> Self:
        """Remove properties; a property that is not set is no error."""
        for key in keys:
            check_key(key)
            self._not_both(key, self._sets)
            self._removals[key] = None
        return self

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The differences from the base: a change without effect makes no version."""
        updates: list[TableUpdate] = []
        sets = {key: value for key, value in self._sets.items() if base.properties.get(key) != value}
        context.io.plugins.table_properties.check(sets)
        version = sets.pop(FORMAT_VERSION.name, None)
        if version is not None:
            updates += upgrade(base, int(version), context, self._old)
        removals = tuple(key for key in self._removals if key in base.properties)
        if sets:
            updates.append(SetProperties(sets))
        if removals:
            updates.append(RemoveProperties(removals))
        return Changes(tuple(updates))

    def _not_both(self, key: str, others: Mapping[str, Any]) -> None:
        if key in others:
            raise InvalidArgument(f"table property '{key}' cannot be both set and removed", property=key)


class UpdateLocation(Action):
    """Set the table's base location. Files that exist stay where they are; nothing is moved."""

    def __init__(self, stage: Callable[[Action], None], location: str) -> None:
        super().__init__(stage)
        self._location = location.rstrip("/")
        if not self._location:
            raise InvalidArgument("a table's location cannot be empty")
        if has_password(self._location):
            raise InvalidArgument(
                f"the location {self._location} holds a password, and metadata files are no place for one: write it "
                "without, and give the credentials by properties of the catalog"
            )

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The new location; no change if it is the same."""
        return Changes() if base.location == self._location else Changes((SetLocation(self._location),))
