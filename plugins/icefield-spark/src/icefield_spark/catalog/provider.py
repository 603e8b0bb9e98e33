"""A catalog of Icefield as a catalog of Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from icefield import Catalog, Table
from icefield.abc import ViewCatalog
from icefield.errors import (
    InvalidArgument,
    NoSuchNamespace,
    NoSuchTable,
    NotSupportedByCatalog,
    UnsupportedFeature,
)
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from icefield_spark.catalog.about import CHANGES, TableAbout, TableChanges
from icefield_spark.catalog.altering import alter
from icefield_spark.catalog.bridge import Remote, reply
from icefield_spark.catalog.compiling import CLASSES, HOLDER, catalog_class, compiled_class
from icefield_spark.catalog.described import created_schema
from icefield_spark.catalog.java_properties import MARK, PREFIX
from icefield_spark.catalog.own_statements import parse_own_statements
from icefield_spark.catalog.procedures import CatalogProcedure, procedure_names
from icefield_spark.catalog.scans import CURRENT, Version
from icefield_spark.catalog.staged import StagedTable
from icefield_spark.catalog.tables import SparkTable
from icefield_spark.catalog.views import Draft, SessionViews, StoredView
from icefield_spark.jvm import settings_of
from icefield_spark.missing import no_table
from icefield_spark.running import activate
from icefield_spark.sql.properties import MADE_PROPERTIES
from icefield_spark.sql.sources import Source, selected
from icefield_spark.sql.terms import PLAIN

if TYPE_CHECKING:
    from icefield_spark.session import IcefieldSession

Opened = Callable[[SparkSession], "IcefieldSession"]

_OF_SPARK = frozenset({"provider", "owner", "external", "is_managed_location", "table_type"})
_OURS = frozenset({"iceberg", "icefield"})
_FORMATS = frozenset({"parquet", "orc", "avro"})
_SHORT = {"bucket": "bucket", "truncate": "trunc"}
"""Suffixes of default partition field names, after the column: at creation, Java leaves the number out."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAKEN = frozenset({"spark_catalog", "system", "global_temp", "session", "builtin"})


def provide(spark: SparkSession, name: str, opened: Opened) -> None:
    """Let a session find the tables of a catalog as ``name.namespace.table``.

    Clones of the session know them, too, and so do sessions that are made later. ``opened`` gives the session of the
    catalog for one of Spark's. A catalog that was attached under the name before is replaced.

    Raises ``InvalidArgument`` for a name that cannot be used, and ``UnsupportedFeature`` where the Java classes of the
    catalog cannot be added to the session's JVM.
    """
    if not _NAME.fullmatch(name) or name.lower() in _TAKEN:
        raise InvalidArgument(f"a catalog cannot be attached as '{name}': take a word of letters, digits and _")
    parse_own_statements(spark)  # before anything uses the session, which has its parser from then on
    configured = spark.conf.get(f"{PREFIX}{name}", None)
    if configured not in (None, MARK, *CLASSES):
        raise InvalidArgument(f"the session has another catalog '{name}' ({configured}): take another name")
    settings = offered(spark, name, opened)
    shared = spark._jsparkSession.sharedState().conf()  # from which new sessions have theirs
    for option, value in settings.items():
        shared.set(option, value)
    show(spark, name, settings)


def offered(spark: SparkSession, name: str, opened: Opened) -> dict[str, str]:
    """Make a catalog known to the JVM: the settings by which a session has it under a name.

    Raises ``UnsupportedFeature`` where the Java classes of the catalog cannot be added to the session's JVM.
    """
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    holder = compiled_class(spark, HOLDER).getField("CATALOGS").get(None)
    key = uuid4().hex
    holder.put(key, Attachment(spark.sparkContext, name, opened))
    return {f"{PREFIX}{name}": catalog_class(spark), f"{PREFIX}{name}.key": key}


def show(spark: SparkSession, name: str, settings: Mapping[str, str]) -> None:
    """Let a session find a catalog under a name, by the settings that ``offered`` returned for it."""
    for option, value in settings.items():
        spark.conf.set(option, value)
    activate(spark)  # Spark looks for a catalog in the settings of the active session
    # Spark may have made its catalog object for an earlier catalog, or while another session was active.
    key = settings[f"{PREFIX}{name}.key"]
    spark._jsparkSession.sessionState().catalogManager().catalog(name).attach(spark._jsparkSession, key)


def withdraw(spark: SparkSession, name: str) -> None:
    """Take a catalog from a session, from its clones, and from sessions that are made later; see ``provide``."""
    setting = f"{PREFIX}{name}"
    if spark.conf.get(f"{setting}.key", None) is None:
        return
    manager = spark._jsparkSession.sessionState().catalogManager()
    catalog = manager.catalog(name)
    if manager.currentCatalog().name() == name:
        manager.setCurrentCatalog("spark_catalog")
    catalog.detach()
    shared = spark._jsparkSession.sharedState().conf()
    for option in (setting, f"{setting}.key"):
        spark.conf.unset(option)
        shared.remove(option)
    if any(each.startswith(f"{setting}.") for each in settings_of(spark)):  # settings for ``install``
        spark.conf.set(setting, MARK)


