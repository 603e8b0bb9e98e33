"""Lance files, by field id.

Lance opens files itself. It reads from ``InputFile.local_path``, and ``OutputStream.adopt`` publishes the files that it
writes. In the files, columns and fields have their ids as names, because Lance treats a dot in a name as a separator.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import pyarrow as pa
from icefield import Schema
from icefield.abc import FileFormat, FormatAbility, FormatReader, FormatWriter, InputFile, OutputStream, WrittenFile
from icefield.errors import IcefieldError, StorageError, UnsupportedFeature
from icefield.metadata import get_int
from icefield.toolkit import (
    Block,
    BlockReader,
    Metrics,
    MetricsCollector,
    child_fields,
    field_id,
    metrics_from_json,
    metrics_to_json,
    reporting_damage,
    retype,
    schema_from_json,
    schema_to_arrow,
    schema_to_json,
    virtual_blocks,
)
from lance.file import LanceFileReader, LanceFileWriter

from icefield_lance.checksum import PLACE, check, seal
from icefield_lance.properties import BLOCK_ROWS

_VERSION: Final = "2.2"
_KEY: Final = "icefield"
"""The key of a JSON document in the file's metadata: the schema, the metrics and the metadata from the kernel."""

_MOST_COPIED: Final = 16 << 30
"""The size in bytes of the largest file that is copied to the local disk."""


class LanceFormat(FileFormat):
    """The file format ``lance``."""

    name = "lance"
    extension = "lance"
    abilities = frozenset({FormatAbility.SPLITS})

    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> FormatReader:
        return LanceReader(source, location)

    def open_writer(
        self,
        sink: OutputStream,
        schema: Schema,
        *,
        properties: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> FormatWriter:
        return LanceWriter(sink, schema, get_int(properties or {}, BLOCK_ROWS), metadata or {})


def stored(field: pa.Field) -> pa.Field:
    """A field as Lance stores it: named by its id, without metadata, and optional.

    Raises ``UnsupportedFeature`` for a struct without fields, which Lance cannot store inside others.
    """
    kind = field.type
    if pa.types.is_struct(kind):
        if not kind.num_fields:
            raise UnsupportedFeature(f"Lance stores no struct without fields, such as '{field.name}'")
        kind = pa.struct([stored(child) for child in child_fields(kind)])
    elif pa.types.is_map(kind):
        key = stored(kind.key_field)
        kind = pa.map_(key.with_nullable(False), stored(kind.item_field))
    elif pa.types.is_list(kind):
        kind = pa.list_(stored(kind.value_field))
    return pa.field(str(field_id(field)), kind)


class LanceReader(BlockReader):
    """Reads ranges of rows from a local path, which is valid until ``close``."""

    def __init__(self, source: InputFile, location: str) -> None:
        self.location = location
        self._life = ExitStack()
        self._life.callback(source.close)
        try:
            with reporting_damage(location):
                self._path = self._life.enter_context(source.local_path(_MOST_COPIED))
                with open(self._path, "rb") as file:
                    check(file)
                self._read_footer(source.size)
        except BaseException:
            self.close()
            raise

    def _read_footer(self, size: int) -> None:
        file = LanceFileReader(self._path)
        stated = json.loads(file.metadata().schema.metadata[_KEY.encode()])
        self._table_schema = schema_from_json(stated["schema"])
        self._schema = schema_to_arrow(self._table_schema)
        self._metadata = {key: value.encode() for key, value in stated["metadata"].items()}
        self._metrics = metrics_from_json(stated["metrics"], self._table_schema)
        self._blocks = virtual_blocks(file.num_rows(), size, stated["block-rows"])

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def metadata(self) -> Mapping[str, bytes]:
        return self._metadata

    @property
    def blocks(self) -> Sequence[Block]:
        return self._blocks

    def read_block(self, number: int, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        wanted = [self._schema.field(name) for name in columns.names]
        file = LanceFileReader(self._path, columns=[str(field_id(field)) for field in wanted])
        first = sum(block.rows for block in self._blocks[:number])
        rows = self._blocks[number].rows
        for batch in file.read_range(first, rows, batch_size=8_192).to_batches():
            arrays = [retype(batch.column(str(field_id(field))), field.type) for field in wanted]
            yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(wanted))

    def metrics(self) -> Metrics:
        return self._metrics

    def close(self) -> None:
        self._life.close()


class LanceWriter(FormatWriter):
    """Lets Lance write to the stream's ``adoptable_path``; the stream then adopts the file."""

    def __init__(self, sink: OutputStream, schema: Schema, block_rows: int, metadata: Mapping[str, str]) -> None:
        arrow = schema_to_arrow(schema)
        self._sink, self._table_schema = sink, schema
        self._stated: dict[str, Any] = {"metadata": dict(metadata), "block-rows": block_rows}
        self._stored = pa.schema([stored(field) for field in arrow])
        self._collector = MetricsCollector(arrow)
        self._taken = 0
        with self._reported():
            self._path = sink.adoptable_path()
            self._writer = LanceFileWriter(self._path, self._stored, version=_VERSION)
            self._writer.add_global_buffer(PLACE)

    def write(self, batch: pa.RecordBatch) -> None:
        self._collector.update(batch)
        self._taken += batch.nbytes
        # Lance writes slices of nested columns wrongly.
        whole = batch.take(pa.array(range(batch.num_rows), pa.int64()))
        arrays = [retype(array, field.type) for array, field in zip(whole.columns, self._stored, strict=True)]
        with self._reported():
            self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._stored))

    @property
    def estimated_size(self) -> int:
        return self._taken

    def close(self) -> WrittenFile:
        metrics = self._collector.metrics()
        schema, stated = schema_to_json(self._table_schema), metrics_to_json(metrics, self._table_schema)
        with self._reported():
            self._writer.add_schema_metadata(_KEY, json.dumps({**self._stated, "schema": schema, "metrics": stated}))
            self._writer.close()
            with open(self._path, "r+b") as file:
                seal(file)
            size = os.path.getsize(self._path)
        self._sink.adopt(self._path)
        self._sink.close()
        blocks = virtual_blocks(metrics.record_count, size, self._stated["block-rows"])
        return WrittenFile(size, metrics, [block.offset for block in blocks] or None)

    def abort(self) -> None:
        self._sink.abort()  # Lance's file is deleted with the stream

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except IcefieldError:
            raise
        except OSError as error:
            raise StorageError(f"Lance cannot write to the local disk: {error}") from error
