"""Names of namespaces and tables: as a string (``"db.events"``) or as levels (``("db", "events")``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from icefield.abc import NamespaceName, TableName
from icefield.base.secrets import has_password
from icefield.errors import InvalidArgument, InvalidMetadata
from icefield.metadata.properties import property_strings
from icefield.toolkit.from_catalogs import checked_properties

_MAX_LEVELS: Final = 64
_MAX_LENGTH: Final = 1_024


@dataclass(frozen=True, slots=True)
class PropertiesUpdateSummary:
    """The keys that an update of namespace properties changed; ``missing`` are keys to remove that did not exist."""

    removed: list[str]
    updated: list[str]
    missing: list[str]


def table_name(identifier: str | Iterable[str]) -> TableName:
    """The levels of a table's name. Raises ``InvalidArgument`` for one without a namespace."""
    levels = _levels(identifier, "table")
    if len(levels) < 2:
        raise InvalidArgument(f"'{levels[0]}' names no namespace: write 'namespace.{levels[0]}'", identifier=levels)
    return levels


def namespace_name(identifier: str | Iterable[str]) -> NamespaceName:
    """The levels of a namespace's name. Raises ``InvalidArgument`` for a name that no catalog could hold."""
    return _levels(identifier, "namespace")


def _levels(identifier: str | Iterable[str], what: str) -> tuple[str, ...]:
    if isinstance(identifier, bytes) or not isinstance(identifier, Iterable):
        raise InvalidArgument(f"a {what}'s name is a string, or a tuple of strings, not {identifier!r}")
    levels = tuple(identifier.split(".") if isinstance(identifier, str) else identifier)
    if not levels or len(levels) > _MAX_LEVELS:
        raise InvalidArgument(f"a {what}'s name has 1 to {_MAX_LEVELS} levels, not {len(levels)}")
    for level in levels:
        if not isinstance(level, str):
            raise InvalidArgument(f"a {what}'s name is a string, or a tuple of strings, not {identifier!r}")
        if not level.strip() or level in (".", ".."):
            raise InvalidArgument(f"{identifier!r} is no {what}'s name: it has a level that is empty or only dots")
        if len(level) > _MAX_LENGTH or not level.isprintable():
            raise InvalidArgument(f"{identifier!r:.200} is no {what}'s name: a level is too long or not printable")
    return levels


def namespace_strings(namespace: NamespaceName, properties: Mapping[str, Any] | None) -> dict[str, str]:
    """Checked properties of a namespace: valid strings, and no passwords, since every user of the catalog sees them."""
    try:
        strings = checked_properties(namespace, property_strings(properties or {}))
    except InvalidMetadata as error:
        raise InvalidArgument(error.message) from error
    for key, value in strings.items():
        if has_password(value):
            raise InvalidArgument(
                f"namespace property '{key}' holds a password in its URI, and everybody who uses the catalog sees it: "
                "remove it there, and give the credentials by properties of the catalog"
            )
    return strings
