"""A rule and a strategy of another author: a table has a description, and the largest rows come first."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from icefield_maintenance import Ordering, OrderingRequest
from icefield_maintenance.doctor import Ledger, Repair, Result, Rule, RuleGroup, Subject

DESCRIBED = Rule(
    "tidy-described",
    "House rules",
    "set the property `comment`",
    Result.WARNING,
    no_repair="a person writes the description",
)
COMPACT = Rule("tidy-compact", "House rules", "write the files anew", Result.WARNING, repair=Repair.REWRITE_DATA_FILES)


def examine(subject: Subject, ledger: Ledger) -> None:
    """Look for a description, and for more than two data files."""
    ledger.look_at(DESCRIBED)
    if not subject.metadata.properties.get("comment"):
        ledger.breach(DESCRIBED, subject.metadata_location, "the table has no comment")
    ledger.look_at(COMPACT)
    if len(subject.data_files()) > 2:
        ledger.breach(COMPACT, subject.metadata.location, "the table was written in many small commits")


RULES = RuleGroup((DESCRIBED, COMPACT), examine)


class Descending(Ordering):
    """Sorts the rows by the first column, the largest first."""

    def __init__(self, request: OrderingRequest) -> None:
        order = request.sort_order
        self.column = str(order) if order is not None else request.metadata.schema().fields[0].name

    def rows(
        self, batches: Iterator[pa.RecordBatch], schema: pa.Schema, read_columns: object
    ) -> Iterator[pa.RecordBatch]:
        """The rows, sorted in memory."""
        rows = pa.Table.from_batches(batches, schema)
        yield from rows.sort_by([(self.column, "descending")]).to_batches()
