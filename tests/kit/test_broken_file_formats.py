"""File formats that are broken on purpose: the kit must reject each of them, by the check that is meant for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from icefield import Plugins
from icefield.abc import (
    FileFormat,
    FormatAbility,
    FormatReader,
    FormatWriter,
    InputFile,
    ManifestFormat,
    ManifestFormatReader,
    ManifestReadRequest,
    OutputStream,
    ReadRequest,
    WrittenFile,
)
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import InvalidFile, StorageError, UnsupportedFeature
from icefield.metadata.metrics import Metrics
from icefield.schema import Schema
from icefield.testing import ManifestFormatSuite
from icefield.types import FixedType, UUIDType
from icefield.types.arrow.types import field_id, with_field_id
from kit_checks import checks, failures

Batches = Iterator[pa.RecordBatch]


class Reader(ManifestFormatReader):
    """A right reader, handed on."""

    def __init__(self, inner: FormatReader) -> None:
        self.inner = inner

    @property
    def schema(self) -> pa.Schema:
        return self.inner.schema

    @property
    def metadata(self) -> Mapping[str, bytes]:
        return self.inner.metadata

    def read(self, request: ReadRequest) -> Batches:
        return self.inner.read(request)

    def metrics(self) -> Metrics:
        return self.inner.metrics()

    def close(self) -> None:
        self.inner.close()


class Writer(FormatWriter):
    """A right writer, handed on."""

    def __init__(self, inner: FormatWriter) -> None:
        self.inner = inner

    def write(self, batch: pa.RecordBatch) -> None:
        self.inner.write(batch)

    @property
    def estimated_size(self) -> int:
        return self.inner.estimated_size

    def close(self) -> WrittenFile:
        return self.inner.close()

    def abort(self) -> None:
        self.inner.abort()


class Right(ManifestFormat):
    """The format ``avro`` through another class: what the broken ones break one thing of."""

    name: ClassVar[str] = "avro"
    extension: ClassVar[str] = "avro"
    abilities = frozenset({FormatAbility.SPLITS})
    reader: ClassVar[type[Reader]] = Reader
    writer: ClassVar[type[Writer]] = Writer

    @property
    def inner(self) -> ManifestFormat:
        found = Plugins.installed().file_format("avro")
        assert isinstance(found, ManifestFormat)
        return found

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        return self.reader(self.inner.open_reader(source, location, size=size))

    def open_writer(self, sink: OutputStream, schema: Schema, **options: Any) -> FormatWriter:
        return self.writer(self.inner.open_writer(sink, schema, **options))


def broken_reading(change: Callable[[FormatReader, ReadRequest], Batches]) -> type[Reader]:
    """A reader whose ``read`` is another."""
    return type("BrokenReader", (Reader,), {"read": lambda self, request: change(self.inner, request)})


def broken_metrics(change: Callable[[Metrics], Metrics]) -> type[Writer]:
    """A writer that states other metrics."""

    def close(self: Writer) -> WrittenFile:
        written = self.inner.close()
        return replace(written, metrics=change(written.metrics))

    return type("BrokenWriter", (Writer,), {"close": close})


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


class LosesTheLastBatch(Right):
    class writer(Writer):
        held: pa.RecordBatch | None = None

        def write(self, batch: pa.RecordBatch) -> None:
            if self.held is not None:
                self.inner.write(self.held)
            self.held = batch


class WritesInAnotherOrder(Right):
    class writer(Writer):
        def __init__(self, inner: FormatWriter) -> None:
            super().__init__(inner)
            self.held: list[pa.RecordBatch] = []

        def write(self, batch: pa.RecordBatch) -> None:
            self.held.append(batch)

        def close(self) -> WrittenFile:
            for batch in reversed(self.held):
                self.inner.write(batch)
            return self.inner.close()


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


class TellsBoundsThatAreTooTight(Right):
    writer = broken_metrics(lambda metrics: replace(metrics, upper_bounds=metrics.lower_bounds))


class CountsNoNulls(Right):
    writer = broken_metrics(
        lambda metrics: replace(metrics, null_value_counts=dict.fromkeys(metrics.null_value_counts, 0))
    )


class CountsRowsTwice(Right):
    writer = broken_metrics(lambda metrics: replace(metrics, record_count=2 * metrics.record_count))


class TellsNanForABound(Right):
    writer = broken_metrics(
        lambda metrics: replace(
            metrics,
            upper_bounds={
                number: float("nan") if isinstance(bound, float) else bound
                for number, bound in metrics.upper_bounds.items()
            },
        )
    )


class TellsAWrongSize(Right):
    class writer(Writer):
        def close(self) -> WrittenFile:
            written = self.inner.close()
            return replace(written, size=written.size - 1)


class PublishesWhatIsAborted(Right):
    class writer(Writer):
        def abort(self) -> None:
            self.inner.close()


class TakesDamageForAnEmptyFile(Right):
    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        try:
            return super().open_reader(source, location, size=size)
        except InvalidFile:
            return Nothing()


class Nothing(FormatReader):
    schema = pa.schema([])
    metadata: ClassVar[dict[str, bytes]] = {}

    def read(self, request: ReadRequest) -> Batches:
        return iter(())

    def metrics(self) -> Metrics:
        return Metrics(record_count=0)

    def close(self) -> None:
        pass


class RaisesItsOwnErrors(Right):
    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        try:
            return super().open_reader(source, location, size=size)
        except InvalidFile as error:
            raise ZeroDivisionError(str(error)) from None


class NamesNoFile(Right):
    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        try:
            return super().open_reader(source, location, size=size)
        except InvalidFile:
            raise InvalidFile("the file is damaged") from None


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


class IgnoresTheOffsetsOfSlices(Right):
    class writer(Writer):
        def write(self, batch: pa.RecordBatch) -> None:
            first = batch.column(0)
            whole = pa.Array.from_buffers(first.type, len(first), first.buffers())
            self.inner.write(batch.set_column(0, batch.schema.field(0), whole))


class WritesWhatLiesBelowNulls(Right):
    class writer(Writer):
        def write(self, batch: pa.RecordBatch) -> None:
            columns = [
                pa.StructArray.from_arrays([c.field(i) for i in range(c.type.num_fields)], fields=[*c.type])
                if pa.types.is_struct(c.type)
                else c
                for c in batch.columns
            ]
            self.inner.write(pa.RecordBatch.from_arrays(columns, schema=batch.schema))


class BoundsWhatLiesBelowNulls(Right):
    writer = broken_metrics(lambda metrics: replace(metrics, lower_bounds={**metrics.lower_bounds, 3: -999}))


class OrdersTextsByUtf16(Right):
    writer = broken_metrics(
        lambda metrics: replace(
            metrics,
            upper_bounds={
                number: "\uffff" if isinstance(bound, str) and bound > "\uffff" else bound
                for number, bound in metrics.upper_bounds.items()
            },
        )
    )


class BoundsNegativeZeroByZero(Right):
    writer = broken_metrics(
        lambda metrics: replace(
            metrics,
            lower_bounds={
                number: 0.0 if isinstance(bound, float) and bound == 0 else bound
                for number, bound in metrics.lower_bounds.items()
            },
        )
    )


class CountsNullsOfParentsOnly(Right):
    writer = broken_metrics(
        lambda metrics: replace(metrics, value_counts=dict.fromkeys(metrics.value_counts, metrics.record_count))
    )


class SwallowsErrorsOfTheStorage(Right):
    class writer(Writer):
        def write(self, batch: pa.RecordBatch) -> None:
            with suppress(StorageError):
                self.inner.write(batch)

        def close(self) -> WrittenFile:
            try:
                return self.inner.close()
            except StorageError:
                return WrittenFile(0, Metrics(record_count=0))

    def open_writer(self, sink: OutputStream, schema: Schema, **options: Any) -> FormatWriter:
        try:
            return super().open_writer(sink, schema, **options)
        except StorageError:
            return super().open_writer(MemoryFileSystem().open_output(f"memory://lost/{uuid4()}"), schema, **options)


class PublishesBeforeTheEnd(Right):
    class writer(Writer):
        def write(self, batch: pa.RecordBatch) -> None:
            self.inner.write(batch)
            self.done = self.inner.close()

        def close(self) -> WrittenFile:
            return self.done


class LeavesItsInputOpen(Right):
    class reader(Reader):
        def close(self) -> None:
            pass


class AppendsNothing(Right):
    def append_blocks(
        self, old: bytes, schema: Schema, batch: pa.RecordBatch, metadata: Mapping[str, str]
    ) -> bytes | None:
        return self.inner.append_blocks(old, schema, batch.slice(0, 0), metadata)


class AppendsToAnything(Right):
    def append_blocks(
        self, old: bytes, schema: Schema, batch: pa.RecordBatch, metadata: Mapping[str, str]
    ) -> bytes | None:
        return self.inner.append_blocks(old, schema, batch, metadata) or old


class MakesUpRowsWhereTheFileEnds(Right):
    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        try:
            yield from inner.read(request)
        except InvalidFile:
            yield pa.RecordBatch.from_arrays([pa.nulls(3, f.type) for f in request.columns], schema=request.columns)

    reader = broken_reading(_read)


class SaysNothingOfWhereDamageIs(Right):
    @staticmethod
    def _read(inner: FormatReader, request: ReadRequest) -> Batches:
        try:
            yield from inner.read(request)
        except InvalidFile:
            raise InvalidFile("something is wrong") from None

    reader = broken_reading(_read)


class Suite(ManifestFormatSuite):
    small_blocks: ClassVar = {"write.avro.block-size-bytes": "4096"}


BROKEN = {
    DropsFieldIds: "test_ids_are_kept_at_every_level",
    LosesTheLastBatch: "test_many_batches_keep_their_order",
    WritesInAnotherOrder: "test_many_batches_keep_their_order",
    TakesEmptyForNull: "test_every_nested_shape_reads_back",
    RestartsPositions: "test_positions_count_rows_of_the_file",
    IgnoresTheBatchSize: "test_batches_are_bounded",
    IgnoresTheOrderOfColumns: "test_columns_are_pruned_at_every_level",
    IgnoresSplits: "test_splits_read_every_row_once",
    LosesTheFirstRowOfASplit: "test_splits_read_every_row_once",
    SkipsByAnUnsoundFilter: "test_a_filter_leaves_no_matching_row_out",
    DropsWantedMapKeys: "test_map_keys_that_are_wanted_come",
    EncodesNullsAsValues: "test_columns_come_as_dictionaries",
    ForgetsMetadata: "test_key_value_metadata_comes_back",
    TellsBoundsThatAreTooTight: "test_metrics_are_true",
    CountsNoNulls: "test_metrics_are_true",
    CountsRowsTwice: "test_metrics_are_true",
    TellsNanForABound: "test_a_nan_is_no_bound",
    TellsAWrongSize: "test_the_size_is_that_of_the_file",
    PublishesWhatIsAborted: "test_an_aborted_file_is_never_seen",
    TakesDamageForAnEmptyFile: "test_damage_gets_one_typed_error",
    RaisesItsOwnErrors: "test_damage_gets_one_typed_error",
    NamesNoFile: "test_damage_gets_one_typed_error",
    CannotTravel: "test_it_pickles",
    ForgetsWhatIsRequired: "test_what_is_required_is_kept_at_every_level",
    GuessesIdsByPlace: "test_a_file_is_read_under_a_later_schema",
    TellsSanitisedNames: "test_a_column_may_have_any_name",
    LosesRowsWithoutColumns: "test_rows_are_counted_without_any_column",
    TellsAWrongCount: "test_rows_are_counted_without_any_column",
    ReadsOnce: "test_one_reader_reads_several_times",
    MixesFilesReadTogether: "test_files_read_together_are_read_as_one_by_one",
    CountsPositionsOfWhatItReads: "test_positions_are_right_under_filters_and_splits",
    IgnoresTheOffsetsOfSlices: "test_slices_of_batches_are_written_as_they_are",
    WritesWhatLiesBelowNulls: "test_what_is_below_nulls_does_not_come_back",
    BoundsWhatLiesBelowNulls: "test_values_below_null_parents_are_not_counted",
    OrdersTextsByUtf16: "test_metrics_of_strings_are_true",
    BoundsNegativeZeroByZero: "test_metrics_of_floats_are_true",
    CountsNullsOfParentsOnly: "test_metrics_of_nested_columns_are_true",
    SwallowsErrorsOfTheStorage: "test_a_stream_that_fails_fails_the_file",
    PublishesBeforeTheEnd: "test_a_file_is_not_seen_before_it_is_closed",
    LeavesItsInputOpen: "test_a_closed_reader_has_closed_its_input",
    AppendsNothing: "test_appended_blocks_come_after_the_old_ones",
    AppendsToAnything: "test_blocks_are_not_appended_to_a_file_of_another_schema",
    MakesUpRowsWhereTheFileEnds: "test_a_file_that_was_cut_off_gives_an_error_or_its_first_rows",
    SaysNothingOfWhereDamageIs: "test_damage_to_nested_columns_gets_one_typed_error",
}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "check"), BROKEN.items(), ids=lambda value: getattr(value, "__name__", value))
def test_a_broken_file_format_is_rejected_by_the_check_for_it(kind: type[FileFormat], check: str) -> None:
    alone = type("Suite", (Suite,), {name: None for name, _ in checks(ManifestFormatSuite) if name != check})
    assert failures(alone, {"file_format": lambda _: kind()}) == [check]


@pytest.mark.slow
def test_a_right_file_format_passes_every_check() -> None:
    assert failures(Suite, {"file_format": lambda _: Right()}) == []


@pytest.mark.parametrize("check", ["test_every_primitive_type_reads_back", "test_every_type_reads_back_at_every_place"])
def test_a_gap_that_is_declared_must_be_refused(check: str) -> None:
    others: dict[str, Any] = {name: None for name, _ in checks(ManifestFormatSuite) if name != check}
    alone = type("Suite", (Suite,), {**others, "unsupported": (FixedType,)})
    assert failures(alone, {"file_format": lambda _: Right()}) == [check]


def test_a_gap_that_is_not_declared_is_rejected() -> None:
    class HasNoUuids(Right):
        def open_writer(self, sink: OutputStream, schema: Schema, **options: Any) -> FormatWriter:
            if any(isinstance(field.field_type, UUIDType) for field in schema.fields):
                raise UnsupportedFeature("no uuids here")
            return super().open_writer(sink, schema, **options)

    check = "test_every_primitive_type_reads_back"
    others: dict[str, Any] = {name: None for name, _ in checks(ManifestFormatSuite) if name != check}
    rejecting = type("Suite", (Suite,), others)
    assert failures(rejecting, {"file_format": lambda _: HasNoUuids()}) == [check]
    declaring = type("Suite", (Suite,), {**others, "unsupported": (UUIDType,)})
    assert failures(declaring, {"file_format": lambda _: HasNoUuids()}) == []


def test_every_check_states_what_to_look_at_when_it_fails() -> None:
    for name, check in checks(ManifestFormatSuite):
        assert "If this fails" in (check.__doc__ or ""), name
