"""Reading a Parquet file: the columns asked for, of the row groups that a split and a filter leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from icefield.abc import InputFile, ReadRequest, Split, TypedReader
from icefield.errors import IcefieldError, InvalidFile, UnsupportedFeature
from icefield.expressions import BooleanExpression, bound_leaves, inclusive_metrics
from icefield.toolkit import Metrics, all_skipped, to_arrow_type, with_dictionaries

from icefield_parquet import encryption
from icefield_parquet.footer import checked_tail, is_ordered, read_tail
from icefield_parquet.guard.codecs import check_codecs
from icefield_parquet.guard.column_chunks import check_column_chunks
from icefield_parquet.guard.errors import is_encrypted, reading
from icefield_parquet.guard.expansion import TooMany, check_claim, check_pages, dictionary_size
from icefield_parquet.guard.inflation import Claim, check_inflation, claim_of
from icefield_parquet.guard.raw_statistics import check_statistics
from icefield_parquet.guard.repeated_entries import MOST_BYTES, StringChunk, fewer_rows, row_bytes, string_chunk
from icefield_parquet.guard.soundness import check_values
from icefield_parquet.guard.verdicts import FooterVerdict, verdict_of
from icefield_parquet.guard.watched import Watched
from icefield_parquet.reading.decoding import DecodedColumns, decode, rows_at_once
from icefield_parquet.reading.repeated_strings import repeated_strings
from icefield_parquet.reading.statistics import RowGroupStatistics, file_metrics
from icefield_parquet.row_groups import in_split, row_group_start
from icefield_parquet.schema import Leaf, leaves, select_leaves, without_extensions
from icefield_parquet.variants.whole import stored_columns, with_whole_variants

_LIMITS: Final = {"thrift_string_size_limit": 64 << 20, "thrift_container_size_limit": 1 << 20}
"""The longest string and list of a footer: 16 million row groups of no byte would take pyarrow 1.5 GB."""

_TOGETHER_BYTES = 64 << 20
"""Consecutive row groups are decoded together up to this size.

