"""A namespace as Glue holds it: its location and description are fields of the database, the others its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from icefield_glue.records import parameters_of
from icefield_glue.service import Record

LOCATION: Final = "location"
COMMENT: Final = "comment"
# The fields of a database that a change of it must repeat, or Glue forgets them.
_KEPT: Final = ("CreateTableDefaultPermissions", "TargetDatabase", "FederatedDatabase")


def properties_of(record: Record) -> dict[str, str]:
    """The properties of a namespace, under the names of Iceberg's Java library."""
    found = {key: str(value) for key, value in parameters_of(record).items()}
    if record.get("LocationUri"):
        found[LOCATION] = str(record["LocationUri"])
    if record.get("Description"):
        found[COMMENT] = str(record["Description"])
    return found


def database_of(name: str, properties: Mapping[str, str], before: Record | None = None) -> dict[str, Any]:
    """The input that creates or changes a database."""
    given = dict(properties)
    made: dict[str, Any] = {key: before[key] for key in _KEPT if before.get(key)} if before else {}
    made["Name"] = name
    for key, field in ((LOCATION, "LocationUri"), (COMMENT, "Description")):
        if (value := given.pop(key, None)) is not None:
            made[field] = value
    return {**made, "Parameters": given}
