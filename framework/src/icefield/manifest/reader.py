"""Manifests read into columns, through the provider of the file format ``avro``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from icefield.abc import FormatAbility, ManifestFormatReader, ManifestReadRequest
from icefield.base import compute as pc
from icefield.base.limits import MAX_MANIFEST_BYTES
from icefield.errors import InvalidMetadata, UnsupportedFeature
from icefield.manifest import schemas as f
from icefield.manifest.cache import FILES, FetchedManifest, cache_scope, file_key
from icefield.manifest.columns import (
    ALL_COLUMNS,
    COLUMN_TYPES,
    MAP_TYPES,
    NAMES,
    PLAN_COLUMNS,
    check_locations,
    conform,
    conform_partition,
    flatten,
    select_fields,
)
from icefield.manifest.damage import damaged_file, gathered, refuse_encrypted
from icefield.manifest.decoded import (
    DecodedManifest,
    KnownManifests,
    ManifestRequest,
    among,
    joined_requests,
    merged,
    missing_part,
)
from icefield.manifest.disk_cache import disk_cache
from icefield.manifest.entries import ManifestEntries, StatisticKey
from icefield.manifest.inheritance import inherit, inherit_row_ids
from icefield.manifest.manifest_file import ManifestContent, ManifestFile
from icefield.manifest.statistics import StatisticsRequest, as_map, map_column
from icefield.storage import FileIO
from icefield.toolkit import BytesInput
from icefield.types import StructType
from icefield.types.arrow.pieces import numbers_of
from icefield.types.arrow.types import to_arrow_type

_NO_STATISTICS: Final[StatisticsRequest] = {}
_NEVER_NULL: Final = (f.STATUS, f.FILE_PATH, f.FILE_FORMAT, f.RECORD_COUNT, f.FILE_SIZE, f.CONTENT)


_PLAN: Final = ManifestRequest()


def read_manifest(
    io: FileIO,
    manifest: ManifestFile,
    partition_type: StructType,
    *,
    columns: Iterable[int] = PLAN_COLUMNS,
    statistics: StatisticsRequest = _NO_STATISTICS,
) -> ManifestEntries:
    """The entries of a manifest, in the order of the file, DELETED ones included.

    ``partition_type``: the partition tuple of the manifest's own spec. ``columns`` and ``statistics``: see
    ``ManifestRequest``. Parts that were decoded before come from the cache; only missing parts are read.
    Raises ``InvalidMetadata`` for a damaged manifest, ``UnsupportedFeature`` for a later format version.
    """
    return ManifestReader(io).read(manifest, partition_type, ManifestRequest(frozenset(columns), statistics))


class ManifestReader:
    """Reads manifests of one file IO. Safe to share between threads.

    It keeps decoded manifests in the cache, unless ``remember`` is false, which suits a single pass over a whole table.
    """

    def __init__(self, io: FileIO, *, remember: bool = True) -> None:
        self.io = io
        self._remembers = remember
        self._scope = cache_scope(io)
        self._known = KnownManifests(disk_cache(io.properties) if io.key_length is None else None)
        self._unbounded: set[int] = set()
        self._last: tuple[pa.Schema, ManifestRequest, ManifestReadRequest] | None = None
        self._repeated: dict[int, pa.Array] = {}

    def cached(
        self, manifest: ManifestFile, partition_type: StructType, request: ManifestRequest = _PLAN
    ) -> ManifestEntries | None:
        """The entries, if everything that ``request`` asks for has been decoded before; None otherwise.

        If it asks ``partly``, the entries may lack columns.
        """
        if self._scope is None:
            return None
        known = self._known.get(self._key(manifest, partition_type), manifest, request)
        if known is None or missing_part(known, request.tested if request.partly else request) is not None:
            return None
        return known.entries

    def fetch(self, manifest: ManifestFile) -> FetchedManifest:
        """The file itself, to be handed to ``read``; from the cache if it is there."""
        path, key = manifest.manifest_path, manifest.key_metadata
        return self.kept(manifest) or FetchedManifest(self.io.read(path, limit=MAX_MANIFEST_BYTES, key_metadata=key))

    def kept(self, manifest: ManifestFile) -> FetchedManifest | None:
        """The file from the cache; None if it must be fetched."""
        data = None if self._scope is None else FILES.get(self._file_key(manifest))
        return None if data is None else FetchedManifest(data)

    def prepare(self, manifest: ManifestFile, fetched: FetchedManifest, limit: int) -> None:
        """Open a fetched manifest, and inflate about ``limit`` bytes of it. Raises as ``read`` does."""
        reader = self._opened(manifest, fetched)
        with damaged_file("manifest", manifest.manifest_path):
            reader.prepare(limit)
        fetched.reader = reader

    def read(
        self,
        manifest: ManifestFile,
        partition_type: StructType,
        request: ManifestRequest = _PLAN,
        fetched: FetchedManifest | None = None,
    ) -> ManifestEntries:
        """Read as ``read_manifest`` does; ``fetched`` is the file, if it was fetched before."""
        key = self._key(manifest, partition_type)
        request = self._served(request)
        known = self._known.get(key, manifest, request) if self._scope is not None else None
        if known is None:
            decoded = self._decode(manifest, partition_type, request, fetched)
        else:
            missing = missing_part(known, request)
            if missing is None:
                return known.entries
            decoded = merged(known, self._decode(manifest, partition_type, missing, fetched))
        if self._scope is not None and self._remembers:
            self._known.put(key, manifest, request, decoded)
        return decoded.entries

    def read_together(
        self,
        manifests: Sequence[tuple[ManifestFile, StructType]],
        request: ManifestRequest,
        fetched: Sequence[FetchedManifest | None],
    ) -> list[ManifestEntries]:
        """Read several manifests as ``read`` does, but decode them together: faster if each has few entries."""
        keys = [self._key(*one) for one in manifests]
        request = missing = self._served(request)
        known: list[DecodedManifest | None] = [None] * len(keys)
        if self._scope is not None and any(map(KnownManifests.in_memory, keys)):
            known = [self._known.get(key, one, request) for key, (one, _) in zip(keys, manifests, strict=True)]
            parts = [request if held is None else missing_part(held, request) for held in known]
            if all(part is None for part in parts):
                return [held.entries for held in known if held is not None]
            if parts[0] is None or any(part != parts[0] for part in parts):
                return [self.read(*one, request, given) for one, given in zip(manifests, fetched, strict=True)]
            missing = parts[0]
        with ExitStack() as opened:
            readers: list[ManifestFormatReader] = []
            files: list[bytes] = []
            for (manifest, _), given in zip(manifests, fetched, strict=True):
                whole = self.fetch(manifest) if given is None else given
                readers.append(opened.enter_context(self._opened(manifest, whole)))
                files.append(whole.data)
            first = self._first(missing)
            scanned = self._scanned(readers, manifests, first)
            made = [
                self._decoded(manifest, kind, missing, reader, len(data), first, one)
                for (manifest, kind), reader, data, one in zip(manifests, readers, files, scanned, strict=True)
            ]
        made = [new if held is None else merged(held, new) for held, new in zip(known, made, strict=True)]
        if self._scope is not None and self._remembers:
            for (manifest, _), key, decoded, data in zip(manifests, keys, made, files, strict=True):
                self._known.put(key, manifest, request, decoded)
                self._keep(manifest, missing, data)
        return [decoded.entries for decoded in made]

    def _served(self, request: ManifestRequest) -> ManifestRequest:
        """The request for all columns of each manifest; maps are encoded if the format can and no keys are wanted."""
        can_encode = FormatAbility.ENCODED_MAPS in self.io.manifest_format().abilities and not request.keys
        return replace(request, partly=False, encoded=request.encoded and can_encode)

    def _scanned(
        self,
        readers: Sequence[ManifestFormatReader],
        manifests: Sequence[tuple[ManifestFile, StructType]],
        request: ManifestRequest,
    ) -> Sequence[_Scanned | None]:
        """The scanned part of each manifest; None for all if they must be read apart."""
        schema, (manifest, kind) = readers[0].schema, manifests[0]
        location, apart = manifest.manifest_path, [None] * len(readers)
        alike = all(reader.schema is schema or reader.schema.equals(schema, True) for reader in readers)
        if not alike or any(other is not kind and other != kind for _, other in manifests):
            return apart
        versions = [_format_version(reader.metadata, location) for reader in readers]
        if len({*versions}) > 1 or len({one.content for one, _ in manifests}) > 1:
            return apart
        wanted = self._request_for(schema, request, location)
        with damaged_file("manifest", location):
            batches = self.io.manifest_format().read_together(readers, wanted)
            together = [batch for each in batches for batch in each]
            if not together:
                return apart
            # One conversion of long columns takes less time than many conversions of short ones.
            made = _of_batches(together, kind, request.statistics, location)
            rows = [sum(map(len, each)) for each in batches]
            made.complete(request.columns, [one for one, _ in manifests], rows, versions[0], self._repeated)
            return _cut(made, rows)

    def _request_for(self, schema: pa.Schema, request: ManifestRequest, location: str) -> ManifestReadRequest:
        """The request to a format reader; the last one if it is the same, since most manifests share one schema."""
        last = self._last
        if last is not None and last[1] == request and last[0].equals(schema, True):
            return last[2]
        columns, statistics = request.columns, request.statistics
        fields = select_fields(schema, columns | frozenset(statistics), location, encoded=request.encoded)
        map_keys = {kind: ids for kind, ids in statistics.items() if kind not in columns}
        made = ManifestReadRequest(columns=fields, map_keys=map_keys)
        self._last = schema, request, made
        return made

    def _scan(
        self, reader: ManifestFormatReader, kind: StructType, request: ManifestRequest, location: str, size: int
    ) -> _Scanned:
        """Go through the file of ``size`` bytes once."""
        wanted = self._request_for(reader.schema, request, location)
        batches = gathered(reader.read(wanted), size) or [pa.RecordBatch.from_pylist([], wanted.columns)]
        return _of_batches(batches, kind, request.statistics, location)

    def _first(self, request: ManifestRequest) -> ManifestRequest:
        """The request of the first scan, with the statistics that other manifests turned out to need."""
        at_once = joined_requests(request.statistics, among(request.where_unbounded, self._unbounded))
        # A row id is inherited by the counts of the rows before.
        more = {f.STATUS, f.RECORD_COUNT} if f.FIRST_ROW_ID in request.columns else {f.STATUS}
        return replace(request, columns=request.columns | more, statistics=at_once, where_unbounded={})

    def _file_key(self, manifest: ManifestFile) -> tuple[Any, ...]:
        return file_key(self.io, self._scope, manifest.manifest_path, manifest.manifest_length)

    def _key(self, manifest: ManifestFile, partition_type: StructType) -> tuple[Any, ...]:
        numbers = manifest.sequence_number, manifest.added_snapshot_id, manifest.first_row_id
        return (*self._file_key(manifest), *numbers, manifest.partition_spec_id, manifest.content, partition_type)

    def _decode(
        self,
        manifest: ManifestFile,
        partition_type: StructType,
        request: ManifestRequest,
        fetched: FetchedManifest | None,
    ) -> DecodedManifest:
        whole = self.fetch(manifest) if fetched is None else fetched
        with self._opened(manifest, whole) as reader:
            size = len(whole.data)
            decoded = self._decoded(manifest, partition_type, request, reader, size, self._first(request))
        self._keep(manifest, request, whole.data)
        return decoded

    def _keep(self, manifest: ManifestFile, request: ManifestRequest, data: bytes) -> None:
        """Keep the bytes of an undamaged manifest for later requests. A damaged manifest is fetched again."""
        if self._scope is not None and self._remembers and not request.columns >= ALL_COLUMNS:
            FILES.put(self._file_key(manifest), data)

    def _opened(self, manifest: ManifestFile, fetched: FetchedManifest) -> ManifestFormatReader:
        """The reader that was opened ahead, handed out once; else a new one."""
        reader, fetched.reader = fetched.reader, None
        if reader is not None:
            return reader
        location, data = manifest.manifest_path, fetched.data
        refuse_encrypted("manifest", location, data)
        with damaged_file("manifest", location):
            return self.io.manifest_format().open_reader(BytesInput(data), location, size=len(data))

    def _decoded(
        self,
        manifest: ManifestFile,
        partition_type: StructType,
        request: ManifestRequest,
        reader: ManifestFormatReader,
        size: int,
        first: ManifestRequest,
        scanned: _Scanned | None = None,
    ) -> DecodedManifest:
        """``first`` is the request of the first scan; ``scanned`` is its result, if it is done already."""
        location, wanted = manifest.manifest_path, first.columns
        with damaged_file("manifest", location):
            found = scanned or self._scan(reader, partition_type, first, location, size)
            num_rows, columns, single = found.num_rows, found.columns, found.single
            known = DecodedManifest(ManifestEntries(manifest, num_rows, columns, single, wanted), frozenset(single))
            if (missing := missing_part(known, request)) is not None:
                # Other manifests of the table will lack these bounds, too.
                self._unbounded.update(*missing.statistics.values())
                single |= self._scan(reader, partition_type, missing, location, size).single
            _check_whole(manifest, size, num_rows)
            if scanned is None:
                version = _format_version(reader.metadata, location)
                found.complete(wanted, [manifest], [num_rows], version, self._repeated)
            inherit_row_ids(columns, wanted, manifest, num_rows)
        kept = {number: column for number, column in columns.items() if number in wanted}
        if request.encoded:  # the columns of other manifests, with which these are written, are encoded
            kept = {number: pa.nulls(num_rows, pa.binary()) for number in wanted & MAP_TYPES.keys()} | kept
        entries = ManifestEntries(manifest, num_rows, kept, {**single}, wanted)
        return DecodedManifest(entries, frozenset(single))


@dataclass(slots=True)
class _Scanned:
    """The result of one scan of a file: the wanted columns in the format's types, and single statistics."""

    num_rows: int
    columns: dict[int, pa.Array]
    single: dict[StatisticKey, pa.Array | None]

    def complete(
        self,
        wanted: frozenset[int],
        manifests: Sequence[ManifestFile],
        rows: Sequence[int],
        version: int,
        repeated: dict[int, pa.Array],
    ) -> None:
        """Check the columns, and fill in the values that entries inherit from their manifests.

        A column that begins like the one of an earlier scan in ``repeated`` becomes a slice of it: many columns are the
        same for all files, and take memory once.
        """
        _validate(self.columns, wanted, manifests[0], self.num_rows)
        inherit(self.columns, wanted, manifests, rows, version)
        for number in self.columns.keys() & COLUMN_TYPES.keys():  # no partitions, where 0.0 equals -0.0 in Arrow
            column = self.columns[number]
            same = repeated.setdefault(number, column).slice(0, self.num_rows)
            if not same.equals(column):
                same = repeated[number] = column
            self.columns[number] = same