In a remote file the first row group is decoded alone: it must be fetched first, and the caller may want only few rows.
"""

_BATCH_BYTES = 64 << 20
_TEXT_WIDTH = 16
_MAGIC = 4
"""Bytes of a file before the first row group."""

_MOST_ROWS_FOR_A_BYTE_BITS = 31
"""The most rows for each byte of a file, as a power of two, by the limit of a page's values. It bounds the batches of
rows without columns."""

POSITION = pa.field("_pos", pa.int64(), nullable=False)


class ParquetReader(TypedReader):
    """An open Parquet file; the footer was read. Not for use by several threads at once."""

    def __init__(self, source: InputFile, location: str) -> None:
        self._source = source
        self._location = location
        self._key = source.key
        # The guards read stored pages, which are encrypted here. Their tags show that the writer had the key.
        guards = self._key is None
        self._watched = Watched(source, self._strings_in_dictionaries) if source.is_remote and guards else None
        self._sees_pages = guards and self._watched is None
        try:
            with reading(location, "the footer", keyed=not guards):
                size = source.size
                tail = read_tail(source, size) if guards else None
                if not guards:
                    encryption.check_magic(source)
                # Without a whole footer, pyarrow raises the error.
                self._file = self._open(None if tail is None else _footer_in(checked_tail(tail, location)))
                self._is_near = self._watched is None
                self._others: list[pq.ParquetFile] = []
                self._footer = self._file.metadata
                if not guards:
                    encryption.check_column_keys(self._footer, location)
                self._tail = b"" if tail is None else tail
                self._ordered = is_ordered(self._tail, self._footer.num_columns)
                self._size = size
                self._verdict = FooterVerdict() if tail is None else verdict_of(tail, size)
                self._schema = without_extensions(self._file.schema_arrow)
                self._rows = [self._footer.row_group(at).num_rows for at in range(self._footer.num_row_groups)]
        except IcefieldError as error:
            encrypted = guards and isinstance(error, InvalidFile) and encryption.has_encrypted_footer(source)
            source.close()
            if encrypted:
                raise UnsupportedFeature(f"{location} has an encrypted footer", location=location) from error
            raise
        if any(rows < 0 for rows in self._rows) or sum(self._rows) != self._footer.num_rows:
            source.close()
            raise self._damaged("the rows of its row groups do not add up")
        if self._footer.num_rows > size << _MOST_ROWS_FOR_A_BYTE_BITS:
            source.close()
            raise self._damaged(f"{size} bytes claim to be {self._footer.num_rows} rows")
        self._first_rows = [0, *accumulate(self._rows)]

    @property
    def schema(self) -> pa.Schema:
        return self._schema.remove_metadata()

    @property
    def metadata(self) -> Mapping[str, bytes]:
        pairs = self._footer.metadata or {}
        return {key.decode("utf-8", "replace"): value for key, value in pairs.items()}

    @property
    def record_count(self) -> int:
        return int(self._footer.num_rows)

    @property
    def split_offsets(self) -> list[int] | None:
        with self._reading("the footer"):
            return sorted(self._starts()) or None

    @property
    def stored_types(self) -> Sequence[str]:
        schema = self._footer.schema
        return [schema.column(at).physical_type for at in range(len(schema))]

    def metrics(self) -> Metrics:
        with self._reading("the statistics"):
            self._check_chunks(range(self._footer.num_columns))
            self._check_statistics()
            return file_metrics(self._footer, self._schema, ordered=self._ordered)

    def close(self) -> None:
        for file in (self._file, *self._others):
            file.close(force=True)
        self._source.close()

    def read(self, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        with self._reading("the footer"):
            stored = stored_columns(self._schema, request.columns)
        if stored is None:
            yield from self._read(request)
            return
        for batch in self._read(replace(request, columns=stored)):
            with self._reading("the variants"):
                whole = with_whole_variants(batch, request.columns, self._location)
            yield whole

    def _read(self, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        with self._reading("the footer"):
            columns = _wanted_leaves(self._schema, request.columns)
            leaves = [leaf for inside in columns for leaf in inside]
            self._check_chunks(leaf.index for leaf in leaves)
            groups = self._groups(request, leaves)
            runs = list(self._runs(groups, leaves))
            wanted = self._wanted(request, columns, runs)
        if leaves:
            for run, size in runs:
                rows = self._batch_rows(run, size, request)
                self._check_pages(run, leaves, rows_at_once(rows, size, self._promised(run)))
                yield from self._read_groups(wanted, run, rows, size, request)
        else:
            for group in groups:
                yield from _bare(self._first_rows[group], self._rows[group], request)

    def _open(self, footer: Any, dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
        """The reader of pyarrow for the file with that footer, which it reads itself if there is none."""
        # Checksums are verified for remote files: the cost is small compared with the transfer.
        remote = self._source.is_remote
        return pq.ParquetFile(
            (self._watched or self._source).arrow_file(),
            metadata=footer,
            read_dictionary=list(dictionaries),
            pre_buffer=remote,
            page_checksum_verification=remote,
            coerce_int96_timestamp_unit="us",
            arrow_extensions_enabled=False,
            decryption_properties=encryption.decryption(self._key),
            **_LIMITS,
        )

    def _wanted(
        self, request: ReadRequest, columns: list[list[Leaf]], runs: list[tuple[list[int], int]]
    ) -> DecodedColumns:
        """Return the columns for pyarrow to decode, and which of them it returns as dictionaries."""
        entries: dict[int, dict[int, int]] = {}
        distinct = self._key is not None and encryption.has_distinct_dictionaries(self._footer)
        if self._sees_pages or distinct:  # anywhere else each page would be a request
            groups = [at for run, _ in runs for at in run]
            found = {leaf.index for inside in columns for leaf in inside if leaf.field_id in request.dictionaries}
            together = [[self._footer.row_group(at) for at in run] for run, _ in runs]
            found.update(repeated_strings(together, request.columns, columns))
            sizes = {index: {} if distinct else self._dictionary_sizes(index, groups) for index in found}
            entries = {index: known for index, known in sizes.items() if known is not None}
        paths = self._paths(entries)

        def open_file(paths: Sequence[str] = ()) -> pq.ParquetFile:
            file = self._open(self._footer, paths)
            self._others.append(file)
            return file

        schema = with_dictionaries(request.columns, request.dictionaries)
        chunks = [[leaf.index for leaf in inside] for inside in columns]
        strings = [leaf.index for inside in columns for leaf in inside if _is_string_like(leaf)]
        fit = partial(self._fit, strings)
        plain = DecodedColumns(schema, chunks, [self._file], open_file if self._is_near else None, fit=fit)
        if not paths:
            return plain
        open_more = partial(open_file, [*paths.values()])
        known = {} if distinct else {index: entries[index] for index in paths}
        fit = partial(self._fit, [index for index in strings if index not in paths])
        return DecodedColumns(schema, chunks, [open_more()], open_more, known, plain, fit)

    def _fit(self, strings: Sequence[int], groups: list[int], rows: int, size: int) -> tuple[int, int]:
        """Return the rows of a batch and the size of row groups, for dictionary strings of the maximum length.

        ``strings`` are the columns with such strings. The strings of a remote file are measured while it is read.
        """
        total = 0
        if self._sees_pages:
            with self._reading("the pages"):
                for index in strings:
                    chunks = (self._strings(group, index) for group in groups)
                    total += max(row_bytes(self._source, chunk, self._strings_in_dictionaries) for chunk in chunks)
        fewer = fewer_rows(total, rows_at_once(rows, size, self._promised(groups)))
        return (rows, size) if fewer is None else (min(rows, fewer), max(size, MOST_BYTES))

    def _strings(self, group: int, index: int) -> StringChunk:
        return string_chunk(self._footer, group, index)

    def _strings_in_dictionaries(self, source: InputFile, strings: StringChunk) -> pa.ChunkedArray:
        path = self._footer.schema.column(strings.column).path
        file = pq.ParquetFile(
            source.arrow_file(),
            metadata=self._footer,
            read_dictionary=[path],
            pre_buffer=False,
            arrow_extensions_enabled=False,
            **_LIMITS,
        )
        try:
            table = file.reader.read_row_groups([strings.group], column_indices=[strings.column], use_threads=False)
        except pa.ArrowException as error:
            raise TooMany(f"lists whose strings may repeat each other: {error}") from error
        for chunk in table.column(0).chunks:
            check_values(chunk)
        return table.column(0)

    def _paths(self, columns: Collection[int]) -> dict[int, str]:
        """Return pyarrow's paths for columns, without paths that another column has as well."""
        if not columns:
            return {}
        paths = [self._footer.schema.column(index).path for index in range(self._footer.num_columns)]
        count = Counter(paths)
        return {index: paths[index] for index in columns if count[paths[index]] == 1}

    def _dictionary_sizes(self, index: int, groups: list[int]) -> dict[int, int] | None:
        """Return the sizes of a column's dictionaries; None where a row group has strings outside a dictionary."""
        sizes = {}
        for group in groups:
            size = dictionary_size(self._source, self._footer.row_group(group).column(index))
            if size is None:
                return None
            sizes[group] = size
        return sizes

    def _groups(self, request: ReadRequest, wanted: list[Leaf]) -> list[int]:
        groups = [
            group
            for group, rows in enumerate(self._rows)
            if not all_skipped(request.skipped_rows, self._first_rows[group], rows)
        ]
        if request.split is not None and not _is_whole(request.split, self._size):
            inside = in_split(self._starts(), request.split)
            groups = [group for group in groups if group in inside]
        if request.row_filter is None or not groups:
            return groups
        try:
            self._check_statistics()
        except ValueError:
            return groups  # no reason not to read the rows
        by_id = {leaf.field_id: leaf for leaf in wanted if leaf.field_id is not None}
        statistics = RowGroupStatistics(self._footer, groups, by_id, _bound_types(request.row_filter), self._ordered)
        keep = inclusive_metrics(request.row_filter, statistics)
        return [group for group, kept in zip(groups, keep, strict=True) if kept]

    def _runs(self, groups: list[int], wanted: list[Leaf]) -> Iterator[tuple[list[int], int]]:
        """Iterate over runs of small consecutive row groups, or single ones, each with its decoded size in bytes."""
        run: list[int] = []
        total, most = 0, _TOGETHER_BYTES if self._is_near else 0
        for group in groups:
            self._check_counts(group, wanted)
            size = sum(_decoded_bytes(self._footer.row_group(group), leaf) for leaf in wanted)
            if run and (group != run[-1] + 1 or total + size > most):
                yield run, total
                most = min(_TOGETHER_BYTES, 8 * total)
                run, total = [], 0
            run.append(group)
            total += size
        if run:
            yield run, total

    def _promised(self, groups: Sequence[int]) -> int:
        return sum(self._rows[group] for group in groups)

    def _batch_rows(self, run: list[int], size: int, request: ReadRequest) -> int:
        width = max(1, size // max(1, self._promised(run)))
        return max(1, min(request.batch_rows, _BATCH_BYTES // width))

    def _read_groups(
        self, wanted: DecodedColumns, run: list[int], rows: int, size: int, request: ReadRequest
    ) -> Iterator[pa.RecordBatch]:
        position = first = self._first_rows[run[0]]
        promised = self._promised(run)
        decoded = self._decoded(wanted, run, rows, size)
        while True:
            with self._reading("the pages"):
                columns = next(decoded, None)
            if columns is None:
                break
            count = len(columns[0])
            if request.positions:
                columns.append(_positions(position, count))
            position += count
            yield _record_batch(columns, wanted.schema, request)
        if position != first + promised:
            raise self._damaged(f"{position - first} rows where the footer promises {promised}")

    def _decoded(self, wanted: DecodedColumns, run: list[int], rows: int, size: int) -> Iterator[list[pa.Array]]:
        """Decode the columns of row groups in batches, with fewer rows at once after strings turn out to be long."""
        watched, given = self._watched, 0
        while True:
            left = given
            try:
                for columns in decode(wanted, run, rows=rows, size=size):
                    count = len(columns[0])
                    if left < count or not count:
                        given += count - left
                        yield [column.slice(left) for column in columns] if left else columns
                    left = max(0, left - count)
                return
            except (pa.ArrowException, OSError, ValueError):
                if watched is not None and watched.failure is not None:
                    raise watched.failure from None
                if watched is None or watched.fewer is None:
                    raise
            rows, size = min(rows, watched.fewer), max(size, MOST_BYTES)
            watched.begin_again()

    def _starts(self) -> list[int]:
        """Where the row groups start."""
        self._check_chunks(range(min(1, self._footer.num_columns)))
        return [row_group_start(self._footer.row_group(at)) for at in range(self._footer.num_row_groups)]

    def _check_chunks(self, columns: Iterable[int]) -> None:
        """Check once that Python can safely read the metadata of these columns' chunks. Raises ``ValueError``."""
        new = sorted({*columns} - self._verdict.columns)
        if new and self._key is None:
            if self._tail and not self._verdict.columns:
                check_codecs(self._tail)
            check_column_chunks(self._footer, self._size, new)
            self._verdict.columns.update(new)

    def _check_statistics(self) -> None:
        """Check once that pyarrow can safely decode the statistics."""
        if self._tail and not self._verdict.statistics:
            check_statistics(self._tail, self._footer.schema)
            self._verdict.statistics = True
        self._tail = b""

    def _check_counts(self, group: int, wanted: list[Leaf]) -> None:
        """Reject a file if a column and its row group disagree on the number of rows: some would be lost."""
        row_group = self._footer.row_group(group)
        for leaf in wanted:
            chunk = row_group.column(leaf.index)
            if leaf.repeated:
                self._check_values(chunk, leaf)
            elif chunk.num_values != self._rows[group]:
                raise self._damaged("a column holds another number of rows than its row group")

    def _check_values(self, chunk: Any, leaf: Leaf) -> None:
        """Reject lists with very many values in a few bytes."""
        try:
            check_claim(chunk, _width(leaf))
        except TooMany as error:
            raise UnsupportedFeature(f"{self._location}: a list: {error}", location=self._location) from None
        if self._sees_pages:  # anywhere else each page would be a request
            with self._reading("a list"):
                check_pages(self._source, chunk)

    def _check_pages(self, groups: list[int], wanted: list[Leaf], rows: int) -> None:
        """Reject pages that inflate to very many bytes: now for a local file, during reads for a remote one.

        ``rows`` is the number of rows in a batch.
        """
        if self._key is not None:
            return
        claims = self._claims(groups, wanted)
        if self._watched is not None:
            indices = [leaf.index for leaf in wanted if _is_string_like(leaf)]
            self._watched.expect(claims, [(at, self._strings(group, at)) for at in indices for group in groups], rows)
            return
        with self._reading("the pages"):
            for claim in claims:
                check_inflation(self._source, claim)

    def _claims(self, groups: list[int], wanted: list[Leaf]) -> list[Claim]:
        claims: list[Claim] = []
        row_groups = [self._footer.row_group(group) for group in groups]
        for leaf in wanted:
            is_string = _is_string_like(leaf)
            for row_group in row_groups:
                try:
                    claim = claim_of(row_group.column(leaf.index), is_string=is_string)
                except TooMany as error:
                    raise UnsupportedFeature(
                        f"{self._location}: column '{leaf.field.name}': {error}", location=self._location
                    ) from None
                if claim is not None:
                    claims.append(claim)
        return claims

    def _reading(self, what: str) -> AbstractContextManager[None]:
        if self._key is not None:
            return reading(self._location, what, keyed=True)
        return reading(self._location, what, self._has_encrypted_columns)

    def _has_encrypted_columns(self) -> bool:
        try:
            tail = read_tail(self._source, self._size)
        except (IcefieldError, OSError, ValueError):
            return False
        return tail is not None and is_encrypted(tail)

    def _damaged(self, why: str) -> InvalidFile:
        return InvalidFile(f"{self._location} is damaged: {why}", location=self._location)


def _decoded_bytes(row_group: Any, leaf: Leaf) -> int:
    """Estimate the bytes of a column chunk in memory: the size of its pages, but at least its values' width."""
    chunk = row_group.column(leaf.index)
    return int(max(chunk.total_uncompressed_size, chunk.num_values * _width(leaf)))


def _width(leaf: Leaf) -> int:
    try:
        return max(1, int(leaf.field.type.bit_width) // 8)
    except ValueError:
        return _TEXT_WIDTH


def _is_string_like(leaf: Leaf) -> bool:
    """Whether the values of a column have no width of their own."""
    try:
        return not leaf.field.type.bit_width
    except ValueError:
        return True


def _is_whole(split: Split, size: int) -> bool:
    return split.start <= _MAGIC and split.start + split.length >= size


def _footer_in(tail: bytes) -> Any:
    return pq.ParquetFile(pa.BufferReader(tail), **_LIMITS).metadata


def _wanted_leaves(file_schema: pa.Schema, columns: pa.Schema) -> list[list[Leaf]]:
    """For each column its leaves, with their places in the file and the ids that the request gives them."""
    return [
        [Leaf(index, leaf.field, leaf.repeated) for leaf, index in zip(leaves([column]), indices, strict=True)]
        for column, indices in zip(columns, select_leaves(file_schema, columns), strict=True)
    ]


def _bound_types(row_filter: BooleanExpression) -> dict[int, pa.DataType]:
    """The types in which a filter compares: the table's types, to which types of the file may have been promoted."""
    return {leaf.field.field_id: to_arrow_type(leaf.field.field_type) for leaf in bound_leaves(row_filter)}


def _positions(first: int, rows: int) -> pa.Array:
    return pa.array(np.arange(first, first + rows, dtype=np.int64))


def _record_batch(columns: list[pa.Array], schema: pa.Schema, request: ReadRequest) -> pa.RecordBatch:
    schema = schema.remove_metadata()
    return pa.RecordBatch.from_arrays(columns, schema=schema.append(POSITION) if request.positions else schema)


def _bare(first_row: int, count: int, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """Batches without columns, or with only the positions of rows: nothing needs to be read."""
    for start in range(0, count, request.batch_rows):
        rows = min(request.batch_rows, count - start)
        if request.positions:
            yield pa.RecordBatch.from_arrays([_positions(first_row + start, rows)], schema=pa.schema([POSITION]))
        else:
            yield pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))
