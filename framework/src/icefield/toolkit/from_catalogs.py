"""Length limits for the data of a catalog's store, since other engines and other clients write there, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from icefield.abc import NamespaceName, TableName
from icefield.base.limits import (
    MAX_LISTED_CHARACTERS,
    MAX_LISTED_NAMES,
    MAX_LOCATION_LENGTH,
    MAX_NAME_LENGTH,
    MAX_NAMESPACE_VALUE_LENGTH,
)
from icefield.errors import InvalidMetadata

_AT_ONCE: Final = 100


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
    """The names of a listing, taken a hundred at a time. ``listing`` describes the listing in the error.

    Raises ``InvalidMetadata`` if a name is too long or there are too many names; it takes no more names then.
    """
    found: list[str] = []
    left = MAX_LISTED_CHARACTERS
    source = iter(names)
    while some := list(islice(source, _AT_ONCE)):
        lengths = list(map(len, some))
        characters = sum(lengths)
        if characters > left or max(lengths) > MAX_NAME_LENGTH or len(found) + len(some) > MAX_LISTED_NAMES:
            return _checked_one_by_one(listing, [*found, *some])
        left -= characters
        found += some
    return found


def _checked_one_by_one(listing: str, names: Iterable[str]) -> list[str]:
    """Check names one by one after a limit was passed. Raises ``InvalidMetadata`` that names the limit."""
    found: list[str] = []
    left = MAX_LISTED_CHARACTERS
    for name in names:
        left -= len(name)
        if left >= 0 and len(name) <= MAX_NAME_LENGTH and len(found) < MAX_LISTED_NAMES:
            found.append(name)
            continue
        for what, passed, most in (
            ("more names than", len(found) >= MAX_LISTED_NAMES, MAX_LISTED_NAMES),
            ("a name of more characters than", len(name) > MAX_NAME_LENGTH, MAX_NAME_LENGTH),
            ("names of more characters than", left < 0, MAX_LISTED_CHARACTERS),
        ):
            if passed:
                raise InvalidMetadata(
                    f"{listing} hold {what} {most:,}, the most that are listed: look what was written there and remove "
                    "it, or load tables by their names"
                )
    return found
