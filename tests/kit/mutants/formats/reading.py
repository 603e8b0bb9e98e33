"""Formats that read wrong: rows, columns, positions, splits, filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from icefield.abc import FormatAbility, FormatReader, ManifestFormatReader, ManifestReadRequest, ReadRequest
from icefield.types.arrow.types import field_id, with_field_id

from mutants import Mutant, of
from mutants.formats.handed_on import Batches, Reader, Right, broken_reading


class DropsFieldIds(Right):
    class reader(Reader):
        @property
        def schema(self) -> pa.Schema:
            return pa.schema([pa.field(field.name, field.type) for field in self.inner.schema])


class TellsAWrongCount(Right):
    class reader(Reader):
        @property
        def record_count(self) -> int:
            return 7


class TakesEmptyForNull(Right):
    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        for batch in inner.read(request):
            columns = [
                pc.if_else(pc.equal(pc.list_value_length(column), 0), pa.scalar(None, column.type), column)
                if pa.types.is_list(column.type)
                else column
                for column in batch.columns
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    reader = broken_reading(_read)


class RestartsPositions(Right):
    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        for batch in inner.read(request):
            if request.positions:
                at = batch.schema.get_field_index("_pos")
                batch = batch.set_column(at, batch.schema.field(at), pa.array(range(batch.num_rows), pa.int64()))
            yield batch

    reader = broken_reading(_read)


class IgnoresTheBatchSize(Right):
    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        yield from inner.read(replace(request, batch_rows=1 << 20))

    reader = broken_reading(_read)


class IgnoresTheOrderOfColumns(Right):
    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        names = [name for name in inner.schema.names if name in request.columns.names]
        columns = pa.schema([request.columns.field(name) for name in names])
        yield from inner.read(replace(request, columns=columns))

    reader = broken_reading(_read)


class IgnoresSplits(Right):
    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        yield from inner.read(replace(request, split=None))

    reader = broken_reading(_read)


class LosesTheFirstRowOfASplit(Right):
    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        first = request.split is not None and request.split.start > 0
        for batch in inner.read(request):
            yield batch.slice(1) if first else batch
            first = False

    reader = broken_reading(_read)


class SkipsByAnUnsoundFilter(Right):
    abilities = frozenset({FormatAbility.SPLITS, FormatAbility.FILTERS})

    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        for batch in inner.read(request):
            yield batch if request.row_filter is None else batch.slice(0, batch.num_rows // 2)

    reader = broken_reading(_read)


class DropsWantedMapKeys(Right):
    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        if not isinstance(request, ManifestReadRequest):
            yield from inner.read(request)
            return
        keys = {number: frozenset([min(wanted)]) for number, wanted in request.map_keys.items()}
        yield from inner.read(replace(request, map_keys=keys))

    reader = broken_reading(_read)


class EncodesNullMapsAsEmpty(Right):
    abilities = Right.abilities | {FormatAbility.ENCODED_MAPS}

    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        for batch in inner.read(request):
            for at, field in enumerate(batch.schema):
                if pa.types.is_binary(field.type):
                    batch = batch.set_column(at, field, batch.column(at).fill_null(b"\0"))
            yield batch

    reader = broken_reading(_read)


class EncodesNullsAsValues(Right):
    abilities = Right.abilities | {FormatAbility.DICTIONARIES}

    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        for batch in inner.read(request):
            for at, field in enumerate(request.columns):
                if field_id(field) in request.dictionaries:
                    filled = batch.column(at).fill_null(pa.scalar("", field.type))
                    batch = batch.set_column(at, field.name, filled.dictionary_encode())
            yield batch

    reader = broken_reading(_read)


class ForgetsMetadata(Right):
    class reader(Reader):
        @property
        def metadata(self) -> Mapping[str, bytes]:
            return {}


class CannotTravel(Right):
    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("holds a connection")


class ForgetsWhatIsRequired(Right):
    class reader(Reader):
        @property
        def schema(self) -> pa.Schema:
            return pa.schema([field.with_nullable(True) for field in self.inner.schema])


class GuessesIdsByPlace(Right):
    class reader(Reader):
        @property
        def schema(self) -> pa.Schema:
            return pa.schema([with_field_id(field, at) for at, field in enumerate(self.inner.schema, 1)])


class TellsSanitisedNames(Right):
    class reader(Reader):
        @property
        def schema(self) -> pa.Schema:
            return pa.schema([field.with_name(field.name.replace(" ", "_x20")) for field in self.inner.schema])

        def read(self, request: ReadRequest) -> Batches:
            return self.inner.read(replace(request, columns=self.inner.schema))


class LosesRowsWithoutColumns(Right):
    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        for batch in inner.read(request):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=batch.schema)

    reader = broken_reading(_read)


class ReadsOnce(Right):
    class reader(Reader):
        begun: Batches | None = None

        def read(self, request: ReadRequest) -> Batches:
            self.begun = self.begun or self.inner.read(request)
            return self.begun


class MixesFilesReadTogether(Right):
    def read_together(
        self, readers: Sequence[ManifestFormatReader], request: ManifestReadRequest
    ) -> list[list[pa.RecordBatch]]:
        return super().read_together(readers, request)[::-1]


class CountsPositionsOfWhatItReads(Right):
    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        shift = request.split.start > 0 if request.split else 0
        for batch in inner.read(request):
            if request.positions and request.row_filter is not None:
                at = batch.schema.get_field_index("_pos")
                batch = batch.set_column(at, batch.schema.field(at), pc.add(batch.column(at), int(shift)))
            yield batch

    reader = broken_reading(_read)


class LeavesItsInputOpen(Right):
    class reader(Reader):
        def close(self) -> None:
            pass


MUTANTS: list[Mutant] = of(
    {
        DropsFieldIds: ("test_ids_are_kept_at_every_level", "are not stored in the file"),
        TakesEmptyForNull: ("test_every_nested_shape_reads_back", "row 1 of 'v' is None, not []"),
        RestartsPositions: (
            "test_positions_count_rows_of_the_file",
            "begins again at 0 at row 512 (where a batch",
        ),
        IgnoresTheBatchSize: ("test_batches_are_bounded", "``batch_rows`` is ignored"),
        IgnoresTheOrderOfColumns: ("test_columns_are_pruned_at_every_level", "in another order, is not honoured"),
        IgnoresSplits: ("test_splits_read_every_row_once", "splits overlap"),
        LosesTheFirstRowOfASplit: ("test_splits_read_every_row_once", "1 of 20,000 rows are missing"),
        SkipsByAnUnsoundFilter: ("test_a_filter_leaves_no_matching_row_out", "left out rows that match: 4,321"),
        DropsWantedMapKeys: ("test_map_keys_that_are_wanted_come", "drops an entry that was asked for"),
        EncodesNullMapsAsEmpty: ("test_maps_that_are_read_encoded_are_written_as_they_are", "another map after it is"),
        EncodesNullsAsValues: ("test_columns_come_as_dictionaries", "with other values or nulls"),
        ForgetsMetadata: ("test_key_value_metadata_comes_back", "``metadata`` of ``open_writer`` is not stored"),
        CannotTravel: ("test_it_pickles", "cannot go to an executor"),
        ForgetsWhatIsRequired: ("test_what_is_required_is_kept_at_every_level", "does not say whether elements"),
        GuessesIdsByPlace: ("test_a_file_is_read_under_a_later_schema", "goes by name or place, guesses ids"),
        TellsSanitisedNames: ("test_a_column_may_have_any_name", "is not sanitised on writing and stated on reading"),
        LosesRowsWithoutColumns: ("test_rows_are_counted_without_any_column", "or finds none"),
        TellsAWrongCount: ("test_rows_are_counted_without_any_column", "a count of rows"),
        ReadsOnce: ("test_one_reader_reads_several_times", "0 rows came back of 3,000"),
        MixesFilesReadTogether: (
            "test_files_read_together_are_read_as_one_by_one",
            "``read_together`` mixes the rows",
        ),
        CountsPositionsOfWhatItReads: ("test_positions_are_right_under_filters_and_splits", "is 1,548 under a filter"),
        LeavesItsInputOpen: ("test_a_closed_reader_has_closed_its_input", "costs an open connection"),
    }
)
