"""Checks of data files: counts, bounds, partitions and sort orders match the rows.

Files are read whole, without their deletes: metrics count all rows of a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield.abc import Metrics
from icefield.engine import from_arrow_array, normalised_key, partition_batch, sort_indices
from icefield.errors import IcefieldError, InvalidArgument, UnsupportedFeature
from icefield.manifest import DataFile
from icefield.partitioning import SortOrder
from icefield.schema import schema_to_arrow
from icefield.toolkit import MetricsCollector
from icefield.types import NestedField, StructType

from icefield_maintenance.doctor.tables import rules
from icefield_maintenance.doctor.tables.corrections import rows_of
from icefield_maintenance.doctor.tables.groups import RuleGroup
from icefield_maintenance.doctor.tables.ledger import Ledger
from icefield_maintenance.doctor.tables.stated_bounds import wrong_bound, wrong_count
from icefield_maintenance.doctor.tables.subject import Subject, is_data


def examine_rows(subject: Subject, ledger: Ledger) -> None:
    """Check the rows of a sample of data files, or of all data files: see ``Subject.sample``."""
    for file in subject.files(is_data, subject.sample):
        _FileExamination(subject, file, ledger).run()


class _FileExamination:
    """One data file, read from end to end."""

    def __init__(self, subject: Subject, file: DataFile, ledger: Ledger) -> None:
        self._subject, self._file, self._ledger = subject, file, ledger
        self._schema = subject.metadata.schema()
        self._spec = subject.metadata.spec_by_id(file.spec_id)
        self._order = self._known_order()
        self._keys: list[pa.RecordBatch] = []

    def run(self) -> None:
        """Read the file, and compare."""
        self._ledger.look_at(rules.FILES_DAMAGED)
        collector = MetricsCollector(schema_to_arrow(self._schema))
        try:
            for batch in rows_of(self._subject, self._file):
                self._ledger.look_at(rules.BOUNDS)
                collector.update(batch)
                self._ledger.look_at(rules.PARTITION_VALUES)
                self._look_at_partition(batch)
                self._ledger.look_at(rules.SORTED)
                self._gather_keys(batch)
                self._ledger.look_at(rules.FILES_DAMAGED)
        except IcefieldError as error:
            self._ledger.breach(rules.FILES_DAMAGED, self._file.file_path, str(error))
            return
        self._compare(collector.metrics())
        self._ledger.look_at(rules.SORTED)
        self._look_at_order()
        self._ledger.look_at(None)

    def _breach(self, rule: rules.Rule, found: str) -> None:
        self._ledger.breach(rule, self._file.file_path, found)

    def _compare(self, held: Metrics) -> None:
        file = self._file
        self._ledger.look_at(rules.RECORD_COUNTS)
        if file.record_count != held.record_count:
            self._breach(
                rules.RECORD_COUNTS, f"it holds {held.record_count:,} rows, and its manifest says {file.record_count:,}"
            )
        for rule, what, stated, found in (
            (rules.NULL_COUNTS, "nulls", file.null_value_counts, held.null_value_counts),
            (rules.NAN_COUNTS, "NaNs", file.nan_value_counts, held.nan_value_counts),
        ):
            self._ledger.look_at(rule)
            for number, count in stated.items():
                # Writers count the values of a repeated column by different rules.
                if number in found and not self._schema.is_repeated(number):
                    said = wrong_count(self._schema.find_column_name(number) or "", what, found[number], count)
                    if said:
                        self._breach(rule, said)
        self._ledger.look_at(rules.REQUIRED_COLUMNS)
        for number in _always_required(self._schema.fields):
            nulls = held.null_value_counts.get(number, 0)
            if nulls:
                name = self._schema.find_column_name(number)
                self._breach(rules.REQUIRED_COLUMNS, f"column '{name}' is required, and {nulls:,} rows have none")
        self._ledger.look_at(rules.BOUNDS)
        for number, encoded in file.lower_bounds.items():
            self._compare_bound(number, encoded, held.lower_bounds.get(number), upper=False)
        for number, encoded in file.upper_bounds.items():
            self._compare_bound(number, encoded, held.upper_bounds.get(number), upper=True)

    def _compare_bound(self, number: int, encoded: bytes, value: Any, *, upper: bool) -> None:
        column = self._schema.id_to_field.get(number)
        if column is None or self._schema.is_repeated(number):
            return
        name = self._schema.find_column_name(number) or ""
        said = wrong_bound(name, column.field_type, encoded, value, upper=upper)
        if said:
            self._breach(rules.BOUNDS, said)

    def _look_at_partition(self, batch: pa.RecordBatch) -> None:
        """Whether each row has the partition of its file."""
        try:
            tuples = partition_batch(self._spec, self._schema, batch)
        except (InvalidArgument, UnsupportedFeature):
            return  # a source that was dropped, or a transform that is not known
        for place, field in enumerate(self._spec.fields):
            kind = self._spec.partition_type(self._schema).fields[place].field_type
            own = normalised_key([self._file.partition[place]])
            for value in from_arrow_array(kind, pc.unique(tuples.field(place))):
                if normalised_key([value]) != own:
                    said = f"partition field '{field.name}' of a row is {value!r}, and of its file {own[0]!r}"
                    self._breach(rules.PARTITION_VALUES, said)
                    return

    def _known_order(self) -> SortOrder | None:
        """The sort order that the file claims, if the schema has all of its columns."""
        if not self._file.sort_order_id:
            return None
        orders = {order.order_id: order for order in self._subject.metadata.sort_orders}
        order = orders.get(self._file.sort_order_id)
        if order is None or not all(part.source_id in self._schema.id_to_field for part in order.fields):
            return None
        return order

    def _gather_keys(self, batch: pa.RecordBatch) -> None:
        if self._order is not None:
            roots = {self._schema.accessor_path(part.source_id)[0] for part in self._order.fields}
            self._keys.append(batch.select(sorted(roots)))

    def _look_at_order(self) -> None:
        if self._order is None or not self._keys:
            return
        try:
            order = np.asarray(sort_indices(self._order, self._schema, pa.Table.from_batches(self._keys)))
        except (InvalidArgument, UnsupportedFeature, pa.ArrowNotImplementedError):
            return  # a transform that is not known, or a type without an order
        # The sort is stable, so that it moves no row of a sorted file.
        moved = np.flatnonzero(order != np.arange(len(order)))
        if len(moved):
            found = f"it claims sort order {self._order.order_id}, and row {order[moved[0]]} belongs at {moved[0]}"
            self._breach(rules.SORTED, found)


def _always_required(fields: Iterable[NestedField]) -> Iterator[int]:
    """The columns with a value in every row: required ones, below structs that are required themselves."""
    for field in fields:
        if field.required:
            yield field.field_id
            if isinstance(field.field_type, StructType):
                yield from _always_required(field.field_type.fields)


RULES: Final = RuleGroup(
    (
        rules.FILES_DAMAGED,
        rules.RECORD_COUNTS,
        rules.BOUNDS,
        rules.NULL_COUNTS,
        rules.NAN_COUNTS,
        rules.REQUIRED_COLUMNS,
        rules.PARTITION_VALUES,
        rules.SORTED,
    ),
    examine_rows,
)
