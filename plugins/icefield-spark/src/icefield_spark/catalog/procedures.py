"""Procedures of a session's catalog: their descriptions for Spark, and their calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from icefield_spark.catalog.bridge import Remote, reply
from icefield_spark.sql.arguments import taken
from icefield_spark.sql.context import Rows
from icefield_spark.sql.parsing import Cursor
from icefield_spark.sql.procedures import NAMESPACE, PROCEDURES, procedure

if TYPE_CHECKING:
    from icefield_spark.session import IcefieldSession


class CatalogProcedure(Remote):
    """A procedure, as Spark loaded it for one statement."""

    def __init__(self, ice: IcefieldSession, catalog_name: str, name: Sequence[str]) -> None:
        """Raises ``UnsupportedFeature`` where no procedure has this name."""
        self._ice = ice
        self._catalog_name = catalog_name
        self._name = name
        self._procedure = procedure(name)

    def on_describe(self, _: None) -> str:
        """Everything that Spark asks about a procedure, at once."""
        parameters = [
            {"name": each.name, "type": each.kind, "doc": each.doc, "required": each.required}
            for each in self._procedure.parameters
        ]
        about = {"name": self._name[-1].lower(), "doc": self._procedure.description, "columns": self._procedure.columns}
        return reply({**about, "parameters": parameters})

    @property
    def columns(self) -> str:
        """The names and types of the procedure's result columns."""
        return self._procedure.columns

    def on_call(self, given: str) -> str:
        """The rows of a call."""
        return reply([list(row) for row in self._called(self._ice.spark, json.loads(given))])

    def of_text(self, spark: SparkSession, cursor: Cursor) -> Rows:
        """The rows of a call in a session; the cursor stands before the parentheses of the arguments."""
        given = taken(spark, self._name[-1].lower(), self._procedure.parameters, cursor)
        cursor.expect_end()
        return self._called(spark, given)

    def _called(self, spark: SparkSession, given: Mapping[str, Any]) -> Rows:
        """The rows of a call. A name with one part is looked up in the session's current namespace."""
        manager = spark._jsparkSession.sessionState().catalogManager()
        is_current = manager.currentCatalog().name() == self._catalog_name
        namespace = tuple(manager.currentNamespace()) if is_current else ()
        return self._ice._statements.call(self._ice.spark, self._name, given, namespace)


def procedure_names(namespace: list[str]) -> list[str]:
    """The names of the procedures in a namespace."""
    return sorted(PROCEDURES) if [part.lower() for part in namespace] == [NAMESPACE] else []
