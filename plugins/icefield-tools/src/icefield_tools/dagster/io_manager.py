"""The IO manager: the outputs of assets are written to tables, and inputs are read from them."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from dagster import (
    AssetKey,
    ConfigurableIOManager,
    DagsterInvalidDefinitionError,
    InputContext,
    MetadataValue,
    OutputContext,
    TableColumn,
    TableSchema,
)
from icefield import Catalog, Table
from icefield.expressions import AlwaysTrue, BooleanExpression
from icefield.transaction import Transaction
from pydantic import Field

from icefield_tools.catalogs import catalog_of
from icefield_tools.dagster.inputs import is_table, rows_as
from icefield_tools.dagster.partitions import filter_of, spec_of
from icefield_tools.marks import is_marked

_MODES = ("overwrite", "append", "upsert")


class IcefieldIOManager(ConfigurableIOManager):
    """Assets as Iceberg tables of a catalog: the last part of a key is the table, the parts before are the namespace.

    The metadata of an asset says how its rows are written: ``write_mode`` is ``overwrite`` (the default), ``append`` or
    ``upsert`` with ``upsert_options``; ``partition_expr`` names the column of its partitions; ``branch``,
    ``partition_spec``, ``table_properties`` and ``merge_schema`` are those of the table. Each output is one commit.
    """

    catalog: str | None = Field(default=None, description="The name of a configured catalog; by default the default.")
    properties: dict[str, str] = Field(default={}, description="Properties of the catalog besides its configuration.")
    namespace: str | None = Field(default=None, description="The namespace of assets whose keys have one part.")
    branch: str = Field(default="main", description="The branch that is written and read; made when it is missing.")
    table_properties: dict[str, str] = Field(default={}, description="Properties of new tables.")

    def load_catalog(self) -> Catalog:
        """The catalog, which all steps of a process share."""
        return catalog_of(self.catalog, self.properties)

    def handle_output(self, context: OutputContext, obj: Any) -> None:
        """Write the rows that an asset returns, in one commit."""
        if obj is None:
            raise DagsterInvalidDefinitionError(
                "the output has no rows; annotate an asset that returns nothing by `-> None`"
            )
        options = {**self._options(context), **(context.output_metadata or {})}
        mode = _plain(options.get("write_mode", "overwrite"))
        if mode not in _MODES:
            raise DagsterInvalidDefinitionError(f"no write_mode {mode!r}; there are {', '.join(_MODES)}")
        name, branch = self._table_name(context), _plain(options.get("branch", self.branch))
        table = self._table(context, name, obj, options)
        if branch not in table.refs() and branch != "main":
            table.manage_snapshots().create_branch(None, branch).commit()
            table.refresh()
        marks = {"dagster.run-id": context.run_id, "dagster.step-key": context.step_key, "dagster.output": context.name}
        written: dict[str, Any] = {}
        if mode == "overwrite" or not is_marked(table, marks, branch):
            with table.transaction() as transaction:
                rows_filter = self._filter(context, table)
                result = _write(
                    transaction, obj, mode, rows_filter, options, {"branch": branch, "snapshot_properties": marks}
                )
            written = {"rows_inserted": result.rows_inserted, "rows_updated": result.rows_updated}
            written |= {"rows_deleted": result.rows_deleted}
        context.add_output_metadata(_described(table.refresh(), branch, written, options))

    def load_input(self, context: InputContext) -> Any:
        """Read the rows of an asset, of the partitions that the input needs, as the type of the input."""
        output = context.upstream_output
        if output is None:
            raise DagsterInvalidDefinitionError("an input without an output before it has no table")
        options = {**self._options(output), **(context.definition_metadata or {})}
        table = self.load_catalog().load_table(self._table_name(context if context.has_asset_key else output))
        kind = context.dagster_type.typing_type
        if is_table(kind):
            return table
        branch = _plain(options.get("branch", self.branch))
        columns = tuple(_plain(options.get("columns")) or ("*",))
        return rows_as(kind, table.scan(self._filter(context, table, output), columns, ref=branch))

    def _table_name(self, context: OutputContext | InputContext) -> tuple[str, ...]:
        """The name of the table of an asset, or of an output of an operation."""
        if context.has_asset_key:
            key: AssetKey = context.asset_key
            *levels, name = key.path
        else:
            levels, name = [], context.name
        if not levels:
            if self.namespace is None:
                raise DagsterInvalidDefinitionError(
                    f"{name!r} has no namespace: give it a key prefix, or give namespace"
                )
            levels = self.namespace.split(".")
        return (*levels, name)

    @staticmethod
    def _options(context: OutputContext) -> dict[str, Any]:
        return dict(context.definition_metadata or {})

    def _table(self, context: OutputContext, name: tuple[str, ...], obj: Any, options: Mapping[str, Any]) -> Table:
        """The table, which is made with the columns of the rows when it is missing."""
        catalog = self.load_catalog()
        if catalog.table_exists(name):
            return catalog.load_table(name)
        catalog.create_namespace_if_not_exists(name[:-1])
        spec = _plain(options.get("partition_spec"))
        properties = {**self.table_properties, **(_plain(options.get("table_properties")) or {})}
        with catalog.create_table_transaction(name, obj, properties=properties) as made:
            schema = made.shape.schema().to_arrow()
            if context.has_asset_partitions:
                partitions, columns = context.asset_partitions_def, _expression(options, name)
                filter_of(partitions, (), columns, schema)  # a wrong column leaves no table
                spec = spec_of(partitions, columns, schema) if spec is None else spec
            if spec:
                with made.update_spec() as update:
                    for part in [spec] if isinstance(spec, str) else spec:
                        update.add_field(*_parsed(part))
        return catalog.load_table(name)

    @staticmethod
    def _filter(
        context: OutputContext | InputContext, table: Table, output: OutputContext | None = None
    ) -> BooleanExpression:
        """The filter of the partitions that are written or read."""
        if not context.has_asset_partitions:
            return AlwaysTrue()
        options = (output or context).definition_metadata or {}
        columns = _expression(options, table.name())
        keys = context.asset_partition_keys
        return filter_of(context.asset_partitions_def, keys, columns, table.schema().to_arrow())


def _expression(options: Mapping[str, Any], name: tuple[str, ...]) -> Any:
    found = _plain(options.get("partition_expr"))
    if found is None:
        raise DagsterInvalidDefinitionError(
            f"{'.'.join(name)} has partitions: name their column by metadata={{'partition_expr': ...}}"
        )
    return found


def _parsed(part: str) -> tuple[str, str]:
    """The column and the transform of a part of a partition spec: ``bucket[4](id)``, ``day(at)``, ``kind``."""
    transform, opened, column = part.partition("(")
    return (column.removesuffix(")"), transform) if opened else (part, "identity")


def _write(
    transaction: Transaction[Any],
    obj: Any,
    mode: str,
    rows_filter: BooleanExpression,
    options: Mapping[str, Any],
    common: Mapping[str, Any],
) -> Any:
    merge_schema = bool(_plain(options.get("merge_schema", False)))
    if mode == "append":
        return transaction.append(obj, merge_schema=merge_schema, **common)
    if mode == "overwrite":
        return transaction.overwrite(obj, rows_filter, merge_schema=merge_schema, **common)
    chosen = dict(_plain(options.get("upsert_options")) or {})
    return transaction.upsert(obj, chosen.pop("join_cols", None), **chosen, **common)


def _plain(value: Any) -> Any:
    """The value of an entry of metadata."""
    return value.value if isinstance(value, MetadataValue) else value


def _described(table: Table, branch: str, written: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """What Dagster shows about an output."""
    schema: pa.Schema = table.schema().to_arrow()
    columns = [TableColumn(field.name, str(field.type), None) for field in schema]
    snapshot = table.snapshot_by_name(branch)
    found: dict[str, Any] = {
        "dagster/table_name": ".".join(table.name()),
        "dagster/storage_kind": "iceberg",
        "dagster/column_schema": TableSchema(columns=columns),
        "dagster/row_count": table.scan(ref=branch).count(),
        "branch": branch,
        "location": MetadataValue.path(table.location()),
        **written,
    }
    if snapshot is not None:
        found["snapshot_id"] = str(snapshot.snapshot_id)
    return {name: value for name, value in found.items() if value is not None and name not in options}