def _of_batches(
    batches: Sequence[pa.RecordBatch], partition_type: StructType, statistics: StatisticsRequest, location: str
) -> _Scanned:
    columns = _conformed(flatten(batches, location), partition_type, location)
    single: dict[StatisticKey, pa.Array | None] = {
        (kind, number): map_column(columns[kind], number) if kind in columns else None
        for kind, ids in statistics.items()
        for number in ids
    }
    return _Scanned(sum(map(len, batches)), columns, single)


def _cut(together: _Scanned, rows: Sequence[int]) -> list[_Scanned]:
    """Split a scan into pieces with the given numbers of rows."""
    pieces, start = [], 0
    for count in rows:
        columns = {number: column.slice(start, count) for number, column in together.columns.items()}
        single = {key: None if array is None else array.slice(start, count) for key, array in together.single.items()}
        pieces.append(_Scanned(count, columns, single))
        start += count
    return pieces


def _format_version(metadata: Any, location: str) -> int:
    """The version in the header; the oldest when it is absent, as in manifests of version 1."""
    stored = metadata.get("format-version", b"1")
    try:
        version = int(stored)
    except ValueError as error:
        raise InvalidMetadata(f"manifest {location} has format-version {stored!r}", location=location) from error
    if version not in f.FORMAT_VERSIONS:
        raise UnsupportedFeature(f"manifest {location} has format version {version}", location=location)
    return version


