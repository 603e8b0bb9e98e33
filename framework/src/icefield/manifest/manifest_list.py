"""Manifest lists: which manifests hold the files of a snapshot."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icefield.abc import FileKey, ManifestFormat, ReadRequest
from icefield.base import compute as pc
from icefield.base.concurrency import LruCache
from icefield.base.limits import MAX_MANIFEST_BYTES
from icefield.errors import InvalidMetadata
from icefield.manifest.cache import cache_scope, decoded_cache
from icefield.manifest.columns import check_locations, conform, identify
from icefield.manifest.damage import damaged_file, gathered, refuse_encrypted
from icefield.manifest.manifest_file import FieldSummary, ManifestContent, ManifestFile
from icefield.manifest.schemas import FIELD_SUMMARY_FIELDS, MANIFEST_FILE_FIELDS, PARTITIONS, arrow_types
from icefield.metadata import Snapshot, TableMetadata
from icefield.storage import FileIO
from icefield.toolkit import BytesInput
from icefield.toolkit.input_files import read_bounded
from icefield.types.arrow.pieces import array_of, numbers_of, one_array

PATH, LENGTH, SPEC_ID, CONTENT, SEQUENCE, MIN_SEQUENCE, ADDED_SNAPSHOT = 500, 501, 502, 517, 515, 516, 503
ADDED_FILES, EXISTING_FILES, DELETED_FILES = 504, 505, 506
ADDED_ROWS, EXISTING_ROWS, DELETED_ROWS = 512, 513, 514
KEY_METADATA, FIRST_ROW_ID = 519, 520
CONTAINS_NULL, CONTAINS_NAN, LOWER, UPPER = 509, 518, 510, 511

LIST_TYPES: Final = arrow_types(rule for rule in MANIFEST_FILE_FIELDS if rule.field_id != PARTITIONS)
SUMMARY_TYPES: Final = arrow_types(FIELD_SUMMARY_FIELDS)
_RULES: Final = {rule.field_id: rule for rule in MANIFEST_FILE_FIELDS}
_SUMMARY_NAMES: Final = {rule.name: rule.field_id for rule in FIELD_SUMMARY_FIELDS}
_OLD_NAMES: Final = {
    "added_data_files_count": ADDED_FILES,
    "existing_data_files_count": EXISTING_FILES,
    "deleted_data_files_count": DELETED_FILES,
}
_NAMES: Final = {**{rule.name: rule.field_id for rule in MANIFEST_FILE_FIELDS}, **_OLD_NAMES}


class ManifestList:
    """The manifests of one snapshot, in columns; objects are made on demand.

    ``raw`` is the file itself, if it exists, so that the next snapshot's list can be spliced from it. It is decoded on
    the first access to a column.
    """

    __slots__ = ("_columns", "_format", "_manifests", "_summaries", "key", "location", "paths_are_distinct", "raw")

    def __init__(
        self,
        location: str,
        *,
        raw: bytes | None = None,
        file_format: ManifestFormat | None = None,
        columns: dict[int, pa.Array] | None = None,
        summaries: bool = True,
    ) -> None:
        self.location = location
        self.raw = raw
        self.key: FileKey | None = None
        """The key of a file that was just written and is encrypted."""
        self.paths_are_distinct = False
        self._format = file_format
        self._summaries = summaries
        self._columns = columns
        self._manifests: tuple[ManifestFile, ...] | None = None

    @classmethod
    def of(cls, location: str, manifests: Sequence[ManifestFile]) -> ManifestList:
        """A list that is no file: the manifests of an old v1 snapshot, which names them itself."""
        return cls(location, columns=manifest_columns(manifests))

    def __len__(self) -> int:
        return len(self.columns[PATH])

    def __repr__(self) -> str:
        return f"ManifestList({self.location!r})"

    @property
    def nbytes(self) -> int:
        """The bytes that the list keeps alive: its decoded columns, if any, and an estimate from the file's size."""
        decoded = 0 if self._columns is None else sum(a.get_total_buffer_size() for a in self._columns.values())
        return 1000 + decoded + 12 * len(self.raw or b"")

    @property
    def columns(self) -> dict[int, pa.Array]:
        """The fields by id; ``PARTITIONS`` holds the summaries. Raises ``InvalidMetadata`` for a damaged list."""
        if self._columns is None:
            assert self._format is not None
            self._columns = _decode(self._format, self.raw or b"", self.location, self._summaries)
        return self._columns

    @property
    def manifests(self) -> tuple[ManifestFile, ...]:
        """Every manifest as an object, in the order of the list."""
        if self._manifests is None:
            self._manifests = tuple(self.select(np.arange(len(self))))
        return self._manifests

    @property
    def has_objects(self) -> bool:
        """Whether ``manifests`` costs nothing."""
        return self._manifests is not None

    def know(self, manifests: Iterable[ManifestFile]) -> None:
        """Take over the manifests of the file from its writer, so that they need not be decoded."""
        self._manifests = tuple(manifests)

    def select(self, indices: np.ndarray[Any, Any], *, summaries: bool = True) -> list[ManifestFile]:
        """The manifests at these positions as objects; without ``summaries`` their partitions are None."""
        if self._manifests is not None:
            return [self._manifests[i] for i in indices.tolist()]
        return _objects(self.columns, array_of(indices), summaries)

    def integers(self, number: int) -> np.ndarray[Any, Any]:
        """An integer column that is never null, as numpy."""
        return numbers_of(self.columns[number])

    def may_have_live_files(self) -> np.ndarray[Any, Any]:
        """Which manifests may hold live files: all except those with known counts of no added and no existing files."""
        added, existing, _ = self.file_counts()
        live: np.ndarray[Any, Any] = (added != 0) | (existing != 0)
        return live

    def file_counts(self) -> np.ndarray[Any, Any]:
        """The numbers of added, existing and deleted files of each manifest, in three rows; -1 if unknown."""
        columns = (self.columns[number] for number in (ADDED_FILES, EXISTING_FILES, DELETED_FILES))
        return np.stack([numbers_of(pc.fill_null(each, -1) if each.null_count else each) for each in columns])

    def summary_column(self, position: int, kind: int, indices: np.ndarray[Any, Any]) -> pa.Array:
        """One part (``CONTAINS_NULL``, ``LOWER``, ...) of the summaries of one partition field.

        Null where a manifest has no summary of the field.
        """
        lists = self.columns.get(PARTITIONS)
        if lists is None:
            return pa.nulls(len(indices), SUMMARY_TYPES[kind])
        offsets = lists.offsets.to_numpy()
        at = offsets[:-1][indices] + position
        absent = at >= offsets[1:][indices]
        if lists.null_count:
            absent |= np.asarray(lists.is_null())[indices]
        element = lists.values
        for child_position, child in enumerate(element.type):
            if identify(child, _SUMMARY_NAMES) == kind:
                found = conform(element.field(child_position), SUMMARY_TYPES[kind], "field summary", self.location)
                return found.take(pa.array(at, mask=absent))
        return pa.nulls(len(indices), SUMMARY_TYPES[kind])


