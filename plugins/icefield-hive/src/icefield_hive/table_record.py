"""A table as the metastore holds it: made from Iceberg's metadata as Iceberg's Java library makes it."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from icefield.abc import TableName
from icefield.errors import NotSupportedByCatalog
from icefield.metadata import TableMetadata
from icefield.partitioning import sort_order_to_json, spec_to_json
from icefield.schema import schema_to_json

from icefield_hive.columns import columns_of
from icefield_hive.properties import HIVE_ENABLED
from icefield_hive.settings import HiveSettings
from icefield_hive.structs import Record

_log = logging.getLogger(__name__)

METADATA_LOCATION: Final = "metadata_location"
PREVIOUS_LOCATION: Final = "previous_metadata_location"
TABLE_TYPE: Final = "table_type"
OWNER: Final = "hive.metastore.table.owner"
_STORAGE_HANDLER: Final = "storage_handler"

# Java's library stores this hash of the metadata of an encrypted table. Without it, Java compares the master key and
# the length of keys with the parameters.
_METADATA_HASH: Final = "metadata_hash"

_FOREVER: Final = 2**31 - 1
_MOST_KEY: Final = 256

# Iceberg's name of a property that Hive knows under another.
_TRANSLATED: Final = {"gc.enabled": "external.table.purge"}
_STATISTICS: Final = {
    "numFiles": "total-data-files",
    "numRows": "total-records",
    "totalSize": "total-files-size",
}
_DESCRIPTIVE: Final = (
    "current-schema",
    "current-snapshot-id",
    "current-snapshot-summary",
    "current-snapshot-timestamp-ms",
    "default-partition-spec",
    "default-sort-order",
    "snapshot-count",
)
_PLAIN_FORMATS: Final = (
    "org.apache.hadoop.mapred.FileInputFormat",
    "org.apache.hadoop.mapred.FileOutputFormat",
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
)
_HIVE_FORMATS: Final = (
    "org.apache.iceberg.mr.hive.HiveIcebergInputFormat",
    "org.apache.iceberg.mr.hive.HiveIcebergOutputFormat",
    "org.apache.iceberg.mr.hive.HiveIcebergSerDe",
)
_HANDLER: Final = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"


def is_iceberg(record: Record) -> bool:
    """Whether a table of the metastore is an Iceberg table."""
    parameters = record.get("parameters") or {}
    return parameters.get(TABLE_TYPE, "").upper() == "ICEBERG" and METADATA_LOCATION in parameters


def pointer_in(record: Record | None, table: TableName, catalog: str) -> str | None:
    """The metadata location of a table. Raises ``NotSupportedByCatalog`` for a view or a table of Hive."""
    if record is None:
        return None
    if not is_iceberg(record):
        kind = "a view" if "VIEW" in (record.get("tableType") or "") else "a table of Hive"
        raise NotSupportedByCatalog(
            f"{'.'.join(table)} of catalog '{catalog}' is {kind} and not an Iceberg table", table=table
        )
    location: str = record["parameters"][METADATA_LOCATION]
    return location


@dataclass(frozen=True)
class Description:
    """The metastore's description of one version of a table, except for its metadata location."""

    metadata: TableMetadata
    settings: HiveSettings
    columns: list[Record]

    @classmethod
    def of(cls, metadata: TableMetadata, settings: HiveSettings) -> Description:
        """Describe a version. Raises ``UnsupportedFeature`` if the metastore cannot hold its columns."""
        return cls(metadata, settings, columns_of(metadata.schema(), hive2_compatible=settings.hive2_compatible))

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.properties

    def new_record(self, database: str, name: str, location: str) -> Record:
        """The record of a new table."""
        now = int(time.time())
        return {
            "tableName": name,
            "dbName": database,
            "owner": self.properties.get(OWNER) or self.settings.user,
            "createTime": now,
            "lastAccessTime": now,
            "retention": _FOREVER,
            "sd": self._storage({}),
            "partitionKeys": [],
            "parameters": self._parameters({"EXTERNAL": "TRUE"}, None, location),
            "tableType": "EXTERNAL_TABLE",
        }

    def changed_record(self, record: Record, location: str, removed: Iterable[str]) -> Record:
        """A table's record, brought to this version. Entries of others stay, except for ``removed`` properties."""
        gone = {_TRANSLATED.get(key, key) for key in removed}
        before: dict[str, str] = record["parameters"]
        kept = {key: value for key, value in before.items() if key not in gone}
        owner = self.properties.get(OWNER) or record.get("owner")
        return {
            **record,
            "owner": owner,
            "sd": self._storage(record.get("sd") or {}),
            "parameters": self._parameters(kept, before[METADATA_LOCATION], location),
        }

    def _storage(self, before: Record) -> Record:
        source, sink, serde = _HIVE_FORMATS if self._for_hive else _PLAIN_FORMATS
        return {
            **before,
            "cols": self.columns,
            "location": self.metadata.location,
            "inputFormat": source,
            "outputFormat": sink,
            "serdeInfo": {"serializationLib": serde, "parameters": {}},
        }

    @property
    def _for_hive(self) -> bool:
        """Whether Hive itself is to read the table: by the table's own property, else by the catalog's property."""
        said = self.properties.get(HIVE_ENABLED.name)
        return self.settings.hive_engine if said is None else said.lower() == "true"

    def _parameters(self, before: Mapping[str, str], previous: str | None, location: str) -> dict[str, str]:
        left_out = {*_DESCRIPTIVE, _STORAGE_HANDLER, _METADATA_HASH}
        found = {key: value for key, value in before.items() if key not in left_out}
        for key, value in self.properties.items():
            if key != OWNER:
                self._put(found, _TRANSLATED.get(key, key), value)
        if self._for_hive:
            found[_STORAGE_HANDLER] = _HANDLER
        if self.metadata.table_uuid is not None:
            found["uuid"] = str(self.metadata.table_uuid)
        found |= {TABLE_TYPE: "ICEBERG", METADATA_LOCATION: location}
        if previous is not None:
            found[PREVIOUS_LOCATION] = previous
        self._add_state(found)
        return found

    def _add_state(self, found: dict[str, str]) -> None:
        """Add statistics, and the descriptive parameters as far as they fit."""
        metadata, snapshot = self.metadata, self.metadata.current_snapshot()
        if snapshot is not None:
            summary = snapshot.summary
            found |= {name: summary[key] for name, key in _STATISTICS.items() if key in summary}
        if not self.settings.property_size:
            return
        found["snapshot-count"] = str(len(metadata.snapshots))
        if snapshot is not None:
            found["current-snapshot-id"] = str(snapshot.snapshot_id)
            found["current-snapshot-timestamp-ms"] = str(snapshot.timestamp_ms)
            self._put(found, "current-snapshot-summary", _json(dict(snapshot.summary)))
        self._put(found, "current-schema", _json(schema_to_json(metadata.schema())))
        if not metadata.spec().is_unpartitioned:
            self._put(found, "default-partition-spec", _json(spec_to_json(metadata.spec())))
        if metadata.sort_order().fields:
            self._put(found, "default-sort-order", _json(sort_order_to_json(metadata.sort_order())))

    def _put(self, found: dict[str, str], key: str, value: str) -> None:
        """Set a parameter if the metastore's database can hold it; the metadata file has it in any case."""
        # A size of 0 leaves out the descriptive parameters only, and keeps the table's own properties.
        limit = self.settings.property_size or 32_672
        if len(key) <= _MOST_KEY and len(value) <= limit:
            found[key] = value
        else:
            found.pop(key, None)
            _log.info("'%s' is too long for a parameter of the Hive Metastore", key[:_MOST_KEY])


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
