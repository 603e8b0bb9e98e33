"""What is looked at in the entries of manifests, alone and next to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import IcefieldError
from icefield.health.tables import rules
from icefield.health.tables.ledger import Ledger
from icefield.health.tables.rules import Rule
from icefield.health.tables.subject import Subject
from icefield.manifest import DataFileContent, EntryStatus, ManifestContent, ManifestEntries
from icefield.manifest import schemas as f
from icefield.metadata.snapshots import Snapshot
from icefield.types.values import from_bytes_array

RULES: Final = (
    rules.ENTRY_NUMBERS,
    rules.LISTED_TWICE,
    rules.SORT_ORDERS,
    rules.EQUALITY_IDS,
    rules.VECTOR_VERSION,
    rules.VECTOR_FIELDS,
    rules.VECTORS_TWICE,
    rules.DANGLING,
    rules.ROW_IDS_MISSING,
    rules.ROW_IDS_TWICE,
    rules.COUNTS_IMPOSSIBLE,
    rules.BOUNDS_CROSSED,
)
_TOGETHER: Final = (
    f.CONTENT,
    f.FILE_PATH,
    f.FILE_FORMAT,
    f.RECORD_COUNT,
    f.SEQUENCE_NUMBER,
    f.FIRST_ROW_ID,
    f.REFERENCED_DATA_FILE,
    f.CONTENT_OFFSET,
)
_WORKED_OUT: Final = (rules.COUNTS_IMPOSSIBLE, rules.BOUNDS_CROSSED)
_V3: Final = 3


def examine_entries(subject: Subject, ledger: Ledger) -> None:
    """Look at the entries at the heads of branches and tags."""
    for entries in subject.readable():
        _EntriesExamination(subject, entries, ledger).run()
        ledger.look_at(None)
    for head in subject.heads():
        _look_together(subject, head, ledger)


@dataclass(frozen=True, slots=True)
class _EntriesExamination:
    """The entries of one manifest, each looked at for itself."""

    subject: Subject
    entries: ManifestEntries
    ledger: Ledger

    def run(self) -> None:
        for rule, look in (
            (rules.ENTRY_NUMBERS, self._numbers),
            (rules.SORT_ORDERS, self._orders),
            (rules.EQUALITY_IDS, self._ids),
            (rules.VECTOR_VERSION, self._vector_version),
            (rules.VECTOR_FIELDS, self._vector_fields),
            (rules.COUNTS_IMPOSSIBLE, self._counts),
            (rules.BOUNDS_CROSSED, self._bounds),
        ):
            self.ledger.look_at(rule)
            look()

    def _breach(self, rule: Rule, mask: Any, found: str) -> None:
        """Note the live entries that a mask marks, as breaches of a rule."""
        marked = np.asarray(pc.fill_null(mask, False)) if isinstance(mask, pa.Array) else np.asarray(mask)
        rows = np.flatnonzero(marked & (self.entries.status() != EntryStatus.DELETED))
        if len(rows):
            paths = self.entries.column(f.FILE_PATH).take(pa.array(rows)).to_pylist()
            manifest = self.entries.manifest
            of_deletes = manifest.content is ManifestContent.DELETES
            why = "counts and bounds are worked out for data files only" if rule in _WORKED_OUT and of_deletes else ""
            self.ledger.breach(rule, paths[0], f"{found}, in {manifest.manifest_path}", paths[1:], no_repair=why)

    def _numbers(self) -> None:
        if self.subject.metadata.format_version == 1:
            return
        last = self.subject.metadata.last_sequence_number
        own = self.entries.manifest.sequence_number
        data, file = self.entries.column(f.SEQUENCE_NUMBER), self.entries.column(f.FILE_SEQUENCE_NUMBER)
        self._breach(rules.ENTRY_NUMBERS, pc.is_null(data), "the entry has no data sequence number")
        self._breach(rules.ENTRY_NUMBERS, pc.greater(data, last), f"its data sequence number is above {last}, the last")
        self._breach(
            rules.ENTRY_NUMBERS, pc.greater(file, own), f"its file sequence number is above its manifest's, {own}"
        )

    def _orders(self) -> None:
        metadata = self.subject.metadata
        order = self.entries.column(f.SORT_ORDER_ID)
        known = pa.array([each.order_id for each in metadata.sort_orders] or [0], pa.int32())
        unknown = pc.and_not(pc.is_valid(order), pc.is_in(order, value_set=pa.concat_arrays([known, _UNSORTED])))
        self._breach(rules.SORT_ORDERS, unknown, "it names a sort order that the table does not have")

    def _ids(self) -> None:
        metadata, content = self.subject.metadata, np.asarray(self.entries.column(f.CONTENT))
        lists = self.entries.column(f.EQUALITY_IDS)
        lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0))
        is_equality = content == DataFileContent.EQUALITY_DELETES
        self._breach(rules.EQUALITY_IDS, is_equality & (lengths == 0), "an equality delete file names no column")
        columns = {number for schema in metadata.schemas for number in schema.id_to_field}
        used = pc.is_in(pc.list_flatten(lists), value_set=pa.array(sorted(columns), pa.int32()))
        parents = np.asarray(pc.list_parent_indices(lists))
        strange = np.zeros(len(self.entries), bool)
        strange[parents[~np.asarray(used)]] = True
        self._breach(rules.EQUALITY_IDS, is_equality & strange, "it names a column that no schema of the table has")

    def _vectors(self) -> np.ndarray:
        return np.asarray(pc.equal(self.entries.column(f.FILE_FORMAT), "puffin"))

    def _vector_version(self) -> None:
        if self.subject.metadata.format_version < _V3:
            found = f"a deletion vector in format version {self.subject.metadata.format_version}"
            self._breach(rules.VECTOR_VERSION, self._vectors(), found)

    def _vector_fields(self) -> None:
        vectors = self._vectors()
        for number, name in (
            (f.REFERENCED_DATA_FILE, "referenced_data_file"),
            (f.CONTENT_OFFSET, "content_offset"),
            (f.CONTENT_SIZE, "content_size_in_bytes"),
        ):
            missing = np.asarray(pc.is_null(self.entries.column(number)))
            self._breach(rules.VECTOR_FIELDS, vectors & missing, f"a deletion vector without {name}")

    def _counts(self) -> None:
        rows = self.entries.column(f.RECORD_COUNT)
        self._breach(rules.COUNTS_IMPOSSIBLE, pc.less(rows, 0), "its record count is negative")
        size = self.entries.column(f.FILE_SIZE)
        self._breach(rules.COUNTS_IMPOSSIBLE, pc.less(size, 0), "its size is negative")
        schema = self.subject.metadata.schema()
        for number in schema.id_to_field:
            values = self.entries.statistic(f.VALUE_COUNTS, number)
            name = schema.find_column_name(number)
            if values is not None and not schema.is_repeated(number):
                found = f"column '{name}' has another number of values than the file has rows"
                self._breach(rules.COUNTS_IMPOSSIBLE, pc.not_equal(values, rows), found)
            for kind, what in ((f.NULL_VALUE_COUNTS, "nulls"), (f.NAN_VALUE_COUNTS, "NaNs")):
                counts = self.entries.statistic(kind, number)
                if values is not None and counts is not None:
                    found = f"column '{name}' has more {what} than values"
                    self._breach(rules.COUNTS_IMPOSSIBLE, pc.greater(counts, values), found)

    def _bounds(self) -> None:
        schema = self.subject.metadata.schema()
        for number, column in schema.id_to_field.items():
            name = schema.find_column_name(number)
            try:
                low, high = (
                    self.entries.bound(kind, number, column.field_type, from_bytes_array)
                    for kind in (f.LOWER_BOUNDS, f.UPPER_BOUNDS)
                )
                if low is None or high is None:
                    continue
                crossed = pc.greater(_stored(low), _stored(high))
            except (IcefieldError, pa.ArrowNotImplementedError):
                continue  # no order of Arrow's: points, or bounds of another type
            self._breach(rules.BOUNDS_CROSSED, crossed, f"the lower bound of column '{name}' is above the upper one")


def _stored(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


_UNSORTED: Final = pa.array([0], pa.int32())


@dataclass(slots=True)
class _Live:
    """The live entries of one snapshot, in columns."""

    parts: list[pa.RecordBatch] = field(default_factory=list)

    def add(self, entries: ManifestEntries) -> None:
        """Take the live entries of a manifest."""
        live = pa.array(entries.status() != EntryStatus.DELETED)
        columns = [entries.column(number).filter(live) for number in _TOGETHER]
        self.parts.append(pa.RecordBatch.from_arrays(columns, names=[str(number) for number in _TOGETHER]))

    def table(self, content: Sequence[DataFileContent]) -> pa.Table:
        """The entries of some contents."""
        table = pa.Table.from_batches(self.parts)
        kinds = pa.array([int(each) for each in content], pa.int32())
        return table.filter(pc.is_in(table.column(str(f.CONTENT)), value_set=kinds))


def _look_together(subject: Subject, head: Snapshot, ledger: Ledger) -> None:
    live = _Live()
    for manifest in subject.manifests(head):
        try:
            live.add(subject.entries(manifest))
        except IcefieldError:
            return  # what follows needs every entry; that one is missing is said elsewhere
    if not live.parts:
        return
    data = live.table([DataFileContent.DATA])
    deletes = live.table([DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES])
    ledger.look_at(rules.LISTED_TWICE)
    _twice(data, f.FILE_PATH, rules.LISTED_TWICE, "live in more than one entry", ledger)
    ledger.look_at(rules.VECTORS_TWICE)
    vectors = deletes.filter(pc.equal(_column(deletes, f.FILE_FORMAT), "puffin"))
    _twice(vectors, f.REFERENCED_DATA_FILE, rules.VECTORS_TWICE, "more than one deletion vector", ledger)
    ledger.look_at(rules.DANGLING)
    _dangling(data, deletes, ledger)
    if subject.metadata.format_version >= _V3 and head.first_row_id is not None:
        _row_ids(data, ledger)
    ledger.look_at(None)


def _column(table: pa.Table, number: int) -> pa.ChunkedArray:
    return table.column(str(number))


def _twice(table: pa.Table, number: int, rule: Rule, found: str, ledger: Ledger) -> None:
    counts = table.group_by(str(number)).aggregate([([], "count_all")])
    for row in counts.filter(pc.greater(counts.column("count_all"), 1)).to_pylist():
        if row[str(number)] is not None:
            ledger.breach(rule, row[str(number)], f"{found}: {row['count_all']}")


def _dangling(data: pa.Table, deletes: pa.Table, ledger: Ledger) -> None:
    """Delete files that can delete nothing: their one data file is gone, or every data file is newer."""
    paths = _column(data, f.FILE_PATH).combine_chunks()
    named = _column(deletes, f.REFERENCED_DATA_FILE)
    gone = pc.and_not(pc.is_valid(named), pc.is_in(named, value_set=paths))
    for row in deletes.filter(gone).to_pylist():
        found = f"it deletes rows of {row[str(f.REFERENCED_DATA_FILE)]}, which is no file of the table"
        ledger.breach(rules.DANGLING, row[str(f.FILE_PATH)], found)
    oldest = pc.min(_column(data, f.SEQUENCE_NUMBER)).as_py()
    numbers, content = _column(deletes, f.SEQUENCE_NUMBER), _column(deletes, f.CONTENT)
    first = 0 if oldest is None else oldest
    # An equality delete applies to older files only, a position delete to those of its own commit as well.
    late = pc.or_(pc.less(numbers, first), pc.and_(pc.equal(numbers, first), pc.equal(content, _EQUALITY)))
    unused = pc.and_not(late if oldest is not None else pc.is_valid(numbers), gone)
    for path in _column(deletes.filter(unused), f.FILE_PATH).to_pylist():
        ledger.breach(rules.DANGLING, path, "every data file of the table is newer than it")


_EQUALITY: Final = int(DataFileContent.EQUALITY_DELETES)


def _row_ids(data: pa.Table, ledger: Ledger) -> None:
    ledger.look_at(rules.ROW_IDS_MISSING)
    first = _column(data, f.FIRST_ROW_ID)
    for path in _column(data.filter(pc.is_null(first)), f.FILE_PATH).to_pylist():
        ledger.breach(rules.ROW_IDS_MISSING, path, "the file has no first row id")
    ledger.look_at(rules.ROW_IDS_TWICE)
    known = data.filter(pc.is_valid(first)).sort_by(str(f.FIRST_ROW_ID))
    starts, rows = (np.asarray(_column(known, number)) for number in (f.FIRST_ROW_ID, f.RECORD_COUNT))
    for row in np.flatnonzero(starts[1:] < (starts + rows)[:-1]) + 1:
        path = _column(known, f.FILE_PATH)[int(row)].as_py()
        ledger.breach(rules.ROW_IDS_TWICE, path, f"its row ids begin at {starts[row]}, within those of another file")
