"""A table as Glue holds it: made from Iceberg's metadata as Iceberg's Java library and PyIceberg make it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from icefield.abc import TableName
from icefield.errors import NotSupportedByCatalog, UnsafeCommit
from icefield.metadata import TableMetadata

from icefield_glue.columns import columns_of
from icefield_glue.service import Record

METADATA_LOCATION: Final = "metadata_location"
PREVIOUS_LOCATION: Final = "previous_metadata_location"
TABLE_TYPE: Final = "table_type"
RENAME: Final = "icefield.rename"
"""A parameter of a table that a rename made or has replaced: the unique id of the rename."""
RENAMED_TO: Final = "icefield.renamed-to"

_MOST_DESCRIPTION: Final = 2_048
# The fields of a table that a change of it must repeat, or Glue forgets them.
_KEPT: Final = (
    "Description",
    "LastAccessTime",
    "LastAnalyzedTime",
    "Owner",
    "PartitionKeys",
    "Retention",
    "StorageDescriptor",
    "TableType",
    "TargetTable",
    "ViewExpandedText",
    "ViewOriginalText",
)


def parameters_of(record: Record) -> dict[str, str]:
    """The parameters of a table or a database."""
    found = record.get("Parameters")
    return dict(found) if isinstance(found, dict) else {}


def is_iceberg(record: Record) -> bool:
    """Whether a table of Glue is an Iceberg table."""
    parameters = parameters_of(record)
    return str(parameters.get(TABLE_TYPE, "")).upper() == "ICEBERG" and METADATA_LOCATION in parameters


def pointer_in(record: Record | None, table: TableName, catalog: str) -> str | None:
    """The metadata location of a table; None if there is none.

    Raises ``NotSupportedByCatalog`` for a view or a table of another format.
    """
    if record is None or RENAMED_TO in (parameters := parameters_of(record)):
        return None
    if not is_iceberg(record):
        kind = "a view" if "VIEW" in str(record.get("TableType") or "") else "a table of another format"
        raise NotSupportedByCatalog(
            f"{'.'.join(table)} of catalog '{catalog}' is {kind} and not an Iceberg table; Icefield reads and writes "
            "only Iceberg tables in Glue",
            table=table,
        )
    return str(parameters[METADATA_LOCATION])


def version_of(record: Record, catalog: str) -> str:
    """The version of a table, which a change of it names. Raises ``UnsafeCommit`` if the service gives none."""
    found = record.get("VersionId")
    if not isinstance(found, str) or not found:
        raise UnsafeCommit(
            f"the service of catalog '{catalog}' gives tables no VersionId, so that commits could overwrite one "
            "another; look at glue.endpoint"
        )
    return found


def input_of(record: Record, name: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    """The input that makes a table like another, under a name and with other parameters."""
    kept = {key: record[key] for key in _KEPT if record.get(key) is not None}
    return {**kept, "Name": name, "Parameters": dict(parameters)}


def new_input(name: str, location: str, metadata: TableMetadata) -> dict[str, Any]:
    """The input of a new table."""
    made = {
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {TABLE_TYPE: "ICEBERG", METADATA_LOCATION: location},
        "StorageDescriptor": {"Columns": columns_of(metadata, {}), "Location": metadata.location},
    }
    return _described(made, metadata)


def changed_input(record: Record, location: str, metadata: TableMetadata, removed: Iterable[str]) -> dict[str, Any]:
    """The input of a table's next version. Parameters of others stay, except for ``removed`` table properties."""
    before = parameters_of(record)
    gone = {RENAME, *removed}
    # PyIceberg writes the table's properties as parameters; those that are there follow the table.
    parameters = {key: metadata.properties.get(key, value) for key, value in before.items() if key not in gone}
    parameters |= {TABLE_TYPE: "ICEBERG", METADATA_LOCATION: location, PREVIOUS_LOCATION: before[METADATA_LOCATION]}
    made = input_of(record, record["Name"], parameters)
    storage = made.get("StorageDescriptor") or {}
    comments = {
        str(column.get("Name")): str(column["Comment"])
        for column in storage.get("Columns") or ()
        if column.get("Comment")
    }
    made["TableType"] = "EXTERNAL_TABLE"
    made["StorageDescriptor"] = {**storage, "Columns": columns_of(metadata, comments), "Location": metadata.location}
    return _described(made, metadata)


def _described(made: dict[str, Any], metadata: TableMetadata) -> dict[str, Any]:
    """Add the table's comment as the description, where Athena and the console show it."""
    if comment := metadata.properties.get("comment"):
        made["Description"] = comment[:_MOST_DESCRIPTION]
    return made
