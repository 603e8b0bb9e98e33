"""A catalog of Spark's that is one of Icefield's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from icefield import Catalog
from icefield.errors import InvalidArgument, NoSuchTable
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types

from icefield_spark.catalog.altering import alter
from icefield_spark.catalog.bridge import Remote, reply
from icefield_spark.catalog.compiling import CATALOG, compiled_class
from icefield_spark.catalog.scans import Version
from icefield_spark.catalog.tables import SparkTable
from icefield_spark.types import from_spark_schema

if TYPE_CHECKING:
    from icefield_spark.session import IcefieldSession

_OF_SPARK = frozenset({"provider", "owner", "external", "is_managed_location", "table_type"})
_PLURALS = {"years": "year", "months": "month", "days": "day", "hours": "hour"}


def install(spark: SparkSession, catalog: Catalog, name: str) -> None:
    """Make the tables of a catalog tables of a session, as ``name.namespace.table``.

    Clones of the session know them, too. Raises ``UnsupportedFeature`` where the Java classes of the catalog cannot be
    added to the session's JVM.
    """
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[attr-defined]
    compiled_class(spark, CATALOG)
    key = uuid4().hex
    holder = compiled_class(spark, "icefield.spark.Python").getField("CATALOGS").get(None)
    holder.put(key, Attachment(spark, catalog, name))
    setting = f"spark.sql.catalog.{name}"
    spark.conf.set(setting, CATALOG)
    spark.conf.set(f"{setting}.key", key)
    spark._jsparkSession.sessionState().catalogManager().catalog(name)
    methods = spark._jsparkSession.experimental()
    strategies = methods.extraStrategies()
    found = [strategies.apply(at).getClass().getSimpleName() for at in range(strategies.size())]
    if "IcefieldStrategy" not in found:
        strategy = compiled_class(spark, "icefield.spark.IcefieldStrategy")
        made = strategy.getDeclaredConstructors()[0]
        made.setAccessible(True)
        empty = spark.sparkContext._gateway.new_array(spark._jvm.java.lang.Object, 0)  # type: ignore[attr-defined]
        jvm_list = spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
        for at in range(strategies.size()):
            jvm_list.add(strategies.apply(at))
        jvm_list.add(made.newInstance(empty))
        getattr(methods, "extraStrategies_$eq")(spark._jvm.PythonUtils.toSeq(jvm_list))  # type: ignore[union-attr]


class Attachment(Remote):
    """A catalog that sessions share under one name."""

    def __init__(self, spark: SparkSession, catalog: Catalog, name: str) -> None:
        self._context = spark.sparkContext
        self._catalog = catalog
        self._name = name

    def on_attached(self, session: Any) -> SessionCatalog:
        """The catalog of one session: Spark makes one for each clone."""
        from icefield_spark.session import IcefieldSession

        spark = SparkSession(self._context, session)
        return SessionCatalog(IcefieldSession(spark, self._catalog), self._name)


class SessionCatalog(Remote):
    """The catalog of a session."""

    def __init__(self, ice: IcefieldSession, name: str) -> None:
        self._ice = ice
        self._catalog = ice.catalog
        self._name = name

    # Tables.

    def on_load(self, asked: str) -> SparkTable:
        """A table, at a version where one is asked for."""
        given = json.loads(asked)
        version = Version()
        table, suffix = self._found(tuple(given["name"]))
        if suffix is not None:
            version = suffix
        elif "version" in given:
            text = given["version"]
            version = Version(snapshot_id=int(text)) if text.isdigit() else Version(ref=text)
        elif "micros" in given:
            millis = int(given["micros"]) // 1000
            version = Version(table.snapshot_as_of_timestamp(millis).snapshot_id)
        return SparkTable(self._ice, self._name, table, version)

    def _found(self, name: tuple[str, ...]) -> tuple[Any, Version | None]:
        try:
            return self._catalog.load_table(name), None
        except NoSuchTable:
            suffix = _version_named(name[-1]) if len(name) > 1 else None
            if suffix is None:
                raise
        return self._catalog.load_table(name[:-1]), suffix

    def on_tables(self, namespace: str) -> str:
        """The names of the tables of a namespace."""
        return reply([name[-1] for name in self._catalog.list_tables(tuple(json.loads(namespace)))])

    def on_table_exists(self, name: str) -> str:
        """Whether there is a table of that name."""
        return reply(self._catalog.table_exists(tuple(json.loads(name))))

    def on_create(self, asked: str) -> SparkTable:
        """Create a table."""
        given = json.loads(asked)
        schema = from_spark_schema(spark_types.StructType.fromJson(given["schema"]))
        properties = {name: value for name, value in given["properties"].items() if name not in _OF_SPARK}
        location = properties.pop("location", None)
        table = self._catalog.create_table(
            tuple(given["name"]), schema, location, [_partition_field(each) for each in given["partitions"]], None, properties
        )
        return SparkTable(self._ice, self._name, table, Version())

    def on_alter(self, asked: str) -> SparkTable:
        """Change the columns and properties of a table, in one commit."""
        given = json.loads(asked)
        table = self._catalog.load_table(tuple(given["name"]))
        alter(table, given["changes"])
        return SparkTable(self._ice, self._name, table, Version())

    def on_drop(self, asked: str) -> str:
        """Drop a table; whether there was one."""
        given = json.loads(asked)
        try:
            self._catalog.drop_table(tuple(given["name"]), purge=given["purge"])
        except NoSuchTable:
            return reply(False)
        return reply(True)

    def on_rename(self, asked: str) -> None:
        """Rename a table."""
        given = json.loads(asked)
        self._catalog.rename_table(tuple(given["name"]), tuple(given["to"]))

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
        self._catalog.update_namespace_properties(tuple(given["name"]), set(given["remove"]), given["set"])

    def on_drop_namespace(self, asked: str) -> None:
        """Drop a namespace, with all its tables where ``cascade`` is asked for."""
        given = json.loads(asked)
        name = tuple(given["name"])
        if given["cascade"]:
            for table in self._catalog.list_tables(name):
                self._catalog.drop_table(table)
        self._catalog.drop_namespace(name)


def _version_named(name: str) -> Version | None:
    """The version that the last part of a name states: ``branch_x``, ``tag_x``, ``snapshot_id_1``."""
    for prefix in ("branch_", "tag_"):
        if name.startswith(prefix):
            return Version(ref=name.removeprefix(prefix))
    number = name.removeprefix("snapshot_id_")
    if number != name and number.isdigit():
        return Version(snapshot_id=int(number))
    return None


def _partition_field(described: Any) -> Any:
    name, arguments = described["transform"], described["arguments"]
    columns = [each["column"] for each in arguments if "column" in each]
    numbers = [int(each["value"]) for each in arguments if "value" in each]
    if len(columns) != 1:
        raise InvalidArgument(f"a partition field has one column, not {len(columns)}: {name}")
    column = ".".join(columns[0])
    if name == "identity":
        return column
    if name in ("bucket", "truncate"):
        return (column, f"{name}[{numbers[0]}]")
    return (column, _PLURALS.get(name, name))


