"""A namespace as the metastore holds it: some properties are fields of the database, the others are its parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from icefield.errors import InvalidArgument

from icefield_hive.messages import PRINCIPAL_TYPES
from icefield_hive.structs import Record

LOCATION: Final = "location"
COMMENT: Final = "comment"
OWNER: Final = "hive.metastore.database.owner"
OWNER_TYPE: Final = "hive.metastore.database.owner-type"

_MOST_KEY, _MOST_VALUE = 180, 4000  # characters, in the columns of the metastore's own database
_ONE_SLASH: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):/(?!/)")


def properties_of(record: Record) -> dict[str, str]:
    """The properties of a namespace."""
    found: dict[str, str] = dict(record.get("parameters") or {})
    found[LOCATION] = location_of(record)
    if record.get("description"):
        found[COMMENT] = record["description"]
    if record.get("ownerName"):
        found[OWNER] = record["ownerName"]
        kinds = {number: name for name, number in PRINCIPAL_TYPES.items()}
        found[OWNER_TYPE] = kinds.get(record.get("ownerType", 1), "USER")
    return found


def location_of(record: Record) -> str:
    """The location of a namespace, without a trailing slash."""
    return with_authority(record.get("locationUri") or "")


def with_authority(location: str) -> str:
    """A location without a trailing slash. Hadoop's form ``file:/x`` becomes ``file:///x``."""
    return _ONE_SLASH.sub(r"\1:///", location).rstrip("/")


def database_of(name: str, properties: Mapping[str, str], owner: str | None) -> Record:
    """The database of a namespace; ``owner`` is its owner if the properties name none.

    Raises ``InvalidArgument`` for a property that is too long, or an owner type that the metastore does not have.
    """
    given = dict(properties)
    for key, value in given.items():
        if len(key) > _MOST_KEY or len(value) > _MOST_VALUE:
            raise InvalidArgument(
                f"property '{key[:_MOST_KEY]}' of namespace {name} is too long for a Hive Metastore: {_MOST_KEY} "
                f"characters for a name and {_MOST_VALUE} for a value are the most"
            )
    kind = given.pop(OWNER_TYPE, "USER").upper()
    if kind not in PRINCIPAL_TYPES:
        raise InvalidArgument(f"'{OWNER_TYPE}' is one of {', '.join(PRINCIPAL_TYPES)}, not '{kind}'")
    record: Record = {"name": name, "locationUri": given.pop(LOCATION, None), "ownerType": PRINCIPAL_TYPES[kind]}
    if comment := given.pop(COMMENT, None):
        record["description"] = comment
    if owner_name := given.pop(OWNER, owner):
        record["ownerName"] = owner_name
    return {**record, "parameters": given}