MANIFEST_LISTS: Final[LruCache[Hashable, ManifestList]] = decoded_cache(64 * 1024 * 1024)
"""Every manifest list that was read or written in this process, up to a bound."""


def read_manifest_list(
    io: FileIO, snapshot: Snapshot, metadata: TableMetadata, *, summaries: bool = True
) -> ManifestList:
    """The manifests of a snapshot. Without ``summaries`` nothing is known of their partitions, and nothing is cached.

    An old v1 snapshot may name its manifests itself: their lengths and specs are then read from the manifests.
    Raises ``InvalidMetadata`` for a damaged list, and for a snapshot of v2 or later that has none.
    """
    location = snapshot.manifest_list
    if location is None:
        if metadata.format_version > 1 and snapshot.sequence_number > 0:
            raise InvalidMetadata(
                f"snapshot {snapshot.snapshot_id} has no manifest list, which format version 2 demands",
                snapshot_id=snapshot.snapshot_id,
            )
        return _inline_manifests(io, snapshot)
    scope = cache_scope(io)
    place = (scope, io.resolve(location))
    # Also for a cached list: after the life of an unwrapped key, its service decides again.
    key = None if snapshot.key_id is None else io.encryption.stored_key(metadata, snapshot.key_id)
    found = MANIFEST_LISTS.get(place) if scope is not None else None
    if found is None:
        with io.open_input(location) as source:
            plain = source if key is None else io.encryption.decrypting(source, key, location)
            raw = read_bounded(plain, location, MAX_MANIFEST_BYTES)
        found = ManifestList(location, raw=raw, file_format=io.manifest_format(), summaries=summaries)
        if scope is not None and summaries:
            MANIFEST_LISTS.put(place, found)
    return found


def remember_manifest_list(io: FileIO, manifest_list: ManifestList) -> None:
    """Keep a list that was just written, so that the next commit need not fetch it."""
    scope = cache_scope(io)
    if scope is not None:
        MANIFEST_LISTS.put((scope, io.resolve(manifest_list.location)), manifest_list)


def manifest_columns(manifests: Sequence[ManifestFile]) -> dict[int, pa.Array]:
    """Manifests in columns, by field id."""
    columns = {
        number: pa.array([getattr(manifest, _RULES[number].name) for manifest in manifests], kind)
        for number, kind in LIST_TYPES.items()
    }
    columns[PARTITIONS] = pa.array(
        [None if m.partitions is None else list(map(asdict, m.partitions)) for m in manifests],
        pa.list_(_SUMMARY_ELEMENT),
    )
    return columns


