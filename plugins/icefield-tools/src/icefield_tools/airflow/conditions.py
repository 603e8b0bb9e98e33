"""What a sensor and its trigger wait for."""

from dataclasses import dataclass
from typing import Any

from icefield import Catalog
from icefield.errors import NoSuchTable
from icefield.metadata import Timestamp, as_milliseconds


@dataclass
class TableCondition:
    """A snapshot at the head of a table's branch, newer than a time and with rows of a filter, where they are given."""

    table: str
    branch: str = "main"
    newer_than: Timestamp | None = None
    filter: str | None = None

    def __post_init__(self) -> None:
        if self.newer_than is not None:
            self.newer_than = as_milliseconds(self.newer_than)

    def found(self, catalog: Catalog) -> dict[str, Any] | None:
        """The snapshot that fulfils the condition, in JSON types; None if there is none yet.

        A table that is missing is waited for, a column of the filter is not.
        """
        try:
            table = catalog.load_table(self.table)
        except NoSuchTable:
            return None
        snapshot = table.snapshot_by_name(self.branch)
        if snapshot is None:
            return None
        if self.newer_than is not None and snapshot.timestamp_ms <= as_milliseconds(self.newer_than):
            return None
        if self.filter is not None and not table.scan(self.filter, limit=1, ref=self.branch).count():
            return None
        return {
            "table": self.table,
            "branch": self.branch,
            "snapshot_id": str(snapshot.snapshot_id),  # pages of Airflow would round a number
            "timestamp_ms": snapshot.timestamp_ms,
        }
