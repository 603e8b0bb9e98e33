"""Some columns and rows of a scan, for a library that asks for less than the whole scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from icefield.expressions import BooleanExpression
from icefield.scan import FileScanTask, IncrementalAppendScan, ScanContext, TableScan
from icefield.schema import Schema
from icefield.toolkit import lazy

from icefield_frames.filters import Translator


@dataclass(frozen=True)
class Selection:
    """Columns of a scan by their names, in any order, and a further filter of its rows.

    ``columns``: None for all. ``row_filter``: a filter in the names of ``translator``. ``limit``: the maximum number of
    rows after it.
    """

    scan: Any
    columns: tuple[str, ...] | None = None
    row_filter: BooleanExpression | None = None
    limit: int | None = None

    def read(self) -> Iterator[pa.RecordBatch]:
        """The rows, read ahead of the consumer in bounded memory."""
        scan = self._narrowed
        if is_of_files(scan):
            yield from scan.read(self.context)
            return
        names = self.columns
        for batch in scan.to_arrow_batch_reader():
            yield batch if names is None else batch.select(names)

    def files(self) -> Iterator[FileScanTask]:
        """One task for each file that may hold matching rows. Only for scans of files."""
        found: Iterator[FileScanTask] = self._narrowed.plan_files()
        return found

    def tasks(self, at_least: int = 1) -> list[tuple[FileScanTask, ...]]:
        """The tasks in groups of about equal size, for readers elsewhere. Only for scans of files without a limit."""
        return list(self._narrowed.plan_tasks(at_least))

    def count(self) -> int:
        """The number of rows. Files that match as a whole are not read."""
        return int(self._narrowed.count())

    @lazy
    def context(self) -> ScanContext:
        """The context for reading the tasks, with only the chosen columns. Only for scans of files."""
        return narrowed(self._narrowed.context, self.columns)

    @lazy
    def _narrowed(self) -> Any:
        scan = self.scan
        if self.row_filter is not None:
            scan = scan.filter(self.row_filter)
        if self.limit is not None and (scan.limit is None or self.limit < scan.limit):
            scan = replace(scan, limit=self.limit)
        return scan


def first_rows(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """At most so many rows of a stream."""
    for batch in batches:
        yield batch.slice(0, rows)
        rows -= batch.num_rows
        if rows <= 0:
            return


def narrowed(context: ScanContext, columns: tuple[str, ...] | None) -> ScanContext:
    """The context for some of the columns, in their order; None stands for all."""
    if columns is None:
        return context
    by_name = {field.name: field for field in context.projection.fields}
    return replace(context, projection=Schema(*(by_name[name] for name in columns)))


def is_of_files(scan: Any) -> bool:
    """Whether a scan reads whole data files, so that filters and columns can be pushed into it."""
    return isinstance(scan, TableScan | IncrementalAppendScan)


def translator_of(scan: Any, *, nan_is_greatest: bool) -> Translator | None:
    """The translator for filters to push into a scan; None if they must be applied to its rows.

    A limit comes before further filters, so that a scan with a limit takes none.
    """
    if scan.limit is not None or not is_of_files(scan):
        return None
    names = scan.schema.column_names
    if not scan.case_sensitive and len({name.lower() for name in names}) < len(names):
        return None  # a name would be ambiguous
    return Translator(scan.projection, scan.schema, nan_is_greatest)


def arrow_schema(scan: Any) -> pa.Schema:
    """The schema of the rows of a scan. Reads nothing."""
    return replace(scan, limit=0).to_arrow_batch_reader().schema


def with_columns(names: Sequence[str], extra: set[str], known: Sequence[str]) -> tuple[str, ...]:
    """Columns, and further ones at their end, in the order of all columns."""
    return (*names, *(name for name in known if name in extra and name not in names))
