"""Names of a statement as tables of the catalog: versions of tables, and metadata tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from icefield import Catalog, Schema, Table, View
from icefield.abc import ViewCatalog
from icefield.errors import InvalidArgument, NoSuchNamespace, NoSuchTable, NoSuchView, NotSupportedByCatalog
from icefield.expressions import BooleanExpression
from icefield.scan import TableScan
from pyspark.sql import SparkSession

from icefield_spark.missing import METADATA_TABLES, no_table, no_table_about
from icefield_spark.quoting import quoted
from icefield_spark.wap import branch_read, branch_written


@dataclass(frozen=True)
class Source:
    """The meaning of a name: a table at one version, or a metadata table."""

    name: tuple[str, ...]
    table: Table
    snapshot_id: int | None = None
    ref: str | None = None
    by_session: bool = False
    """Whether no name says the ref, but ``spark.wap.branch``."""
    about: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether this is a table without a named version."""
        return self.snapshot_id is None and self.ref is None and self.about is None

    def scan(self, where: BooleanExpression | None = None) -> TableScan:
        """The scan of the table at this version."""
        narrowed: dict[str, Any] = {} if where is None else {"row_filter": where}
        return self.table.scan(snapshot_id=self.snapshot_id, ref=self.ref, **narrowed)

    def schema(self) -> Schema:
        """The columns of the table."""
        return self.scan().schema

    def rows_about(self) -> pa.Table:
        """The rows of the metadata table."""
        assert self.about is not None
        version: dict[str, Any] = {}
        if self.snapshot_id is not None:
            version["snapshot_id"] = self.snapshot_id
        if self.ref is not None:
            version["ref"] = self.ref
        return self.table.inspect.scan(self.about, **version).to_arrow()

    def at(self, version: int | str | None, time_ms: int | None) -> Source:
        """This source at a snapshot id, a branch, a tag or a time.

        Raises ``InvalidArgument`` if it already states a version.
        """
        if self.by_session:
            return replace(self, ref=None, by_session=False).at(version, time_ms)
        if self.snapshot_id is not None or self.ref is not None:
            raise InvalidArgument(f"table '{'.'.join(self.name)}' names a version already")
        if time_ms is not None:
            return replace(self, snapshot_id=self.table.snapshot_as_of_timestamp(time_ms).snapshot_id)
        if isinstance(version, str) and not version.isdigit():
            return replace(self, ref=version)
        return replace(self, snapshot_id=int(str(version)))


