"""Formats that read wrong: rows, columns, positions, splits, filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from icefield.abc import FormatAbility, FormatReader, ManifestFormatReader, ManifestReadRequest, ReadRequest
from icefield.types.arrow.types import field_id, with_field_id

from broken_file_formats.handed_on import Batches, Reader, Right, broken_reading


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
