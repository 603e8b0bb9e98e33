"""The session: tables as data frames, pruned by column and filter when they are planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from icefield import Catalog, Table, load_catalog
from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysTrue, BooleanExpression, as_expression
from icefield.metadata import MAIN_BRANCH
from icefield.scan import TableScan
from icefield.transaction import WriteResult
from icefield.writing import WriteContext
from icefield_maintenance import MaintenanceTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as spark_types

from icefield_spark.assignment import stored_in
from icefield_spark.batches import session_here
from icefield_spark.catalog.configuration import configured
from icefield_spark.catalog.java_properties import MARK, PREFIX, translated
from icefield_spark.catalog.own_statements import parse_own_statements
from icefield_spark.catalog.provider import provide, withdraw
from icefield_spark.catalog.scans import explanations_in
from icefield_spark.changing import delete_rows, update_rows
from icefield_spark.conditions import Expression, exact_filter
from icefield_spark.explaining import Explanation, explanation_of
from icefield_spark.failures import as_raised
from icefield_spark.maintenance import maintenance_of
from icefield_spark.merge_builder import FrameMerge, assigned
from icefield_spark.merging import add_columns
from icefield_spark.missing import loaded
from icefield_spark.planned import count_rows
from icefield_spark.reading import read
from icefield_spark.roads.choosing import checked_road
from icefield_spark.roads.write_job import write_rows
from icefield_spark.row_level import Target, delete_where, replace_where
from icefield_spark.sql.statements import Statements
from icefield_spark.streaming.epochs import Epoch, written_once
from icefield_spark.types import from_spark_schema
from icefield_spark.wap import branch_read, place_of_write
from icefield_spark.writing import (
    PARTITIONS,
    Outcome,
    Replaced,
    application_of,
    check_fits,
    check_target,
    is_case_sensitive,
    on_one_core,
    spark_write_context,
    stage,
)

Where = str | BooleanExpression | Column
"""A filter as a string or as an object, or a condition as a column of Spark's."""

Version = tuple[int | None, str | None, int | datetime | str | None]
"""A snapshot id, a branch or tag, a time: at most one of them."""


def attach(
    spark: SparkSession, catalog: Catalog | str, *, name: str | None = None, **properties: Any
) -> IcefieldSession:
    """Attach a catalog to a Spark session: an open one, or a configured one by name, with properties over its own.

    With ``name``, Spark itself finds the tables: ``name.namespace.table`` in ``spark.sql``, ``spark.table`` and
    ``writeTo``. Raises ``UnsupportedFeature`` if the session cannot have such a catalog (as through Spark Connect), and
    ``InvalidArgument`` for a name that cannot be used.
    """
    joined = load_catalog(catalog, **properties) if isinstance(catalog, str) else catalog
    if name is not None:
        provide(spark, name, lambda each: IcefieldSession(each, joined, name))
    return IcefieldSession(spark, joined, name)


def install(spark: SparkSession) -> dict[str, IcefieldSession]:
    """Attach the catalogs that the settings of a session name: ``spark.sql.catalog.<name>`` is ``icefield``.

    The settings below that name are properties of the catalog, under the names of ``load_catalog`` or of Iceberg's Java
    catalogs (``type`` ``hadoop`` or ``jdbc``, ``catalog-impl``, ``jdbc.user``, ...). A configured catalog of the same
    name gives the properties that the settings leave out. Returns a session for each name.

    Raises ``InvalidArgument`` if no setting names a catalog, and for properties that cannot be used, and
    ``UnsupportedFeature`` as ``attach`` does.
    """
    parse_own_statements(spark)  # before the settings are read, from when on the session has its parser
    found = configured(spark)
    if not found:
        raise InvalidArgument(f"no setting {PREFIX}<name> of the session is '{MARK}': there is no catalog to attach")
    opened = {name: load_catalog(name, **translated(name, properties)) for name, properties in found.items()}
    return {name: attach(spark, catalog, name=name) for name, catalog in opened.items()}


