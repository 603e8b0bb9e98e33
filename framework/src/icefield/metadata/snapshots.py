"""Snapshots: the states of a table, and the summary that each states its change.

See "Snapshots" of the table specification and its appendix on optional summary fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final
from uuid import uuid4

import msgspec

from icefield.base.limits import LocationText, NameText, ValueText
from icefield.base.notebooks import html_of
from icefield.base.structs import decodable
from icefield.errors import InvalidArgument
from icefield.metadata.entries import Long
from icefield.metadata.properties import FrozenDict
from icefield.metadata.timestamps import in_utc

_Place = Annotated[LocationText, msgspec.Meta(min_length=1)]

NO_SNAPSHOT: Final = -1
"""How older writers spell "no snapshot"."""

STAGED_WAP_ID: Final = "wap.id"
"""Key of a summary: the name under which the change was staged for an audit."""

PUBLISHED_WAP_ID: Final = "published-wap-id"
"""Key of a summary: the WAP id of the staged change that the snapshot published."""

SOURCE_SNAPSHOT_ID: Final = "source-snapshot-id"
"""Key of a summary: the id of the snapshot that was cherry-picked."""

REPLACE_PARTITIONS: Final = "replace-partitions"
"""Key of a summary: whether the change was a dynamic partition overwrite."""


class Operation(StrEnum):
    """The kind of change that a snapshot made to the rows of its parent."""

    APPEND = "append"
    """Files were added and none removed."""

    REPLACE = "replace"
    """Files were exchanged without a change of rows: compaction, another format, relocation."""

    OVERWRITE = "overwrite"
    """Rows were added and removed."""

    DELETE = "delete"
    """Files were removed, or deletes were added."""


@decodable
class Snapshot(
    msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True, repr_omit_defaults=True, dict=False
):
    """A state of the table: its manifests, its time and its parent.

    ``timestamp_ms`` is in milliseconds since 1970-01-01 UTC. ``summary`` holds strings, among them ``operation``.
    ``manifest_list`` is None, and ``manifests`` holds locations, only in old v1 tables. ``sequence_number`` is 0 in
    v1. ``first_row_id`` and ``added_rows`` exist from v3, ``key_id`` only where the manifest list is encrypted.
    """

    sequence_number: Long = 0
    snapshot_id: Long
    parent_snapshot_id: Long | None = None
    timestamp_ms: Long
    summary: dict[NameText, ValueText] = msgspec.field(default_factory=dict)
    manifest_list: _Place | None = None
    manifests: tuple[_Place, ...] = ()
    schema_id: Long | None = None
    first_row_id: Long | None = None
    added_rows: Long | None = None
    key_id: NameText | None = None

    _repr_html_ = html_of

    def __repr__(self) -> str:
        made = f"{self.operation.value}, {in_utc(self.timestamp_ms)}, parent_snapshot_id={self.parent_snapshot_id}"
        return f"Snapshot({self.snapshot_id}, {made}, schema_id={self.schema_id})"

    def __post_init__(self) -> None:
        if self.parent_snapshot_id == NO_SNAPSHOT:
            msgspec.structs.force_setattr(self, "parent_snapshot_id", None)
        if self.manifest_list is not None and self.manifests:
            # If a snapshot has both, the manifest list counts.
            msgspec.structs.force_setattr(self, "manifests", ())
        msgspec.structs.force_setattr(self, "summary", FrozenDict(self.summary))

    @property
    def operation(self) -> Operation:
        """The operation of the snapshot; ``overwrite``, which allows any change, if it is missing or unknown."""
        try:
            return Operation(self.summary.get("operation", Operation.OVERWRITE))
        except ValueError:
            return Operation.OVERWRITE


_decoder = msgspec.json.Decoder(Snapshot)


def decode_snapshot(data: bytes | msgspec.Raw) -> Snapshot:
    """Decode one snapshot. Raises msgspec's errors; the caller knows the location to name."""
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError:
        document = msgspec.json.decode(data, type=dict[str, Any])
        tolerated = {name: value for name, value in document.items() if value is not None}
        schema_id = tolerated.get("schema-id")
        if isinstance(schema_id, str) and schema_id.isascii() and schema_id.isdigit() and len(schema_id) < 11:
            # The specification's own template shows a string here.
            tolerated["schema-id"] = int(schema_id)
        return msgspec.convert(tolerated, Snapshot)


def new_snapshot_id(existing: Container[int] = ()) -> int:
    """A random positive snapshot id that is not among ``existing``."""
    while True:
        bits = uuid4().int
        drawn = ((bits >> 64) ^ bits) & 0x7FFF_FFFF_FFFF_FFFF
        if drawn and drawn not in existing:
            return drawn


