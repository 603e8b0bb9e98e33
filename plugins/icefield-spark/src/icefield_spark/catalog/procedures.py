"""Procedures of a session's catalog: what Spark is told of one, and what it gives for arguments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from icefield_spark.catalog.bridge import Remote, reply
from icefield_spark.sql.procedures import NAMESPACE, PROCEDURES, procedure

if TYPE_CHECKING:
    from icefield_spark.session import IcefieldSession


class CatalogProcedure(Remote):
    """A procedure, as Spark loaded it for one statement."""

    def __init__(self, ice: IcefieldSession, catalog_name: str, name: list[str]) -> None:
        """Raises ``UnsupportedFeature`` where there is none of the name."""
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

    def on_call(self, given: str) -> str:
        """The rows of a call. A name of one part is looked up where the session looks it up."""
        spark = self._ice.spark
        manager = spark._jsparkSession.sessionState().catalogManager()
        is_current = manager.currentCatalog().name() == self._catalog_name
        namespace = tuple(manager.currentNamespace()) if is_current else ()
        rows = self._ice._statements.call(spark, self._name, json.loads(given), namespace)
        return reply([list(row) for row in rows])


def procedure_names(namespace: list[str]) -> list[str]:
    """The names of the procedures in a namespace."""
    return sorted(PROCEDURES) if [part.lower() for part in namespace] == [NAMESPACE] else []
