"""The properties of Iceberg's Java catalogs in the settings of Spark, as properties of Icefield. It needs no Spark."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from icefield.errors import InvalidArgument, UnsupportedFeature

PREFIX = "spark.sql.catalog."
MARK = "icefield"
"""The value of ``spark.sql.catalog.<name>`` that asks for a catalog of Icefield's."""
JAVA = ("org.apache.iceberg.spark.SparkCatalog", "org.apache.iceberg.spark.SparkSessionCatalog")
"""The values that ask for a catalog of Iceberg's Java runtime."""

_TYPES = {"hadoop": "directory", "jdbc": "sql"}
_CLASSES = {
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
    "org.apache.iceberg.hadoop.HadoopCatalog": "directory",
    "org.apache.iceberg.hive.HiveCatalog": "hive",
    "org.apache.iceberg.jdbc.JdbcCatalog": "sql",
    "org.apache.iceberg.rest.RESTCatalog": "rest",
}
# These properties have no meaning here: tables are not cached, and the scheme of a location determines the file system.
_WITHOUT_MEANING = ("cache-enabled", "cache.", "io-impl", "use-nullable-query-schema", "default-namespace", "key")
_NOT_TRANSLATED = ("hadoop.", "metrics-reporter-impl", "lock-impl", "clients", "client.factory")


def translated(name: str, properties: Mapping[str, str], *, strict: bool = False) -> dict[str, Any]:
    """The properties of a Java catalog, translated into properties of ``load_catalog``.

    Raises ``InvalidArgument`` for a missing catalog, and warns of a property that would have no effect; with ``strict``
    it raises ``UnsupportedFeature`` for that.
    """
    found: dict[str, Any] = {key: value for key, value in properties.items() if not key.startswith(_WITHOUT_MEANING)}
    for key in [key for key in found if key.startswith(_NOT_TRANSLATED)]:
        said = f"catalog '{name}': the property {key} has no effect in Icefield"
        if strict:
            raise UnsupportedFeature(f"{said}: remove it, or give the catalog in icefield.toml", property=key)
        warnings.warn(said, stacklevel=4)
        del found[key]
    kind, implementation = found.get("type"), found.pop("catalog-impl", None)
    if implementation is not None:
        if kind is not None:
            raise InvalidArgument(f"catalog '{name}': give type or catalog-impl, and not both")
        kind = _CLASSES.get(implementation)
        if kind is None:
            known = ", ".join(each.rpartition(".")[2] for each in _CLASSES)
            raise InvalidArgument(f"catalog '{name}': there is no {implementation} here; known are {known}")
    if kind == "nessie":
        raise InvalidArgument(
            f"catalog '{name}': the type nessie of Java speaks a protocol of Nessie's own; give type=rest, and the "
            "uri of Nessie's REST catalog, such as https://host:19120/iceberg"
        )
    if kind is not None:
        found["type"] = _TYPES.get(kind, kind)
    if found.get("uri", "").startswith("jdbc:"):
        found["uri"] = _of_jdbc(name, found["uri"], found.pop("jdbc.user", None), found.pop("jdbc.password", None))
    return found


def _of_jdbc(name: str, uri: str, user: str | None, password: str | None) -> str:
    kind, _, rest = uri.removeprefix("jdbc:").partition(":")
    if kind == "sqlite":
        return f"sqlite:///{rest}"
    if kind != "postgresql":
        raise InvalidArgument(f"catalog '{name}': jdbc:{kind} is not known; known are jdbc:postgresql and jdbc:sqlite")
    login = "" if user is None else quote(user, safe="")
    if password is not None:
        login += f":{quote(password, safe='')}"
    return f"postgresql+psycopg://{login}@{rest.removeprefix('//')}" if login else f"postgresql+psycopg:{rest}"