_DATA, _POSITION_DELETES, _EQUALITY_DELETES = 0, 1, 2
_WORDS: Final = {
    # (added?, content): counter of files, of rows
    (True, _DATA): ("added-data-files", "added-records"),
    (False, _DATA): ("deleted-data-files", "deleted-records"),
    (True, _POSITION_DELETES): ("added-position-delete-files", "added-position-deletes"),
    (False, _POSITION_DELETES): ("removed-position-delete-files", "removed-position-deletes"),
    (True, _EQUALITY_DELETES): ("added-equality-delete-files", "added-equality-deletes"),
    (False, _EQUALITY_DELETES): ("removed-equality-delete-files", "removed-equality-deletes"),
}
TOTALS: Final = {
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}
_COUNTERS: Final = (
    "added-data-files",
    "deleted-data-files",
    "added-delete-files",
    "removed-delete-files",
    "added-position-delete-files",
    "removed-position-delete-files",
    "added-dvs",
    "removed-dvs",
    "added-equality-delete-files",
    "removed-equality-delete-files",
    "added-records",
    "deleted-records",
    "added-position-deletes",
    "removed-position-deletes",
    "added-equality-deletes",
    "removed-equality-deletes",
    "added-files-size",
    "removed-files-size",
)


class SummaryBuilder:
    """Counts the files of a change and writes the summary of its snapshot.

    A partition is anything hashable that is equal for equal partitions, such as ``(spec_id, normalised_key(values))``.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._partitions: set[Hashable] = set()
        self._by_path: dict[str, Counter[str]] = {}
        self._others: dict[str, str] = {}

    def count(
        self, *, added: bool, content: int, files: int, records: int, size: int, dvs: int = 0, path: str = ""
    ) -> None:
        """Count files of one content; ``dvs`` of them are deletion vectors, ``size`` is in bytes.

        The size of a deletion vector is its part of its Puffin file. ``path`` is the partition of the files as a
        string, for summaries by partition.
        """
        files_word, records_word = _WORDS[added, content]
        prefix = "added" if added else "removed"
        kinds = {files_word: files - dvs, records_word: records, f"{prefix}-files-size": size}
        if content != _DATA:
            kinds[f"{prefix}-delete-files"] = files
            kinds[f"{prefix}-dvs"] = dvs
        self._counts.update(kinds)
        if path:
            self._by_path.setdefault(path, Counter()).update(kinds)

    def touch(self, partitions: Iterable[Hashable]) -> None:
        """Note partitions that the change touches."""
        self._partitions.update(partitions)

    def manifests(self, *, created: int, kept: int, replaced: int = 0, entries_processed: int = 0) -> None:
        """Set the manifest counts of the summary."""
        self._others |= {
            "manifests-created": str(created),
            "manifests-kept": str(kept),
            "manifests-replaced": str(replaced),
            "entries-processed": str(entries_processed),
        }

    def set(self, name: str, value: str) -> None:
        """Add a string of the caller, such as ``engine-name`` or ``wap.id``. Counters cannot be set."""
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidArgument(f"a snapshot summary holds strings; {name!r}: {value!r} is none")
        if name == "operation" or name in _COUNTERS or name in TOTALS or name == "changed-partition-count":
            raise InvalidArgument(f"'{name}' of a snapshot summary is counted and cannot be set")
        self._others[name] = value

    def build(
        self, operation: Operation | str, previous: Mapping[str, str] | None, *, partition_limit: int = 0
    ) -> FrozenDict[str, str]:
        """The summary of the change.

        ``previous`` is the parent's summary, or None without a parent. Totals continue from it; a total that it lacks
        is left out. Partitions are listed one by one if no more than ``partition_limit`` changed.
        """
        summary = {"operation": Operation(operation).value, **self._others}
        summary |= {name: str(self._counts[name]) for name in _COUNTERS if self._counts[name] > 0}
        summary["changed-partition-count"] = str(len(self._partitions))
        if 0 < len(self._by_path) <= partition_limit:
            summary["partition-summaries-included"] = "true"
            for path, counts in sorted(self._by_path.items()):
                summary[f"partitions.{path}"] = ",".join(f"{n}={counts[n]}" for n in _COUNTERS if counts[n] > 0)
        for name, (plus, minus) in TOTALS.items():
            before = 0 if previous is None else _number(previous.get(name))
            total = None if before is None else before + self._counts[plus] - self._counts[minus]
            if total is not None and total >= 0:
                summary[name] = str(total)
        return FrozenDict(summary)


def _number(string: str | None) -> int | None:
    """A total that another writer left, or None when it is not one."""
    if string is None or not (string.isascii() and string.isdigit()) or len(string) > 19:
        return None
    return int(string)
