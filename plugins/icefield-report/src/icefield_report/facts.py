"""The facts about a table in a report, read from its metadata tables in columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from icefield import Table
from icefield.errors import InvalidArgument
from icefield.metadata import WRITE_TARGET_FILE_SIZE, get_int
from icefield.toolkit import lazy, without_userinfo

from icefield_report.maintenance import MaintenanceAdvice, maintenance_of
from icefield_report.manifests import Manifests, manifests_of
from icefield_report.partitions import Ints, Partitions, partitions_of


@dataclass(frozen=True, slots=True)
class Commits:
    """The snapshots by time: times in ms, operations, and the total number of data files after each."""

    times: Ints
    operations: tuple[str, ...]
    total_files: Ints
    """-1 where the summary does not state it."""


@dataclass(frozen=True)
class Facts:
    """A table in numbers. The sizes of columns and the advice cost the most; they are computed when first asked for."""

    table: Table = field(repr=False)
    name: str
    location: str
    format_version: int
    spec: str
    columns: int
    target: int
    properties: tuple[tuple[str, str], ...]
    refs: tuple[tuple[str, str, int], ...]
    updated_ms: int
    sizes: Ints
    rows: int
    delete_sizes: Ints
    delete_rows: tuple[int, int]
    """Positions and keys that delete files hold."""
    delete_files: tuple[int, int]
    """Position delete files and vectors, and equality delete files."""
    partitions: Partitions
    manifests: Manifests
    commits: Commits

    @lazy
    def column_bytes(self) -> tuple[tuple[str, str, int], ...]:
        """Name, type and size of each column, the largest first; without columns that have no size in any file."""
        return _column_bytes(self.table)

    @lazy
    def maintenance(self) -> MaintenanceAdvice:
        """Calls of maintenance that would help."""
        return maintenance_of(self.table, self.partitions)

    @property
    def bytes(self) -> int:
        """The size of all data files."""
        return int(self.sizes.sum())

    @property
    def small_files(self) -> int:
        """Data files below 75 % of the target: the limit below which compaction rewrites a file."""
        return int(np.count_nonzero(self.sizes < 0.75 * self.target))


def facts_of(table: Table, snapshot_id: int | None = None) -> Facts:
    """Read the facts about a table. Nothing is changed, and no data file is read.

    Files, partitions and manifests are those of a snapshot, by default the current one.
    """
    metadata = table.metadata
    wanted = ("content", "file_size_in_bytes", "record_count")
    files = table.inspect.scan("files", snapshot_id=snapshot_id, selected_fields=wanted).to_arrow()
    content, sizes, rows = (np.asarray(files[name]).astype(np.int64) for name in wanted)
    partitions = partitions_of(table, snapshot_id)
    return Facts(
        table=table,
        name=".".join(table.name()),
        location=without_userinfo(table.location()),
        format_version=table.format_version,
        spec=spec_words(table),
        columns=len(table.schema().fields),
        target=_target(metadata.properties),
        properties=tuple(sorted(table.properties.items())),
        refs=tuple((name, str(ref.type), ref.snapshot_id) for name, ref in sorted(table.refs().items())),
        updated_ms=metadata.last_updated_ms,
        sizes=sizes[content == 0],
        rows=int(rows[content == 0].sum()),
        delete_sizes=sizes[content != 0],
        delete_rows=(int(rows[content == 1].sum()), int(rows[content == 2].sum())),
        delete_files=(int(np.count_nonzero(content == 1)), int(np.count_nonzero(content == 2))),
        partitions=partitions,
        manifests=manifests_of(table, partitions, snapshot_id),
        commits=_commits(table),
    )


def _target(properties: Mapping[str, str]) -> int:
    """The target size of data files. An invalid property means the default; the maintenance checks report it."""
    try:
        return get_int(properties, WRITE_TARGET_FILE_SIZE)
    except InvalidArgument:
        return get_int({}, WRITE_TARGET_FILE_SIZE)


def spec_words(table: Table) -> str:
    """Return the partition fields: ``month(time_hour), bucket[4](id)``."""
    schema = table.schema()
    shown = []
    for each in table.spec().fields:
        column = schema.find_column_name(each.source_id) or str(each.source_id)
        transform = str(each.transform)
        shown.append(column if transform == "identity" else f"{transform}({column})")
    return ", ".join(shown) or "not partitioned"


def _commits(table: Table) -> Commits:
    snapshots = sorted(table.snapshots(), key=lambda each: each.timestamp_ms)
    totals = [each.summary.get("total-data-files") or "" for each in snapshots]
    return Commits(
        np.array([each.timestamp_ms for each in snapshots], np.int64),
        tuple(str(each.summary.get("operation") or "unknown") for each in snapshots),
        np.array([int(each) if each.isdecimal() and len(each) < 19 else -1 for each in totals], np.int64),
    )


def _column_bytes(table: Table) -> tuple[tuple[str, str, int], ...]:
    """The stored size of each column, by the sizes that manifests state."""
    totals: dict[int, int] = {}
    with table.inspect.scan("data_files", selected_fields=("column_sizes",)).to_arrow_batch_reader() as batches:
        for batch in batches:
            sizes = batch.column(0).drop_null()
            pairs = pa.table({"id": _part(sizes, "key"), "bytes": _part(sizes, "value")})
            for each in pairs.group_by("id").aggregate([("bytes", "sum")]).to_pylist():
                totals[each["id"]] = totals.get(each["id"], 0) + (each["bytes_sum"] or 0)
    schema = table.schema()
    fields = schema.id_to_field
    found = [
        (schema.find_column_name(field_id) or str(field_id), str(fields[field_id].field_type), total)
        for field_id, total in totals.items()
        if field_id in fields and total > 0
    ]
    return tuple(sorted(found, key=lambda each: (-each[2], each[0])))


def _part(maps: pa.MapArray, name: str) -> pa.Array:
    """The keys or values of all maps. ``flatten`` respects slices; ``keys`` and ``items`` do not."""
    entries = maps.cast(pa.list_(pa.struct([("key", pa.int32()), ("value", pa.int64())]))).flatten()
    return pc.struct_field(entries, name)