def _conformed(found: dict[int, pa.Array], partition_type: StructType, location: str) -> dict[int, pa.Array]:
    columns = {}
    for number, column in found.items():
        if number == f.PARTITION:
            columns[number] = conform_partition(column, to_arrow_type(partition_type), location)
        elif number in MAP_TYPES:
            columns[number] = as_map(column, MAP_TYPES[number])
        elif number in COLUMN_TYPES:
            columns[number] = conform(column, COLUMN_TYPES[number], NAMES[number], location)
            check_locations(columns[number], NAMES[number], location)
    if f.FILE_FORMAT in columns:
        # Writers spell the names in either case.
        columns[f.FILE_FORMAT] = pc.utf8_lower(columns[f.FILE_FORMAT])
    return columns


def _check_whole(manifest: ManifestFile, size: int, num_rows: int) -> None:
    """Refuse a file that was cut at the end of a block, which no checksum shows.

    Neither the size nor the number of entries alone proves it. Foreign writers err in counts, and some files were
    rewritten a little shorter.
    """
    if size < manifest.manifest_length and num_rows < manifest.entry_count:
        raise InvalidMetadata(
            f"manifest {manifest.manifest_path} is cut short: {size} of {manifest.manifest_length} bytes, "
            f"{num_rows} of {manifest.entry_count} entries",
            location=manifest.manifest_path,
        )


def _validate(columns: dict[int, pa.Array], wanted: frozenset[int], manifest: ManifestFile, num_rows: int) -> None:
    location = manifest.manifest_path
    for number in _NEVER_NULL:
        column = columns.get(number)
        if column is not None and column.null_count:
            if number == f.CONTENT:
                columns[number] = pc.fill_null(column, 0)
                continue
            raise InvalidMetadata(f"manifest {location} has an entry without {NAMES[number]}", location=location)
    _check_range(columns, f.STATUS, 0, 2, location)
    if f.CONTENT in columns:
        data = manifest.content is ManifestContent.DATA
        _check_range(columns, f.CONTENT, 0 if data else 1, 0 if data else 2, location)
    elif f.CONTENT in wanted and manifest.content is ManifestContent.DELETES and num_rows:
        raise InvalidMetadata(f"manifest {location} is to list delete files, but has no content", location=location)


def _check_range(columns: dict[int, pa.Array], number: int, low: int, high: int, location: str) -> None:
    values = numbers_of(columns[number])
    if len(values) and not (low <= values.min() and values.max() <= high):
        raise InvalidMetadata(
            f"manifest {location} has an entry whose {NAMES[number]} is not in {low}..{high}", location=location
        )