_SUMMARY_ELEMENT: Final = pa.field(
    "element",
    pa.struct(
        [
            pa.field(rule.name, SUMMARY_TYPES[rule.field_id], rule.field_id != CONTAINS_NULL)
            for rule in FIELD_SUMMARY_FIELDS
        ]
    ),
    nullable=False,
)


def _decode(file_format: ManifestFormat, raw: bytes, location: str, summaries: bool) -> dict[int, pa.Array]:
    refuse_encrypted("manifest list", location, raw)
    with damaged_file("manifest list", location):
        with file_format.open_reader(BytesInput(raw), location, size=len(raw)) as reader:
            left_out = () if summaries else (PARTITIONS,)
            wanted = [f for f in reader.schema if (number := identify(f, _NAMES)) in _RULES and number not in left_out]
            fields = pa.schema(wanted)
            batches = gathered(reader.read(ReadRequest(columns=fields)), len(raw))
        table = pa.Table.from_batches(batches, schema=batches[0].schema if batches else fields)
        found = {
            identify(field, _NAMES): one_array(column) for field, column in zip(fields, table.columns, strict=True)
        }
        return _completed(found, table.num_rows, location)


def _completed(found: dict[int, pa.Array], num_rows: int, location: str) -> dict[int, pa.Array]:
    columns = {}
    for number, kind in LIST_TYPES.items():
        rule = _RULES[number]
        column = found.get(number)
        if column is None:
            column = pa.nulls(num_rows, kind)
        column = conform(column, kind, rule.name, location)
        check_locations(column, rule.name, location)
        if rule.read_default is not None and column.null_count:
            column = pc.fill_null(column, rule.read_default)
        elif rule.reader_rule == "default-or-error" and column.null_count:
            raise InvalidMetadata(f"manifest list {location} has a manifest without {rule.name}", location=location)
        columns[number] = column
    contents = numbers_of(columns[CONTENT])
    if len(contents) and not (contents.min() >= 0 and contents.max() <= 1):
        raise InvalidMetadata(f"manifest list {location} has a manifest whose content is not 0 or 1", location=location)
    summaries = found.get(PARTITIONS)
    if summaries is not None:
        kind = summaries.type
        if not pa.types.is_null(kind) and not (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)):
            raise InvalidMetadata(f"manifest list {location}: partitions is {kind}", location=location)
        if pa.types.is_list(kind):
            columns[PARTITIONS] = summaries
    return columns


def _objects(columns: dict[int, pa.Array], indices: pa.Array, summaries: bool) -> list[ManifestFile]:
    names = [_RULES[number].name for number in LIST_TYPES]
    values = [columns[number].take(indices).to_pylist() for number in LIST_TYPES]
    partitions: Iterable[Any] = [None] * len(indices)
    if summaries and PARTITIONS in columns:
        partitions = _summary_objects(columns[PARTITIONS].take(indices))
    found = []
    for row, of_fields in zip(zip(*values, strict=True), partitions, strict=True):
        fields = dict(zip(names, row, strict=True))
        fields["content"] = ManifestContent(fields["content"])
        found.append(ManifestFile(**fields, partitions=of_fields))
    return found


def _summary_objects(lists: pa.Array) -> list[tuple[FieldSummary, ...] | None]:
    element = lists.type.value_type
    found = {identify(child, _SUMMARY_NAMES): child.name for child in element}
    keys = [found.get(number, "") for number in (CONTAINS_NULL, CONTAINS_NAN, LOWER, UPPER)]

    def summary(value: Mapping[str, Any]) -> FieldSummary:
        null, nan, low, high = map(value.get, keys)
        # Without the flag, the field may contain nulls.
        return FieldSummary(True if null is None else null, nan, low, high)

    return [None if row is None else tuple(summary(value) for value in row) for row in lists.to_pylist()]


def _inline_manifests(io: FileIO, snapshot: Snapshot) -> ManifestList:
    file_format = io.manifest_format()
    found = []
    for location in snapshot.manifests:
        data = io.read(location, limit=MAX_MANIFEST_BYTES)
        with (
            damaged_file("manifest", location),
            file_format.open_reader(BytesInput(data), location, size=len(data)) as reader,
        ):
            spec_id = int(reader.metadata.get("partition-spec-id", b"0"))
        found.append(
            ManifestFile(
                manifest_path=location,
                manifest_length=len(data),
                partition_spec_id=spec_id,
                added_snapshot_id=snapshot.snapshot_id,
            )
        )
    return ManifestList.of(f"snapshot {snapshot.snapshot_id}", found)
