"""Tables of Hive and Spark in a metastore, for programs that import them into Iceberg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa
from icefield.errors import InvalidArgument, NoSuchTable, StorageError

from icefield_hive.arrow_types import columns_to_arrow, of_spark
from icefield_hive.client import Metastore
from icefield_hive.connection import MetastoreRefusal
from icefield_hive.databases import with_authority
from icefield_hive.messages import GET_PARTITION_NAMES, GET_PARTITIONS_BY_NAMES
from icefield_hive.strategy import record_of
from icefield_hive.structs import Record

PARTITIONS_AT_ONCE: Final = 500
NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
"""The value of a partition whose rows have null in the column."""

_PROVIDER: Final = "spark.sql.sources.provider"
_SCHEMA: Final = "spark.sql.sources.schema"


@dataclass(frozen=True)
class HiveStorage:
    """A folder of files of a table or a partition, and the classes that Hive reads them with."""

    location: str
    input_format: str
    serde: str
    parameters: Mapping[str, str]
    """The parameters of the serde."""


@dataclass(frozen=True)
class HivePartition:
    """A partition: its values as strings, in the order of the partition columns, and its storage."""

    values: tuple[str | None, ...]
    storage: HiveStorage


@dataclass(frozen=True)
class HiveTable:
    """A table of any kind in a metastore. Columns are Arrow fields, whose metadata holds comments."""

    database: str
    name: str
    kind: str
    """``MANAGED_TABLE``, ``EXTERNAL_TABLE``, ``VIRTUAL_VIEW`` or ``MATERIALIZED_VIEW``."""
    parameters: Mapping[str, str]
    storage: HiveStorage
    bucket_columns: tuple[str, ...]
    record: Record
    """The table as the metastore sends it."""

    def __str__(self) -> str:
        return f"{self.database}.{self.name}"

    @property
    def provider(self) -> str | None:
        """The name of Spark's data source, such as ``parquet`` or ``delta``; None for a table of Hive."""
        name = self.parameters.get(_PROVIDER)
        return None if name is None or name.lower() == "hive" else name.lower()

    @property
    def is_of_spark(self) -> bool:
        """Whether Spark created the table."""
        return "spark.sql.create.version" in self.parameters or self.provider is not None

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The names of the partition columns."""
        return tuple(column["name"] for column in self.record.get("partitionKeys") or ())

    def schema(self) -> pa.Schema:
        """The columns, partition columns last. Names are in lower case, except in a schema that only Spark can read.

        A timestamp has a zone in tables that Spark created, where it is an instant. Raises ``UnsupportedFeature`` for a
        type that Iceberg lacks, ``InvalidSchema``.
        """
        columns: list[Record] = self.record["sd"].get("cols") or []
        if self.provider is not None and [each["name"] for each in columns] in ([], ["col"]):
            return of_spark(self._json_of_spark())
        return columns_to_arrow([*columns, *(self.record.get("partitionKeys") or ())], instants=self.is_of_spark)

    def _json_of_spark(self) -> str:
        if _SCHEMA in self.parameters:
            return self.parameters[_SCHEMA]
        count = self.parameters.get(f"{_SCHEMA}.numParts", "")
        parts = [self.parameters.get(f"{_SCHEMA}.part.{i}", "") for i in range(int(count))] if count.isdigit() else []
        return "".join(parts)


class HiveTables:
    """The tables of a metastore, read as they are. Close it, or use it as a context manager."""

    def __init__(self, properties: Mapping[str, str], catalog: str = "metastore") -> None:
        """``properties`` are those of a catalog of type ``hive``: ``uri``, ``ugi`` and so on."""
        self._metastore = Metastore(catalog, properties)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._metastore.close()

    def table(self, identifier: str) -> HiveTable:
        """The table ``database.table``. Raises ``NoSuchTable``, ``InvalidArgument``, ``StorageError``."""
        database, dot, name = identifier.partition(".")
        if not (database and dot and name) or "." in name:
            raise InvalidArgument(f"a table of Hive is named as database.table, not '{identifier}'")
        record = record_of(self._metastore, (database, name))
        if record is None:
            raise NoSuchTable(f"the metastore has no table {identifier}", table=identifier)
        storage, given = record["sd"], record.get("parameters") or {}
        return HiveTable(
            record["dbName"],
            record["tableName"],
            record.get("tableType") or "",
            given,
            _storage(storage),
            tuple(storage.get("bucketCols") or ()) if storage.get("numBuckets", 0) > 0 else _buckets_of_spark(given),
            record,
        )

    def partitions(self, table: HiveTable) -> Iterator[HivePartition]:
        """The partitions of a table, in the order of their names. Raises ``StorageError``."""
        names: Sequence[str] = self._metastore.ask(GET_PARTITION_NAMES, table.database, table.name, -1)
        every = sorted(names)
        for start in range(0, len(every), PARTITIONS_AT_ONCE):
            some = every[start : start + PARTITIONS_AT_ONCE]
            try:
                found: list[Record] = self._metastore.ask(GET_PARTITIONS_BY_NAMES, table.database, table.name, some)
            except MetastoreRefusal as refused:
                raise StorageError(
                    f"the Hive Metastore does not give the partitions of {table}: {refused}"
                ) from refused
            for record in sorted(found, key=lambda each: list(each["values"])):
                if len(record["values"]) != len(table.partition_columns):
                    raise StorageError(f"the metastore gives a partition of {table} with a value too few or too many")
                values = tuple(None if value == NULL_PARTITION else value for value in record["values"])
                yield HivePartition(values, _storage(record["sd"]))


def _storage(record: Record) -> HiveStorage:
    serde: Mapping[str | int, Any] = record.get("serdeInfo") or {}
    parameters: Mapping[str, str] = serde.get("parameters") or {}
    return HiveStorage(
        with_authority(record.get("location") or ""),
        record.get("inputFormat") or "",
        serde.get("serializationLib") or "",
        parameters,
    )


def _buckets_of_spark(parameters: Mapping[str, str]) -> tuple[str, ...]:
    count = parameters.get(f"{_SCHEMA}.numBucketCols", "0")
    return tuple(parameters.get(f"{_SCHEMA}.bucketCol.{i}", "") for i in range(int(count) if count.isdigit() else 0))