class Attachment(Remote):
    """A catalog that a session and its clones share under one name."""

    def __init__(self, context: SparkContext, name: str, opened: Opened) -> None:
        self._context = context
        self._name = name
        self._opened = opened

    def on_attached(self, session: Any) -> SessionCatalog:
        """The catalog of one session: Spark makes one for each clone."""
        return SessionCatalog(self._opened(SparkSession(self._context, session)), self._name)


class SessionCatalog(Remote):
    """The catalog of a session."""

    def __init__(self, ice: IcefieldSession, name: str) -> None:
        self._ice = ice
        self._catalog = ice.catalog
        self._name = name
        self.views = SessionViews(ice.spark, ice.catalog, name)

    # Tables.

    def on_load(self, asked: str) -> SparkTable | TableAbout:
        """A table, at a requested version if there is one, or a metadata table."""
        given = json.loads(asked)
        source = self._found(tuple(given["name"]))
        if "version" in given:
            source = source.at(given["version"], None)
        elif "micros" in given:
            source = source.at(None, int(given["micros"]) // 1000)
        if source.about == CHANGES:
            return TableChanges(self._ice.spark, self._name, source)
        if source.about is not None:
            return TableAbout(self._ice.spark, self._name, source)
        return self._shown(source.table, Version(source.snapshot_id, source.ref))

    def _found(self, name: tuple[str, ...]) -> Source:
        try:
            return Source(name, self._catalog.load_table(name))
        except (NoSuchTable, NoSuchNamespace, NotSupportedByCatalog, InvalidArgument):
            if len(name) < 3:
                raise
            if name[-1].lower() == CHANGES:
                return Source(name, self._catalog.load_table(name[:-1]), about=CHANGES)
            found = selected(name, self._catalog.load_table(name[:-1]), name[-1])
            if found is None:
                raise
            return found

    def on_missing(self, name: str) -> str:
        """The message for a name that no table has."""
        return str(no_table(self._catalog, tuple(json.loads(name)), self._name))

    def _shown(self, table: Table, version: Version = CURRENT) -> SparkTable:
        return SparkTable(self._ice, self._name, table, version)

    def on_tables(self, namespace: str) -> str:
        """The names of the tables of a namespace."""
        return reply([name[-1] for name in self._catalog.list_tables(tuple(json.loads(namespace)))])

    def on_table_exists(self, name: str) -> str:
        """Whether there is a table of that name."""
        return reply(self._catalog.table_exists(tuple(json.loads(name))))

    def on_create(self, asked: str) -> SparkTable:
        """Create a table, like another table if one is named.

        Spark does not know the order and the properties of that table.
        """
        given = json.loads(asked)
        creation, model = self._creation(given), given.get("model")
        if model is not None and model[0] == self._name:
            table = self._catalog.load_table(tuple(model[1:]))
            properties = {**table.properties, "format-version": table.format_version, **creation["properties"]}
            creation |= {"schema": table.schema(), "partition_spec": table.spec(), "properties": properties}
            creation["sort_order"] = table.sort_order()
        return self._shown(self._catalog.create_table(**creation))

    def on_stage(self, asked: str) -> StagedTable:
        """Begin to create or replace a table; this takes effect when its rows have been written."""
        given = json.loads(asked)
        creation, how = self._creation(given), given["how"]
        there = how != "create" and (how == "replace" or self._catalog.table_exists(creation["identifier"]))
        begin = self._catalog.replace_table_transaction if there else self._catalog.create_table_transaction
        return StagedTable(self._ice, self._name, begin(**creation))

    def _creation(self, given: Any) -> dict[str, Any]:
        """The arguments of ``Catalog.create_table``."""
        hidden = _OF_SPARK | MADE_PROPERTIES
        properties = {name: value for name, value in given["properties"].items() if name not in hidden}
        provider = given["properties"].get("provider", "iceberg").lower()
        if provider in _FORMATS:
            properties.setdefault("write.format.default", provider)
        elif provider not in _OURS:
            raise UnsupportedFeature(
                f"USING {provider} is not possible in the catalog '{self._name}': take iceberg, parquet, orc or avro, "
                f"or name a table of Spark's own, as spark_catalog.{'.'.join(given['name'])}"
            )
        if given["properties"].get("external") == "true" and "location" not in properties:
            raise InvalidArgument(f"CREATE EXTERNAL TABLE takes a LOCATION: {'.'.join(given['name'])} has none")
        return {
            "identifier": tuple(given["name"]),
            "schema": created_schema(self._ice.spark, spark_types.StructType.fromJson(given["schema"])),
            "location": _slashed(properties.pop("location", None)),
            "partition_spec": [_partition_field(each) for each in given["partitions"]],
            "properties": properties,
        }

    def on_alter(self, asked: str) -> SparkTable:
        """Change the columns and properties of a table, in one commit."""
        given = json.loads(asked)
        table = self._catalog.load_table(tuple(given["name"]))
        alter(self._ice.spark, table, given["changes"])
        return self._shown(table)

    def on_drop(self, asked: str) -> str:
        """Drop a table; return whether it existed."""
        given = json.loads(asked)
        try:
            self._catalog.drop_table(tuple(given["name"]), purge=given["purge"])
        except NoSuchTable:
            return reply(False)
        return reply(True)

    def on_rename(self, asked: str) -> None:
        """Rename a table."""
        given = json.loads(asked)
        self._catalog.rename_table(tuple(given["name"]), self._here(given["to"]))

    def _here(self, name: list[str]) -> tuple[str, ...]:
        """A new name without the catalog's name, which Spark would take for the first level of the namespace."""
        return tuple(name[1:] if len(name) > 2 and name[0] == self._name else name)

    # Views.

    def on_view(self, name: str) -> StoredView | None:
        """A view; None if there is no view of the name."""
        return self.views.find(tuple(json.loads(name)))

    def on_views(self, namespace: str) -> str:
        """The names of the views of a namespace."""
        return reply(self.views.names(tuple(json.loads(namespace))))

    def on_view_exists(self, name: str) -> str:
        """Whether there is a view of that name."""
        return reply(self.views.loaded(tuple(json.loads(name))) is not None)

    def on_draft_view(self, asked: str) -> Draft:
        """A view that Spark creates; it is stored after its query was checked."""
        return Draft(self.views, json.loads(asked))

    def on_drop_view(self, name: str) -> str:
        """Drop a view; return whether it existed."""
        return reply(self.views.drop(tuple(json.loads(name))))

    def on_rename_view(self, asked: str) -> None:
        """Rename a view."""
        given = json.loads(asked)
        self._catalog.rename_view(tuple(given["name"]), self._here(given["to"]))

    # Procedures.

    def procedure(self, name: Sequence[str]) -> CatalogProcedure:
        """The procedure of a name. Raises ``UnsupportedFeature`` if there is no such procedure."""
        return CatalogProcedure(self._ice, self._name, name)

    def on_procedure(self, name: str) -> CatalogProcedure:
        """A procedure."""
        return self.procedure(json.loads(name))

    def on_procedures(self, namespace: str) -> str:
        """The names of the procedures of a namespace."""
        return reply(procedure_names(json.loads(namespace)))

    # Namespaces.

    def on_namespaces(self, parent: str) -> str:
        """The namespaces in another one."""
        return reply([list(each) for each in self._catalog.list_namespaces(tuple(json.loads(parent)))])

    def on_namespace_exists(self, namespace: str) -> str:
        """Whether there is a namespace of that name."""
        return reply(self._catalog.namespace_exists(tuple(json.loads(namespace))))

    def on_namespace(self, namespace: str) -> str:
        """The properties of a namespace."""
        return reply(dict(self._catalog.load_namespace_properties(tuple(json.loads(namespace)))))

    def on_create_namespace(self, asked: str) -> None:
        """Create a namespace."""
        given = json.loads(asked)
        properties = {name: value for name, value in given["properties"].items() if name != "owner"}
        self._catalog.create_namespace(tuple(given["name"]), properties)

    def on_alter_namespace(self, asked: str) -> None:
        """Change the properties of a namespace."""
        given = json.loads(asked)
        made, removed = given["set"], set(given["remove"])
        if made.get("comment") == "":  # COMMENT ON NAMESPACE ... IS NULL
            removed.add("comment")
            del made["comment"]
        self._catalog.update_namespace_properties(tuple(given["name"]), removed, made)

    def on_drop_namespace(self, asked: str) -> None:
        """Drop a namespace, with all of its contents if ``cascade`` is given."""
        given = json.loads(asked)
        name = tuple(given["name"])
        inner = self._catalog.walk_namespaces(name) if given["cascade"] else ()
        for each in reversed([name, *inner]):
            if given["cascade"]:
                _drop_contents(self._catalog, each)
            self._catalog.drop_namespace(each)


def _drop_contents(catalog: Catalog, namespace: tuple[str, ...]) -> None:
    """Drop the tables and views directly in a namespace. Files of tables stay, as with DROP TABLE."""
    for name in catalog.list_tables(namespace):
        catalog.drop_table(name)
    for name in catalog.list_views(namespace) if isinstance(catalog.backend, ViewCatalog) else ():
        catalog.drop_view(name)


def _slashed(location: str | None) -> str | None:
    """A location in its original form: Spark turns ``file:///path`` into ``file:/path``, which not all engines read."""
    if location is None or not location.startswith("file:/") or location.startswith("file://"):
        return location
    return f"file://{location.removeprefix('file:')}"


def _partition_field(described: Any) -> Any:
    name, arguments = described["transform"], described["arguments"]
    columns = [each["column"] for each in arguments if "column" in each]
    numbers = [int(each["value"]) for each in arguments if "value" in each]
    if len(columns) != 1:
        raise InvalidArgument(f"a partition field has one column, not {len(columns)}: {name}")
    column = ".".join(columns[0])
    if name == "identity":
        return column
    if name in _SHORT:
        return (column, f"{name}[{numbers[0]}]", f"{column}_{_SHORT[name]}")
    return (column, PLAIN.get(name.upper(), name))
