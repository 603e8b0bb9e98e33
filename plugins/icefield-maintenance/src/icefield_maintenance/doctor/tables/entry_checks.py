"""Checks of single manifest entries. ``live_checks`` checks all entries of a snapshot together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import manifest as f
from icefield.engine import from_bytes_array
from icefield.errors import IcefieldError
from icefield.manifest import DataFileContent, EntryStatus, ManifestContent, ManifestEntries, map_parts

from icefield_maintenance.doctor.tables import rules
from icefield_maintenance.doctor.tables.ledger import Ledger
from icefield_maintenance.doctor.tables.rules import Rule
from icefield_maintenance.doctor.tables.subject import Subject

_WORKED_OUT: Final = (rules.COUNTS_IMPOSSIBLE, rules.BOUNDS_CROSSED)
_V3: Final = 3


RULES: Final = (
    rules.ENTRY_NUMBERS,
    rules.SORT_ORDERS,
    rules.EQUALITY_IDS,
    rules.VECTOR_VERSION,
    rules.VECTOR_FIELDS,
    rules.COUNTS_IMPOSSIBLE,
    rules.BOUNDS_CROSSED,
    rules.SPLIT_OFFSETS,
    rules.COLUMN_SIZES,
)


def look_at_entries(subject: Subject, entries: ManifestEntries, ledger: Ledger) -> None:
    """Check each entry of a manifest."""
    # The single statistics are kept in an object of their own, which is dropped after the checks.
    _EntriesExamination(subject, entries.select(entries.read), ledger).run()


@dataclass(frozen=True, slots=True)
class _EntriesExamination:
    """Checks of each entry of one manifest."""

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
            (rules.SPLIT_OFFSETS, self._split_offsets),
            (rules.COLUMN_SIZES, self._column_sizes),
        ):
            self.ledger.look_at(rule)
            look()

    def _breach(self, rule: Rule, mask: Any, found: str) -> None:
        """Note the live entries that a mask marks, as breaches of a rule."""
        if isinstance(mask, pa.Array):
            if not mask.true_count:
                return
            mask = pc.fill_null(mask, False)
        marked = np.asarray(mask)
        if not marked.any():
            return
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
        for kind in (f.VALUE_COUNTS, f.NULL_VALUE_COUNTS, f.NAN_VALUE_COUNTS):
            self.entries.gather(kind, schema.id_to_field)
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
        for kind in (f.LOWER_BOUNDS, f.UPPER_BOUNDS):
            self.entries.gather(kind, schema.id_to_field)
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
                continue  # Arrow has no order for points, or a bound is of another type
            self._breach(rules.BOUNDS_CROSSED, crossed, f"the lower bound of column '{name}' is above the upper one")

    def _split_offsets(self) -> None:
        lists, sizes = self.entries.column(f.SPLIT_OFFSETS), np.asarray(self.entries.column(f.FILE_SIZE))
        offsets = pc.list_flatten(lists).to_numpy(zero_copy_only=False)
        parents = np.asarray(pc.list_parent_indices(lists))
        descending = np.zeros(len(self.entries), bool)
        descending[parents[1:][(offsets[1:] < offsets[:-1]) & (parents[1:] == parents[:-1])]] = True
        self._breach(rules.SPLIT_OFFSETS, descending, "its split offsets do not ascend")
        outside = np.zeros(len(self.entries), bool)
        # Another rule reports a negative size.
        outside[parents[(offsets < 0) | ((offsets >= sizes[parents]) & (sizes[parents] >= 0))]] = True
        self._breach(rules.SPLIT_OFFSETS, outside, "a split offset is outside of the file")

    def _column_sizes(self) -> None:
        maps, sizes = self.entries.column(f.COLUMN_SIZES), np.asarray(self.entries.column(f.FILE_SIZE))
        offsets, _, values = map_parts(maps)
        first, last = int(offsets[0]), int(offsets[-1])
        held = np.asarray(pc.fill_null(values.slice(first, last - first), 0))
        limits = np.repeat(sizes, np.diff(offsets))
        wrong = np.zeros(len(self.entries), bool)
        rows = np.repeat(np.arange(len(self.entries)), np.diff(offsets))
        wrong[rows[(held < 0) | ((held > limits) & (limits >= 0))]] = True
        wrong &= np.asarray(pc.is_valid(maps))
        self._breach(rules.COLUMN_SIZES, wrong, "the size of a column is negative, or above that of the file")


def _stored(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


_UNSORTED: Final = pa.array([0], pa.int32())
