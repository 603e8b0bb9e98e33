"""The tables that dlt keeps about its loads: versions of schemas, completed loads, states of pipelines."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from dlt.common import json
from dlt.common.destination import DestinationCapabilitiesContext
from dlt.common.destination.client import StateInfo, StorageSchemaInfo
from dlt.common.schema import Schema
from dlt.common.schema.typing import C_DLT_LOAD_ID
from icefield import Catalog, Table
from icefield.errors import NoSuchNamespace, NoSuchTable
from icefield.expressions import BooleanExpression, EqualTo

from icefield_tools.dlt.schemas import arrow_field
from icefield_tools.marks import is_marked


class SystemTables:
    """The tables of one dataset that dlt keeps about its loads."""

    def __init__(
        self, catalog: Catalog, namespace: tuple[str, ...], schema: Schema, capabilities: DestinationCapabilitiesContext
    ) -> None:
        self._catalog, self._namespace, self._schema, self._capabilities = catalog, namespace, schema, capabilities

    def _name(self, name: str) -> str:
        return str(self._schema.naming.normalize_identifier(name))

    def _table(self, name: str) -> Table | None:
        try:
            return self._catalog.load_table((*self._namespace, name))
        except (NoSuchTable, NoSuchNamespace):
            return None

    def add_version(self) -> None:
        """Keep the schema as its newest version."""
        schema = self._schema
        row = {
            "version": schema.version,
            "engine_version": schema.ENGINE_VERSION,
            "inserted_at": datetime.now(UTC),
            "schema_name": schema.name,
            "version_hash": schema.stored_version_hash,
            "schema": json.dumps(schema.to_dict()),
        }
        self._append(schema.version_table_name, row, {"dlt.schema": schema.name})

    def add_load(self, load_id: str) -> None:
        """Keep that a load is complete; once, also if it is told again."""
        schema = self._schema
        marks = {"dlt.load-id": load_id, "dlt.schema": schema.name}
        row = {
            "load_id": load_id,
            "schema_name": schema.name,
            "status": 0,
            "inserted_at": datetime.now(UTC),
            "schema_version_hash": schema.version_hash,
        }
        self._append(schema.loads_table_name, row, marks)

    def _append(self, name: str, row: dict[str, Any], marks: dict[str, str]) -> None:
        table = self._catalog.load_table((*self._namespace, name))
        if "dlt.load-id" in marks and is_marked(table, marks):
            return
        columns = self._schema.get_table_columns(name)
        fields = [arrow_field(columns[self._name(each)], self._capabilities) for each in row]
        table.append(pa.Table.from_arrays([[each] for each in row.values()], schema=pa.schema(fields)), marks)

    def delete_versions(self) -> None:
        """Forget the versions of the schema."""
        table = self._table(self._schema.version_table_name)
        if table is not None:
            table.delete(EqualTo(self._name("schema_name"), self._schema.name))

    def version(self, column: str, value: str | None) -> StorageSchemaInfo | None:
        """The newest schema that has a value in a column, or the newest of all."""
        table = self._table(self._schema.version_table_name)
        if table is None:
            return None
        times = self._name("inserted_at")
        rows = self._newest(table, times, None if value is None else EqualTo(self._name(column), value))
        if not rows:
            return None
        return StorageSchemaInfo.from_normalized_mapping(rows[0], self._schema.naming)

    @staticmethod
    def _newest(table: Table, column: str, row_filter: BooleanExpression | None) -> list[dict[str, Any]]:
        """The row with the greatest value in a column, if there is one; other rows are not read whole."""
        scan = table.scan() if row_filter is None else table.scan(row_filter)
        greatest = max((each for each in scan.select(column).to_arrow()[column].to_pylist()), default=None)
        if greatest is None:
            return []
        rows: list[dict[str, Any]] = scan.filter(EqualTo(column, greatest)).to_arrow().slice(0, 1).to_pylist()
        return rows

    def state(self, pipeline_name: str) -> StateInfo | None:
        """The state that the newest completed load of a pipeline has left."""
        states = self._catalog.load_table((*self._namespace, self._schema.state_table_name))
        loads = self._catalog.load_table((*self._namespace, self._schema.loads_table_name))
        load_id, of_load = self._name("load_id"), self._name(C_DLT_LOAD_ID)
        complete = loads.scan(EqualTo(self._name("status"), 0)).select(load_id).to_arrow()[load_id]
        scan = states.scan(EqualTo(self._name("pipeline_name"), pipeline_name))
        candidates = set(scan.select(of_load).to_arrow()[of_load].to_pylist()) & set(complete.to_pylist())
        if not candidates:
            return None
        row = scan.filter(EqualTo(of_load, max(candidates))).to_arrow().slice(0, 1).to_pylist()[0]
        return StateInfo.from_normalized_mapping(row, self._schema.naming)
