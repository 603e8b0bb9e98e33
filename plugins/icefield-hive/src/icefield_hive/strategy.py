"""The commit of a table in the metastore: under its lock, by a change that names the old pointer."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from icefield.abc import Committed, Conflict, FileSystem, Pointer, Proposal, TableName
from icefield.errors import (
    CommitStateUnknown,
    IcefieldError,
    InvalidArgument,
    NoSuchNamespace,
    NoSuchTable,
    StorageError,
    UnsupportedFeature,
)
from icefield.toolkit import Backoff, MetastoreStrategy, OutcomeUnknown, checked_names, folder_end

from icefield_hive.client import Metastore
from icefield_hive.connection import ConnectionLost, MetastoreRefusal
from icefield_hive.locks import HiveLock, Overtaken, held
from icefield_hive.messages import (
    ALTER_TABLE,
    CREATE_TABLE,
    DROP_TABLE,
    GET_ALL_DATABASES,
    GET_ALL_TABLES,
    GET_DATABASE,
    GET_TABLE,
    GET_TABLES,
    GET_TABLES_BY_FILTER,
)
from icefield_hive.structs import Record
from icefield_hive.table_record import METADATA_LOCATION, Description, is_iceberg, pointer_in

TABLES_AT_ONCE: Final = 200
_ALL: Final = -1
_FILTER: Final = f'hive_filter_field_params__{METADATA_LOCATION} like ".*{{}}.*"'
_OTHER_CHARACTERS: Final = re.compile("[^A-Za-z0-9/=_-]+")
"""Characters that may have a meaning in a filter."""
# The number of looks, after a lost reply, for a change that a slow metastore may still make.
_LOOKS: Final = 5
_LOOK_AGAIN: Final = Backoff(0.1, 1.0, jitter=0)
# Otherwise the metastore lists the table's files and overwrites the statistics with its own counts.
KEEP_STATISTICS: Final = {"DO_NOT_UPDATE_STATS": "true"}


class HiveStrategy(MetastoreStrategy):
    """Check-and-put of the table's parameter ``metadata_location``, under an exclusive lock on the table."""

    def __init__(
        self,
        table: TableName,
        location: str,
        file_system: FileSystem,
        properties: Mapping[str, str],
        metastore: Metastore,
    ) -> None:
        super().__init__(table, location, file_system, properties)
        self._metastore = metastore
        self._database, self._name = kept_name(table)

    def read_pointer(self) -> str | None:
        return pointer_in(record_of(self._metastore, self.table), self.table, self._metastore.catalog)

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        self._described(proposal)  # raises before a file is written, if the metastore cannot hold the table
        return super().commit(base, proposal)

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        def overtaken() -> bool:
            return self.read_pointer() != old

        try:
            with held(self._metastore, [(self._database, self._name)], overtaken) as lock:
                if old is None:
                    return self._create(lock, new, proposal)
                return self._update(lock, old, new, proposal)
        except Overtaken:
            return False

    def tables_in(self, folder: str) -> Iterator[tuple[str, str]]:
        """The tables of all databases that may have their metadata in a folder with the same end (``folder_end``)."""
        catalog = self._metastore.catalog
        databases = checked_names(f"the namespaces of catalog '{catalog}'", self._metastore.names(GET_ALL_DATABASES))
        for database in databases:
            found = checked_names(f"the tables of {database} in catalog '{catalog}'", self._names(database, folder))
            names = [name for name in found if (database, name) != (self._database, self._name)]
            for start in range(0, len(names), TABLES_AT_ONCE):
                some = names[start : start + TABLES_AT_ONCE]
                try:
                    answer: Record = self._metastore.ask(GET_TABLES, {"dbName": database, "tblNames": some})
                except MetastoreRefusal:  # the database was dropped meanwhile
                    break
                for record in filter(is_iceberg, answer["tables"]):
                    yield f"{database}.{record['tableName']}", record["parameters"][METADATA_LOCATION]

    def _names(self, database: str, folder: str) -> Iterable[str]:
        """The tables of a database that may have their metadata below a folder."""
        pattern = _OTHER_CHARACTERS.sub(".*", folder_end(folder))
        try:
            return self._metastore.names(GET_TABLES_BY_FILTER, database, _FILTER.format(pattern), _ALL)
        except StorageError as error:
            if not isinstance(error.__cause__, MetastoreRefusal):
                raise
            return self._metastore.names(GET_ALL_TABLES, database)  # the service does not support the filter

    def drop(self) -> None:
        with held(self._metastore, [(self._database, self._name)]):
            if self.read_pointer() is None:
                raise self._missing()
            try:
                self._metastore.call(DROP_TABLE, self._database, self._name, False)
            except MetastoreRefusal as refused:
                raise self._missing() from refused
            except ConnectionLost as lost:
                if not lost.sent:
                    raise StorageError(f"catalog '{self._metastore.catalog}': {lost}", retryable=True) from lost
                raise CommitStateUnknown(
                    f"the reply to dropping {'.'.join(self.table)} was lost: {lost}; look whether the table is there",
                    table=self.table,
                ) from lost

    def _missing(self) -> NoSuchTable:
        return NoSuchTable(f"no table {'.'.join(self.table)} in catalog '{self._metastore.catalog}'", table=self.table)

    def _described(self, proposal: Proposal) -> Description:
        return Description.of(proposal.metadata, self._metastore.settings)

    def _create(self, lock: HiveLock, new: str, proposal: Proposal) -> bool:
        if record_of(self._metastore, self.table) is not None:
            return False
        record = self._described(proposal).new_record(self._database, self._name, new)
        lock.ensure_held()
        try:
            self._metastore.call(CREATE_TABLE, record, {"properties": KEEP_STATISTICS})
        except (MetastoreRefusal, ConnectionLost) as error:
            return self._look(None, new, error)
        return True

    def _update(self, lock: HiveLock, old: str, new: str, proposal: Proposal) -> bool:
        record = record_of(self._metastore, self.table)
        if record is None or pointer_in(record, self.table, self._metastore.catalog) != old:
            return False
        before = {} if proposal.base is None else proposal.base.properties
        removed = before.keys() - proposal.metadata.properties.keys()
        changed = self._described(proposal).changed_record(record, new, removed)
        expected = {"expected_parameter_key": METADATA_LOCATION, "expected_parameter_value": old}
        lock.ensure_held()
        try:
            self._alter(changed, {**KEEP_STATISTICS, **expected})
        except (MetastoreRefusal, ConnectionLost) as error:
            return self._look(old, new, error)
        return True

    def _alter(self, record: Record, context: Mapping[str, str]) -> None:
        self._metastore.call(ALTER_TABLE, self._database, self._name, record, {"properties": dict(context)})

    def _look(self, old: str | None, new: str, error: MetastoreRefusal | ConnectionLost) -> bool:
        """Find out the outcome of a change that failed. The lock is still held, so nobody else changes the table.

        A refusal ends the change, but the metastore itself may have tried twice, and succeeded the first time. After a
        lost reply the change may still happen.
        """
        if isinstance(error, ConnectionLost) and not error.sent:
            raise StorageError(f"catalog '{self._metastore.catalog}': {error}", retryable=True) from error
        deadline = time.monotonic() + self._metastore.settings.seconds
        for wait in (0.0, *_LOOK_AGAIN.waits(_LOOKS)):
            time.sleep(wait)
            try:
                current = self.read_pointer()
            except IcefieldError:
                if time.monotonic() > deadline:
                    break
                continue
            if current == new:
                return True
            if current is None and old is not None and isinstance(error, MetastoreRefusal):
                return False  # dropped
            if current != old:
                break  # another writer's version, perhaps based on this one: its metadata log tells
            if isinstance(error, MetastoreRefusal):
                raise self._refusal(error) from error
        raise OutcomeUnknown(str(error)) from error

    def _refusal(self, refused: MetastoreRefusal) -> IcefieldError:
        """The error for a refused change. The table is as it was before."""
        name, catalog = ".".join(self.table), self._metastore.catalog
        if refused.kind in ("InvalidObject", "NoSuchObject"):
            try:
                self._metastore.ask(GET_DATABASE, self._database)
            except MetastoreRefusal:
                return NoSuchNamespace(
                    f"no namespace {self.table[0]} in catalog '{catalog}'; create_namespace makes it",
                    namespace=self.table[:-1],
                )
            return InvalidArgument(f"the Hive Metastore of catalog '{catalog}' refuses {name}: {refused.said}")
        if "types incompatible" in refused.said:
            return UnsupportedFeature(
                f"the Hive Metastore of catalog '{catalog}' refuses the changed columns of {name}; Iceberg tables need "
                "its setting hive.metastore.disallow.incompatible.col.type.changes to be false: " + refused.said
            )
        return StorageError(f"the Hive Metastore of catalog '{catalog}' could not change {name}: {refused.said}")


def kept_name(name: tuple[str, ...]) -> tuple[str, ...]:
    """The name of a database or table as the metastore keeps it: in lower case."""
    return tuple(level.lower() for level in name)


def record_of(metastore: Metastore, table: TableName) -> Record | None:
    """The metastore's record of a table of any kind; None when there is none."""
    database, name = kept_name(table)
    try:
        answer: Record = metastore.ask(GET_TABLE, {"dbName": database, "tblName": name})
    except MetastoreRefusal:
        return None
    record: Record = answer["table"]
    return record
