"""Length limits for the data of a catalog's store, since other engines and other clients write there, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from icefield.abc import NamespaceName, TableName
from icefield.base.limits import (
    MAX_LISTED_CHARACTERS,
    MAX_LISTED_NAMES,
    MAX_LOCATION_LENGTH,
    MAX_NAME_LENGTH,
    MAX_NAMESPACE_VALUE_LENGTH,
)
from icefield.errors import InvalidMetadata


def checked_pointer(table: TableName, location: str | None) -> str | None:
    """A table's pointer. Raises ``InvalidMetadata`` for a pointer that is too long to be a location."""
    if location is not None and len(location) > MAX_LOCATION_LENGTH:
        raise InvalidMetadata(
            f"the metadata location that the catalog holds of table {'.'.join(table)} has more than "
            f"{MAX_LOCATION_LENGTH:,} characters, the most that are allowed; it begins with {location[:100]!r}",
            table=table,
        )
    return location


def checked_properties(namespace: NamespaceName, properties: Mapping[str, str]) -> dict[str, str]:
    """A namespace's properties. Raises ``InvalidMetadata`` for a name or a value that is too long."""
    for key, value in properties.items():
        for what, length, most in (
            ("a property's name", len(key), MAX_NAME_LENGTH),
            (f"property '{key[:100]}'", len(value), MAX_NAMESPACE_VALUE_LENGTH),
        ):
            if length > most:
                raise InvalidMetadata(
                    f"{what} of namespace {'.'.join(namespace)} has more than {most:,} characters, the most that are "
                    "allowed",
                    namespace=namespace,
                )
    return dict(properties)


def checked_names(listing: str, names: Iterable[str]) -> list[str]:
    """The names of a listing. ``listing`` describes the listing in the error.

    Raises ``InvalidMetadata`` if a name is too long or there are too many names; it takes no more names then.
    """
    found: list[str] = []
    characters = 0
    for name in names:
        characters += len(name)
        found.append(name)
        if len(found) > MAX_LISTED_NAMES:
            passed = f"more names than {MAX_LISTED_NAMES:,}"
        elif len(name) > MAX_NAME_LENGTH:
            passed = f"a name of more characters than {MAX_NAME_LENGTH:,}"
        elif characters > MAX_LISTED_CHARACTERS:
            passed = f"names of more characters than {MAX_LISTED_CHARACTERS:,}"
        else:
            continue
        raise InvalidMetadata(
            f"{listing} hold {passed}, the most that are listed: look what was written there and remove it, or load "
            "tables by their names"
        )
    return found