class IcefieldSession:
    """Reads and writes the tables of one catalog with one Spark session.

    Operations on a frame run in the frame's own session. In a function of ``foreachBatch`` all operations run in the
    session of the batch, which has its views. Plans are made on the driver. Executors read and write the files: by
    Spark's own reader and writer of Parquet where these serve, else in Arrow.

    Changes of rows return a ``WriteResult``: their snapshot, and the numbers of rows and files that changed. An update
    and a merge count every row that they write, even if its values stay the same.
    """

    def __init__(self, spark: SparkSession, catalog: Catalog, name: str | None = None) -> None:
        """``name``: the session's name for the catalog, besides the catalog's own."""
        self._attached = spark
        self._name = name
        self.catalog = catalog
        self._statements = Statements(catalog, name, self._again)

    def _again(self, spark: SparkSession) -> IcefieldSession:
        return IcefieldSession(spark, self.catalog, self._name)

    @property
    def spark(self) -> SparkSession:
        """The attached session; in a function of ``foreachBatch`` the session of the batch."""
        return session_here(self._attached)

    def detach(self) -> None:
        """Remove the catalog's name from Spark: all sessions forget it, and a new ``attach`` may use it.

        Nothing happens if the catalog was attached without a name. This object stays usable, and the catalog stays
        open.
        """
        if self._name is not None:
            withdraw(self.spark, self._name)

    def table(
        self,
        identifier: str,
        where: Where | None = None,
        columns: Sequence[str] | None = None,
        *,
        snapshot_id: int | None = None,
        ref: str | None = None,
        as_of: int | datetime | str | None = None,
        case_sensitive: bool | None = None,
        road: str = "auto",
    ) -> DataFrame:
        """A table's current state as a data frame. It reads only files that may match, and only requested columns.

        That holds for later operations on the frame, too: Spark pushes filters and columns of a query down to the
        table, and has it planned when the query runs.

        ``where``: a filter as a string or as an object, or a condition as a column of Spark's; every row of the frame
        matches it. ``columns``: names, dotted for nested fields, and metadata columns (``_file``, ``_pos``, ...); None
        is all. One of ``snapshot_id``, ``ref`` (a branch or tag) and ``as_of`` (milliseconds since 1970 UTC, a
        ``datetime``, or a string in ISO form) reads an earlier state. The frame is pinned to that snapshot: it gives
        the same rows after later commits. Names are compared as ``spark.sql.caseSensitive`` says, unless
        ``case_sensitive`` does. ``road`` is how files are read: ``auto``, ``spark`` (by Spark's own Parquet reader) or
        ``arrow`` (by the kernel's readers).

        Raises ``NoSuchTable``, ``NoSuchSnapshot``, ``InvalidArgument`` for a column that is not there,
        ``InvalidExpression`` for a filter that does not fit, ``UnsupportedFeature`` for types that Spark lacks.
        """
        spark, version = self.spark, (snapshot_id, ref, as_of)
        condition = where if isinstance(where, Column) else None
        row_filter = None if isinstance(where, Column) else where
        scan = self._scan(spark, identifier, row_filter, columns, version, case_sensitive)
        is_pruned = self._statements.serves(spark)
        return read(spark, scan, columns or (), condition, checked_road(road), is_pruned=is_pruned)

    def count(
        self,
        identifier: str,
        where: Where | None = None,
        *,
        snapshot_id: int | None = None,
        ref: str | None = None,
        as_of: int | datetime | str | None = None,
        case_sensitive: bool | None = None,
    ) -> int:
        """How many rows of a table match a filter; the arguments are as for ``table``.

        Files without deletes are counted by metadata, without a job, if their whole partition matches the filter; Spark
        reads the other files.
        """
        spark, version = self.spark, (snapshot_id, ref, as_of)
        if isinstance(where, Column):
            frame = self.table(identifier, where, snapshot_id=snapshot_id, ref=ref, as_of=as_of)
            with as_raised():
                return frame.count()
        return count_rows(spark, self._scan(spark, identifier, where, None, version, case_sensitive))

    def explain(
        self,
        table: str | DataFrame,
        where: Where | None = None,
        columns: Sequence[str] | None = None,
        *,
        snapshot_id: int | None = None,
        ref: str | None = None,
        as_of: int | datetime | str | None = None,
        case_sensitive: bool | None = None,
        road: str = "auto",
    ) -> Explanation:
        """The plan for reading a table: snapshot, filter, files, bytes, and the road of each file with the reason.

        ``table``: a name, with the arguments of ``table``, or a frame that reads tables of catalogs.
        """
        frame = table
        if isinstance(frame, str):
            version: dict[str, Any] = {"snapshot_id": snapshot_id, "ref": ref, "as_of": as_of}
            frame = self.table(frame, where, columns, **version, case_sensitive=case_sensitive, road=road)
        return explanation_of(frame, explanations_in(frame))

    def _scan(
        self,
        spark: SparkSession,
        identifier: str,
        where: str | BooleanExpression | None,
        columns: Sequence[str] | None,
        version: Version,
        case_sensitive: bool | None,
    ) -> TableScan:
        if sum(option is not None for option in version) > 1:
            raise InvalidArgument("give one of snapshot_id, ref and as_of")
        if columns is not None and (isinstance(columns, str) or not columns):
            raise InvalidArgument("columns is a list of at least one name; leave it out for all")
        snapshot_id, ref, as_of = version
        table = loaded(self.catalog, identifier)
        if version == (None, None, None):
            ref = branch_read(spark, table)
        return table.scan(
            row_filter=AlwaysTrue() if where is None else where,
            selected_fields=tuple(columns) if columns is not None else ("*",),
            case_sensitive=is_case_sensitive(spark) if case_sensitive is None else case_sensitive,
            snapshot_id=snapshot_id,
            ref=ref,
            as_of=as_of,
        )

    def create_table(
        self,
        identifier: str,
        schema: DataFrame | spark_types.StructType,
        *,
        required: bool | None = None,
        **options: Any,
    ) -> Table:
        """Create a table with the columns of a data frame or of a Spark schema.

        Columns of a frame may hold nulls unless ``required`` is true: Spark marks even constants, and the ids of
        ``range``, as not nullable. Columns of a schema keep its nullability unless ``required`` is false. ``options``
        are the options of ``Catalog.create_table``: ``partition_spec``, ``sort_order``, ``properties``, ``location``.
        """
        columns = schema if isinstance(schema, spark_types.StructType) else schema.schema
        strict = columns is schema if required is None else required
        return self.catalog.create_table(identifier, from_spark_schema(columns, optional=not strict), **options)

    def append(
        self,
        frame: DataFrame,
        identifier: str,
        *,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
        merge_schema: bool = False,
        distribution: str | None = None,
        road: str = "auto",
    ) -> WriteResult:
        """Add the rows of a data frame to a table; columns go by name.

        ``snapshot_properties`` go into the snapshot's summary. ``branch`` None stages the snapshot, for
        ``manage_snapshots().cherry_pick`` to publish. ``merge_schema`` adds the columns that the table lacks, in the
        same commit. ``distribution`` is how rows are spread over the tasks that write them, and overrides the table's
        property: ``none``, ``hash`` or ``range``. ``road`` is how files are written: ``spark`` (by Spark's own Parquet
        writer), ``arrow`` (by the kernel's writers), or ``auto``: ``spark`` where it serves, else ``arrow``. Raises
        ``NoSuchTable`` and, for columns that do not fit, ``InvalidArgument`` before the frame is computed; for rows
        that do not fit, ``InvalidArgument``. When it raises, no row is visible.
        """
        return self._change(frame, identifier, None, branch, snapshot_properties, merge_schema, distribution, road)

    def overwrite(
        self,
        frame: DataFrame,
        identifier: str,
        where: Where | None = None,
        *,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
        merge_schema: bool = False,
        distribution: str | None = None,
        road: str = "auto",
    ) -> WriteResult:
        """Replace the rows that ``where`` matches (all, if it is None) by the rows of a data frame, in one version.

        A file that ``where`` matches in part is rewritten. The frame may be computed from the table itself. Raises
        as ``append`` does, and ``InvalidExpression`` for a filter that does not fit.
        """
        target = AlwaysTrue() if where is None else where if isinstance(where, Column) else as_expression(where)
        return self._change(frame, identifier, target, branch, snapshot_properties, merge_schema, distribution, road)

    def overwrite_partitions(
        self,
        frame: DataFrame,
        identifier: str,
        *,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
        merge_schema: bool = False,
        distribution: str | None = None,
        road: str = "auto",
    ) -> WriteResult:
        """Replace the partitions of a data frame's rows, and leave all other partitions unchanged.

        A table without partitions is replaced as a whole. Raises as ``append`` does.
        """
        return self._change(
            frame, identifier, PARTITIONS, branch, snapshot_properties, merge_schema, distribution, road
        )

    def create_table_as(
        self,
        frame: DataFrame,
        identifier: str,
        *,
        required: bool | None = None,
        distribution: str | None = None,
        road: str = "auto",
        **options: Any,
    ) -> Table:
        """Create a table with the columns and the rows of a data frame, in one version.

        ``required`` and ``options`` are as for ``create_table``. The table becomes visible together with its rows; when
        this raises, there is no table.
        """
        made = from_spark_schema(frame.schema, optional=not required)
        with self.catalog.create_table_transaction(identifier, made, **options) as transaction:
            self._fill(frame, transaction, distribution, road)
        return self.catalog.load_table(identifier)

    def _fill(self, frame: DataFrame, transaction: Any, distribution: str | None, road: str) -> None:
        """Write the first rows of the table that a transaction makes."""
        context = on_one_core(WriteContext.from_metadata(transaction.shape, transaction.context.io))
        check_fits(context, frame.schema)
        stage(transaction, self._write(frame, context, transaction, distribution, road), None)

    def delete(
        self,
        identifier: str,
        where: Where,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> WriteResult:
        """Delete the rows that a filter matches, as ``write.delete.mode`` says. Rows for which the filter is null stay.

        Files with only matching rows, according to their manifests, are dropped without a job; executors read the other
        files. Raises ``InvalidExpression`` for a filter that does not fit, ``ValidationFailed`` when a concurrent
        commit changed the data that was read.
        """
        spark, table = self.spark, loaded(self.catalog, identifier)
        written, strings = place_of_write(spark, table, branch, snapshot_properties)
        target = Target(table, written or MAIN_BRANCH, "delete", strings=strings or {})
        if isinstance(where, Column):
            return delete_rows(spark, target, where, table.name()[-1])
        return delete_where(spark, target, check_target(table, where))

    def update(
        self,
        identifier: str,
        set: Mapping[str, Expression],
        where: Expression | None = None,
        *,
        branch: str = MAIN_BRANCH,
    ) -> WriteResult:
        """Set columns of the matching rows to new values, as ``write.update.mode`` says.

        ``set`` maps names of columns, dotted for nested fields, to expressions of Spark's SQL or columns of Spark's,
        and ``where`` is a condition in one of these forms; None is all rows. In both, the last part of the table's name
        stands for the table. Raises ``InvalidArgument`` for a column that is not there.
        """
        target = self._target(self.spark, identifier, branch, "update")
        return update_rows(self.spark, target, assigned(set), where, target.table.name()[-1])

    def merge(
        self, frame: DataFrame, identifier: str, on: Expression | Sequence[str], *, branch: str = MAIN_BRANCH
    ) -> FrameMerge:
        """Begin a merge of a data frame into a table, by the rules of SQL's ``MERGE`` and by ``write.merge.mode``.

        ``on``: key columns that both sides have, or a condition over ``target`` and ``source``. ``commit`` of the
        returned object runs the merge.
        """
        loaded(self.catalog, identifier)
        return FrameMerge(partial(self._target, frame.sparkSession, identifier, branch, "merge"), frame, on)

    def upsert(
        self,
        frame: DataFrame,
        identifier: str,
        join_cols: Sequence[str] | str | None = None,
        *,
        branch: str = MAIN_BRANCH,
    ) -> WriteResult:
        """Replace the rows that have the key of a row of a data frame, and add its rows with new keys.

        ``join_cols`` are the columns of the key; the schema's identifier fields by default. Raises ``InvalidArgument``
        for a key of the table that two rows of the frame have.
        """
        if join_cols is None:
            schema = loaded(self.catalog, identifier).schema()
            join_cols = [schema.find_field(each).name for each in sorted(schema.identifier_field_ids)]
        on = [join_cols] if isinstance(join_cols, str) else list(join_cols)
        merge = self.merge(frame, identifier, on, branch=branch)
        return merge.when_matched_update_all().when_not_matched_insert_all().commit()

    def maintenance(self, identifier: str) -> MaintenanceTable:
        """The maintenance of a table, as in ``table.maintenance``; executors read and write the files.

        Planning and commits stay on the driver. ``OperationProgress`` events tell how far it has come.
        """
        return maintenance_of(self.spark, loaded(self.catalog, identifier))

    def _target(self, spark: SparkSession, identifier: str, branch: str, kind: str) -> Target:
        """A table as the target of a change of its rows."""
        table = loaded(self.catalog, identifier)
        branch_written, strings = place_of_write(spark, table, branch, None)
        return Target(table, branch_written or MAIN_BRANCH, kind, strings=strings or {})

    def sql(self, statement: str) -> DataFrame:
        """Run one statement of Spark's SQL, in which names may be tables of the catalog.

        Spark carries it out, with the catalog as the current one: ``db.t``, ``catalog.db.t`` and, after ``USE db``,
        ``t`` are names of tables, and ``db.t.snapshots`` is an example of a metadata table. Through Spark Connect, and
        where no jar may be added, Icefield finds the tables by the names in the text, and changes them like the methods
        of this object.

        Raises Spark's errors, and errors of Icefield when the catalog refuses an operation.
        """
        return self._statements.run(self.spark, statement)

    def _change(
        self,
        frame: DataFrame,
        identifier: str,
        replaced: Replaced | Column,
        branch: str | None,
        snapshot_properties: Mapping[str, str] | None,
        merge_schema: bool,
        distribution: str | None,
        road: str,
        epoch: Epoch | None = None,
    ) -> WriteResult:
        """Write a frame and commit it; commit an epoch of a stream only if the branch does not hold the epoch."""
        spark, table = frame.sparkSession, loaded(self.catalog, identifier)
        exact = is_case_sensitive(spark)
        if isinstance(replaced, Column):
            replaced = exact_filter(spark, replaced, table)
        branch, snapshot_properties = place_of_write(spark, table, branch, snapshot_properties)
        frame = stored_in(spark, frame, table.schema(), case_sensitive=exact)
        with written_once(table), table.transaction() as transaction:
            transaction.expect_branch(branch)
            if merge_schema:
                add_columns(transaction, frame.schema, exact)
            context = spark_write_context(table, transaction.shape)
            check_fits(context, frame.schema, case_sensitive=exact)
            if replaced is not None and replaced != PARTITIONS:
                replaced = check_target(table, replaced)
            outcome = self._write(frame, context, transaction, distribution, road)
            if epoch is not None:
                snapshot_properties = epoch.claim(transaction, branch, snapshot_properties)
            if isinstance(replaced, BooleanExpression) and replaced != AlwaysTrue():
                target = Target(table, branch or MAIN_BRANCH, "delete")
                target.marks = False  # rewrite files: new rows and remaining rows are both written to data files
                strings = {**application_of(outcome), **(snapshot_properties or {})}
                return replace_where(
                    spark, target, replaced, outcome.files, transaction, strings=strings, branch=branch
                )
            return stage(transaction, outcome, replaced, branch=branch, snapshot_properties=snapshot_properties)
        return WriteResult()  # the table holds this epoch already

    def _write(
        self,
        frame: DataFrame,
        context: WriteContext,
        transaction: Any,
        distribution: str | None = None,
        road: str = "auto",
    ) -> Outcome:
        spark = frame.sparkSession
        return write_rows(spark, frame, context, transaction, distribution=distribution, road=checked_road(road))

    def __repr__(self) -> str:
        return f"IcefieldSession(catalog={self.catalog.name!r})"
