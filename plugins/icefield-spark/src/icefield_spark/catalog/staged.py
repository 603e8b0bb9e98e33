"""Tables that are created or replaced together with their first rows: CREATE and REPLACE TABLE AS SELECT."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from icefield.transaction import Transaction
from pyspark.sql import DataFrame

from icefield_spark.catalog.bridge import Remote, reply
from icefield_spark.catalog.described import described

if TYPE_CHECKING:
    from icefield_spark.session import IcefieldSession


class StagedTable(Remote):
    """A table that a transaction makes."""

    def __init__(self, ice: IcefieldSession, catalog_name: str, transaction: Transaction[Any]) -> None:
        self._ice = ice
        self._catalog_name = catalog_name
        self._transaction = transaction

    def on_describe(self, _: None) -> str:
        """Everything that Spark asks about a table, at once."""
        shape = self._transaction.shape
        return described(
            (self._catalog_name, *self._transaction.context.name),
            shape,
            shape.schema(),
            version="staged",
            metadata_columns=[],
            writable=True,
            streams=False,
            lineage=False,
        )

    def on_can_overwrite(self, _: str) -> str:
        """Whether a filter states the rows to replace exactly: always, as there are no rows."""
        return reply(True)

    def on_write(self, asked: str) -> StagedWrite:
        """Begin to write the first rows, which come next."""
        options = {name.lower(): value for name, value in json.loads(asked)["options"].items()}
        return StagedWrite(self._ice, self._transaction, options.get("distribution-mode"))

    def on_commit(self, _: None) -> None:
        """Create or replace the table."""
        self._transaction.commit_transaction()

    def on_abort(self, _: None) -> None:
        """Leave the table unchanged, and delete the files of the rows."""
        self._transaction.abort()


class StagedWrite(Remote):
    """The first rows of a table."""

    def __init__(self, ice: IcefieldSession, transaction: Transaction[Any], distribution: str | None) -> None:
        self._ice = ice
        self._transaction = transaction
        self._distribution = distribution

    def on_rows(self, rows: Any) -> None:
        """Write a frame of Spark's."""
        self._ice._fill(DataFrame(rows, self._ice.spark), self._transaction, self._distribution, "auto")
