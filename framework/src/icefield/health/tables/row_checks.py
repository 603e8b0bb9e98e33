"""What is looked at in data files: that counts, bounds, partitions and sort orders say what the rows are.

Files are read whole, without their deletes: metrics are of all rows of a file.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import IcefieldError, InvalidArgument, UnsupportedFeature
from icefield.health.tables import rules
from icefield.health.tables.corrections import rows_of
from icefield.health.tables.ledger import Ledger
from icefield.health.tables.sampling import sampled
from icefield.health.tables.subject import Subject
from icefield.manifest import DataFile
from icefield.metadata.metrics import Metrics, MetricsCollector
from icefield.partitioning import SortOrder
from icefield.partitioning.sort_order import sort_indices
from icefield.partitioning.spec import normalised_key, partition_batch
from icefield.schema import schema_to_arrow
from icefield.types.values import from_arrow_array, from_bytes

RULES: Final = (
    rules.FILES_DAMAGED,
    rules.RECORD_COUNTS,
    rules.BOUNDS,
    rules.NULL_COUNTS,
    rules.PARTITION_VALUES,
    rules.SORTED,
)


def examine_rows(subject: Subject, ledger: Ledger) -> None:
    """Look at the rows of some data files, or of all: see ``Subject.sample``."""
    for file in sampled(subject.data_files(), subject.sample):
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
        self._ledger.look_at(rules.NULL_COUNTS)
        for number, stated in file.null_value_counts.items():
            found = held.null_value_counts.get(number)
            # A column that is repeated has as many values as the writer saw, by rules that differ.
            if found is not None and found != stated and not self._schema.is_repeated(number):
                name = self._schema.find_column_name(number)
                self._breach(
                    rules.NULL_COUNTS, f"column '{name}' has {found:,} nulls, and its manifest says {stated:,}"
                )
        self._ledger.look_at(rules.BOUNDS)
        for number, encoded in file.lower_bounds.items():
            self._compare_bound(number, encoded, held.lower_bounds.get(number), upper=False)
        for number, encoded in file.upper_bounds.items():
            self._compare_bound(number, encoded, held.upper_bounds.get(number), upper=True)

    def _compare_bound(self, number: int, encoded: bytes, value: Any, *, upper: bool) -> None:
        column = self._schema.id_to_field.get(number)
        if column is None or value is None or self._schema.is_repeated(number):
            return
        try:
            stated = from_bytes(column.field_type, encoded)
        except InvalidArgument as error:
            self._breach(rules.BOUNDS, f"the bound of column '{self._schema.find_column_name(number)}': {error}")
            return
        try:
            bounds = stated >= value if upper else stated <= value
        except TypeError:
            return  # points have no order
        if not bounds:
            side = "greatest" if upper else "least"
            name = self._schema.find_column_name(number)
            self._breach(rules.BOUNDS, f"column '{name}' has {value!r}, and its manifest says {side} {stated!r}")

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
        """The order that the file claims, where all of it can be computed."""
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
        # Sorting moves no row of equal keys, and so none at all of a file that is sorted.
        moved = np.flatnonzero(order != np.arange(len(order)))
        if len(moved):
            found = f"it claims sort order {self._order.order_id}, and row {order[moved[0]]} belongs at {moved[0]}"
            self._breach(rules.SORTED, found)