class Names:
    """Finds the tables that a statement names; each is loaded once, so that the whole statement reads one version."""

    def __init__(
        self,
        session: SparkSession,
        catalog: Catalog,
        namespace: tuple[str, ...] = (),
        attached: str | None = None,
    ) -> None:
        """``attached``: the name that the session has for the catalog, besides the catalog's own."""
        self._session = session
        self._catalog = catalog
        self.namespace = namespace
        self.attached = attached
        self._loaded: dict[tuple[str, ...], Table | None] = {}
        self._views: dict[tuple[str, ...], View | None] = {}
        self._temporary: dict[str, bool] = {}

    @property
    def catalog_name(self) -> str:
        """The name of the catalog."""
        return self._catalog.name

    def is_catalog(self, part: str) -> bool:
        """Whether the first part of a name is the catalog's."""
        return part in (self._catalog.name, self.attached)

    def is_known(self, parts: tuple[str, ...]) -> bool:
        """Whether a name can only be the name of a table of the catalog."""
        name = self.local(parts)
        is_place = len(name) > 1 and (name != parts or self.is_namespace(name[:-1]))
        return is_place and not self.is_temporary(parts)

    def local(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """A name in the catalog's form.

        It does not have the catalog's own name, and a name with one part gets the current namespace.
        """
        if len(parts) > 1 and self.is_catalog(parts[0]) and (len(parts) > 2 or not self.is_namespace(parts[:1])):
            return parts[1:]
        return (*self.namespace, *parts) if len(parts) == 1 else parts

    def find(self, parts: tuple[str, ...]) -> Source | None:
        """The source of a name that is read; None if the name is no table of the catalog."""
        found = None if self.is_temporary(parts) else self._find(parts)
        if found is None or not found.is_plain:
            return found
        branch = branch_read(self._session, found.table)
        return found if branch is None else replace(found, ref=branch, by_session=True)

    def written(self, parts: tuple[str, ...]) -> Source | None:
        """The source of a name that is written to; None if the name is no table of the catalog."""
        found = None if self.is_temporary(parts) else self._find(parts)
        if found is None or not found.is_plain:
            return found
        return replace(found, ref=branch_written(self._session, found.table))

    def view(self, parts: tuple[str, ...]) -> View | None:
        """The view of a name; None if the name is no view of the catalog."""
        name = () if self.is_temporary(parts) else self.local(parts)
        if len(name) < 2 or not isinstance(self._catalog.backend, ViewCatalog):
            return None
        if name not in self._views:
            try:
                self._views[name] = self._catalog.load_view(name)
            except (NoSuchView, NoSuchNamespace, NotSupportedByCatalog, InvalidArgument):
                self._views[name] = None
        return self._views[name]

    def is_temporary(self, parts: tuple[str, ...]) -> bool:
        """Whether a name of one part names a temporary view, which takes precedence over the current namespace."""
        if len(parts) > 1 or not self.namespace:
            return False
        if parts[0] not in self._temporary:
            name, spark = quoted(*parts), self._session.catalog
            self._temporary[parts[0]] = spark.tableExists(name) and spark.getTable(name).isTemporary
        return self._temporary[parts[0]]

    def _find(self, parts: tuple[str, ...]) -> Source | None:
        name = self.local(parts)
        if len(name) < 2:
            return None
        table = self._load(name)
        if table is not None:
            return Source(parts, table)
        table = self._load(name[:-1]) if len(name) > 2 else None
        return None if table is None else selected(parts, table, name[-1])

    def check_about(self, parts: tuple[str, ...]) -> None:
        """Raise ``NoSuchTable`` for a table's name with a suffix that is not the name of a metadata table."""
        name = self.local(parts)
        if len(name) > 2 and self._load(name[:-1]) is not None:
            raise no_table_about(parts)

    def table(self, parts: tuple[str, ...]) -> Table:
        """The table of a name. Raises ``NoSuchTable``."""
        found = self._find(parts)
        if found is None:
            raise no_table(self._catalog, self.local(parts), self.attached)
        if found.about is not None or found.snapshot_id is not None or found.ref is not None:
            raise InvalidArgument(f"'{'.'.join(parts)}' is not a whole table and cannot be changed")
        return found.table

    def _load(self, name: tuple[str, ...]) -> Table | None:
        if name not in self._loaded:
            try:
                self._loaded[name] = self._catalog.load_table(name)
            except (NoSuchTable, NoSuchNamespace, NotSupportedByCatalog, InvalidArgument):
                self._loaded[name] = None
        return self._loaded[name]

    def is_namespace(self, name: tuple[str, ...]) -> bool:
        """Whether the catalog has a namespace of that name."""
        try:
            return self._catalog.namespace_exists(name)
        except (NotSupportedByCatalog, InvalidArgument):
            return False


def selected(parts: tuple[str, ...], table: Table, last: str) -> Source | None:
    """A table with the suffix of its name: a metadata table or a version; None for any other suffix."""
    plain = last.lower()
    if plain in METADATA_TABLES:
        return Source(parts, table, about=plain)
    for prefix, kind in (("branch_", "ref"), ("tag_", "ref"), ("snapshot_id_", "id"), ("at_timestamp_", "time")):
        if not plain.startswith(prefix):
            continue
        rest = last[len(prefix) :]
        source = Source(parts, table)
        if kind == "ref":
            return source.at(rest, None) if not rest.isdigit() else replace(source, ref=rest)
        if rest.isdigit():
            return source.at(int(rest), None) if kind == "id" else source.at(None, int(rest))
    return None
