"""The client that dlt loads packages with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from dlt.common.destination import DestinationCapabilitiesContext
from dlt.common.destination.client import (
    FollowupJobRequest,
    JobClientBase,
    LoadJob,
    PreparedTableSchema,
    StateInfo,
    StorageSchemaInfo,
    WithStateSync,
)
from dlt.common.destination.utils import resolve_merge_strategy
from dlt.common.schema import Schema, TSchemaTables
from dlt.common.schema.utils import get_nested_tables, get_root_table, has_table_seen_data
from dlt.common.storages import FileStorage, LoadJobInfo, ParsedLoadJobFileName
from dlt.destinations.job_impl import FinalizedLoadJobWithFollowupJobs, ReferenceFollowupJobRequest
from dlt.destinations.sql_client import SqlClientBase, WithSqlClient
from dlt.destinations.utils import verify_schema_merge_disposition
from icefield import Table
from icefield.errors import InvalidArgument, NotSupportedByCatalog

from icefield_tools.dlt.configuration import IcefieldClientConfiguration
from icefield_tools.dlt.errors import as_dlt_errors
from icefield_tools.dlt.jobs import ChainLoadJob
from icefield_tools.dlt.merging import ChainTable, Change, Merging, written
from icefield_tools.dlt.schemas import create, extend
from icefield_tools.dlt.system_tables import SystemTables
from icefield_tools.marks import is_marked


class IcefieldClient(JobClientBase, WithStateSync, WithSqlClient):
    """Loads packages of dlt into the tables of a namespace, and reads the state of pipelines from it."""

    def __init__(
        self, schema: Schema, config: IcefieldClientConfiguration, capabilities: DestinationCapabilitiesContext
    ) -> None:
        super().__init__(schema, config, capabilities)
        self.config: IcefieldClientConfiguration = config
        self.catalog = config.load_catalog()
        self.dataset_name: str = config.normalize_dataset_name(schema)
        self._sql_client: SqlClientBase[Any] | None = None

    @property
    def namespace(self) -> tuple[str, ...]:
        """The namespace that holds the dataset."""
        return tuple(self.dataset_name.split("."))

    def table(self, name: str) -> Table:
        """A table of the dataset, as it is now."""
        return self.catalog.load_table((*self.namespace, name))

    @property
    def system_tables(self) -> SystemTables:
        """The tables of the dataset that dlt keeps about its loads."""
        return SystemTables(self.catalog, self.namespace, self.schema, self.capabilities)

    # The dataset and its tables.

    def initialize_storage(self, truncate_tables: Iterable[str] | None = None) -> None:
        with as_dlt_errors():
            self.catalog.create_namespace_if_not_exists(self.namespace)
            for name in truncate_tables or ():
                if self.catalog.table_exists((*self.namespace, name)):
                    self.table(name).delete()

    def is_storage_initialized(self) -> bool:
        with as_dlt_errors():
            return self.catalog.namespace_exists(self.namespace)

    def drop_storage(self) -> None:
        with as_dlt_errors():
            for name in self.catalog.list_tables(self.namespace):
                self.catalog.drop_table(name, purge=True)
            self.catalog.drop_namespace(self.namespace)

    def drop_tables(self, *tables: str, delete_schema: bool = True) -> None:
        """Drop tables with their files, and forget the versions of the schema."""
        with as_dlt_errors():
            for name in tables:
                if self.catalog.table_exists((*self.namespace, name)):
                    self.catalog.drop_table((*self.namespace, name), purge=True)
            if delete_schema:
                self.system_tables.delete_versions()

    def verify_schema(
        self, only_tables: Iterable[str] | None = None, new_jobs: Iterable[ParsedLoadJobFileName] | None = None
    ) -> list[PreparedTableSchema]:
        loaded: list[PreparedTableSchema] = super().verify_schema(only_tables, new_jobs)
        for error in verify_schema_merge_disposition(self.schema, loaded, self.capabilities, warnings=True):
            raise error
        for table in loaded:
            for option in ("source_filter", "destination_scope", "skip_unchanged_rows"):
                if table.get("x-merge-" + option.replace("_", "-")):
                    with as_dlt_errors():
                        message = f"the destination icefield has no option {option!r} of merges"
                        raise InvalidArgument(f"table {table['name']!r}: {message}")
        return loaded

    def update_stored_schema(
        self,
        only_tables: Iterable[str] | None = None,
        expected_update: TSchemaTables | None = None,
        force: bool = False,
    ) -> TSchemaTables | None:
        super().update_stored_schema(only_tables, expected_update, force)
        with as_dlt_errors():
            stored = self.get_stored_schema_by_hash(self.schema.stored_version_hash)
            if stored is not None and not force:
                return {}
            applied: TSchemaTables = {}
            for name in only_tables or self.schema.tables:
                if new := self._update_table(name):
                    applied[name] = new
            if stored is None:
                self.system_tables.add_version()
            return applied

    def _update_table(self, name: str) -> PreparedTableSchema | None:
        """Bring a table up to the schema; its new columns, if there are any."""
        wanted = self.prepare_load_table(name)
        exists = self.catalog.table_exists((*self.namespace, name))
        table = self.table(name) if exists else None
        known = {} if table is None else {column: {"name": column} for column in table.columns}
        new = self.schema.get_new_table_columns(name, known, self.capabilities.generates_case_sensitive_identifiers())
        if table is not None:
            extend(table, new, wanted["columns"], self.capabilities)
        elif new:
            properties = self.config.table_properties or {}
            create(self.catalog, (*self.namespace, name), wanted, self.capabilities, properties)
        if not new:
            return None
        wanted["columns"] = {column["name"]: column for column in new}
        return wanted

    # Loads.

    def should_truncate_table_before_load(self, table_name: str) -> bool:
        """Never: the rows of a table are replaced by the commit that adds the new ones."""
        return False

    def prepare_load_table(self, table_name: str) -> PreparedTableSchema:
        found: PreparedTableSchema = super().prepare_load_table(table_name)
        if found["write_disposition"] == "merge":
            found["x-merge-strategy"] = resolve_merge_strategy(self.schema.tables, found, self.capabilities)
        return found

    def create_load_job(
        self, table: PreparedTableSchema, file_path: str, load_id: str, restore: bool = False
    ) -> LoadJob:
        """The job of a chain of tables; a file by itself is loaded with its chain."""
        is_chain = ReferenceFollowupJobRequest.is_reference_job(file_path)
        return ChainLoadJob(file_path) if is_chain else FinalizedLoadJobWithFollowupJobs(file_path)

    def create_table_chain_completed_followup_jobs(
        self,
        table_chain: Sequence[PreparedTableSchema],
        completed_table_chain_jobs: Sequence[LoadJobInfo] | None = None,
    ) -> list[FollowupJobRequest]:
        paths = sorted(job.file_path for job in completed_table_chain_jobs or ())
        if not paths:
            return []
        return [ReferenceFollowupJobRequest(FileStorage.get_file_name_from_file_path(paths[0]), paths)]

    def load_chain(self, table_name: str, files: Mapping[str, list[str]], marks: dict[str, str]) -> None:
        """Load the files of a table and of the tables that belong to it, each table in the columns that it has."""
        root = get_root_table(self.schema.tables, table_name)["name"]
        names = [table["name"] for table in get_nested_tables(self.schema.tables, root) if has_table_seen_data(table)]
        hints = {name: self.prepare_load_table(name) for name in names}
        disposition = hints[root]["write_disposition"]
        used = [name for name in names if disposition != "append" or name in files]
        tables = {name: self.table(name) for name in used}
        chain = [self._loaded(hints[name], tables[name], files.get(name, ())) for name in used]
        if disposition == "merge":
            changes = Merging(chain, marks, self._matching).changes(hints[root]["x-merge-strategy"])
        else:
            changes = {each.name: written(each, marks, replace=disposition == "replace") for each in chain}
        load = {name: marks[name] for name in ("dlt.load-id", "dlt.schema")}
        self._commit({name: change for name, change in changes.items() if not is_marked(tables[name], load)})

    @staticmethod
    def _loaded(hints: PreparedTableSchema, table: Table, paths: Sequence[str]) -> ChainTable:
        columns = table.schema().to_arrow()
        if not paths:
            return ChainTable(hints, None, columns)
        files = pads.dataset(list(paths), columns, format="parquet")
        for fragment in files.get_fragments():
            if unknown := set(fragment.physical_schema.names) - set(columns.names):
                raise InvalidArgument(f"table {hints['name']!r} has no column {sorted(unknown)[0]!r}")
        return ChainTable(hints, files, columns)

    def _matching(self, name: str, keys: pa.Table, row_key: str) -> pa.Array:
        """The row keys of the rows of a table that have one of the keys."""
        first = keys.column_names[0]
        bounds = pc.min_max(keys[first]).as_py()
        if bounds["min"] is None:
            return pa.array([], self.table(name).schema().to_arrow().field(row_key).type)
        between = (pc.field(first) >= bounds["min"]) & (pc.field(first) <= bounds["max"])
        columns = dict.fromkeys([*keys.column_names, row_key])
        rows = self.table(name).scan(between).select(*columns).to_arrow()
        return rows.join(keys, keys.column_names, join_type="left semi")[row_key].combine_chunks()

    def _commit(self, changes: Mapping[str, Change]) -> None:
        """Commit the changes of several tables in one step.

        Where the catalog has no such step, the root comes last: as long as it is unchanged, a repeated load finds the
        rows that it is to replace.
        """
        with self.catalog.transaction() as transaction:
            parts = []
            with suppress(NotSupportedByCatalog):
                parts = [(transaction.table((*self.namespace, name)), change) for name, change in changes.items()]
            for part, change in parts:
                change(part)
        if not parts:
            for name, change in reversed(list(changes.items())):
                with self.table(name).transaction() as alone:
                    change(alone)

    def complete_load(self, load_id: str) -> None:
        with as_dlt_errors():
            self.system_tables.add_load(load_id)

    # The state of pipelines.

    def get_stored_schema(self, schema_name: str | None = None) -> StorageSchemaInfo | None:
        with as_dlt_errors():
            return self.system_tables.version("schema_name", schema_name)

    def get_stored_schema_by_hash(self, version_hash: str) -> StorageSchemaInfo | None:
        with as_dlt_errors():
            return self.system_tables.version("version_hash", version_hash)

    def get_stored_state(self, pipeline_name: str) -> StateInfo | None:
        with as_dlt_errors():
            return self.system_tables.state(pipeline_name)

    # Queries.

    @property
    def sql_client_class(self) -> type[SqlClientBase[Any]]:
        from icefield_tools.dlt.sql_client import IcefieldSqlClient  # noqa: PLC0415  # DuckDB is optional

        return IcefieldSqlClient

    @property
    def sql_client(self) -> SqlClientBase[Any]:
        """DuckDB, with the tables of the dataset."""
        if self._sql_client is None:
            self._sql_client = self.sql_client_class(self)
        return self._sql_client

    @sql_client.setter
    def sql_client(self, client: SqlClientBase[Any]) -> None:
        self._sql_client = client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        pass
