"""One breach of each rule that a doctor for tables knows, planted into sound tables."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from planted_faults import Planted


def set_in(document: Any, *path: Any) -> None:
    """Set ``document[a][b]... = value``, where the last two of ``path`` are the key and the value."""
    *outer, key, value = path
    for each in outer:
        document = document[each]
    document[key] = value


def bound(value: float) -> bytes:
    return struct.pack("<d", value)


def of_column(number: int, value: Any) -> Callable[[list[dict[str, Any]]], None]:
    """Put a value for a column into a statistics map of a manifest entry."""

    def put(pairs: list[dict[str, Any]]) -> None:
        for pair in pairs:
            if pair["key"] == number:
                pair["value"] = value

    return put


def first(edit: Callable[[dict[str, Any]], Any]) -> Callable[[list[dict[str, Any]]], Any]:
    """Change the first record only."""
    return lambda records: edit(records[0])


def twice(records: list[dict[str, Any]]) -> None:
    records.append(records[0])


def at_position(position: int) -> Callable[[pa.Table], pa.Table]:
    """Let each row of a position delete file be of another position."""
    return lambda rows: rows.set_column(
        1, rows.schema.field(1), pa.array([position] * rows.num_rows, rows.schema.field(1).type)
    )


def delete_by_equality(planted: Planted) -> None:
    """A delete by a key, in the only live delete file."""
    planted.table.maintenance.rewrite_data_files(rewrite_all=True, remove_dangling_deletes=True)
    planted.table.delete_by_equality(pa.table({"id": pa.array([1], pa.int64()), "kind": ["a"]}), ["id"])


def garble_deletes(planted: Planted) -> None:
    """Zeros in a delete file of the same size."""
    planted.delete_file().write_bytes(bytes(planted.delete_file().stat().st_size))


VECTORS = {"format_version": 3}
PLANTED: dict[str, tuple[dict[str, Any], Callable[[Planted], Any], str]] = {
    # name: how the table is made, what is done to it, the rule that is broken
    "a last column id below a column's": (
        {},
        lambda p: p.edit_metadata(lambda d: set_in(d, "last-column-id", 1)),
        "last-column-id",
    ),
    "a last partition id below a field's": (
        {},
        lambda p: p.edit_metadata(lambda d: set_in(d, "last-partition-id", 999)),
        "last-partition-id",
    ),
    "a default in version 2": (
        {},
        lambda p: p.edit_metadata(lambda d: set_in(d, "schemas", 0, "fields", 1, "initial-default", "x")),
        "defaults-below-v3",
    ),
    "nanoseconds in version 2": (
        {},
        lambda p: p.edit_metadata(
            lambda d: (
                d["schemas"][0]["fields"].append({"id": 4, "name": "at", "required": False, "type": "timestamp_ns"})
                or set_in(d, "last-column-id", 4)
            )
        ),
        "types-below-v3",
    ),
    "a partition field with the name of another column": (
        {},
        lambda p: p.edit_metadata(lambda d: set_in(d, "partition-specs", -1, "fields", 0, "name", "value")),
        "partition-names",
    ),
    "two snapshots with one sequence number": (
        {},
        lambda p: p.edit_metadata(lambda d: set_in(d, "snapshots", 1, "sequence-number", 1)),
        "snapshot-sequence-numbers",
    ),
    "a snapshot under a schema that is not there": (
        {},
        lambda p: p.edit_metadata(lambda d: set_in(d, "snapshots", 0, "schema-id", 77)),
        "snapshot-schemas",
    ),
    "a next row id that was given out": (
        VECTORS,
        lambda p: p.edit_metadata(lambda d: set_in(d, "next-row-id", 5)),
        "next-row-id",
    ),
    "a log that names an expired snapshot": (
        {},
        lambda p: p.edit_metadata(lambda d: set_in(d, "snapshot-log", 0, "snapshot-id", 99)),
        "snapshot-log",
    ),
    "statistics of a snapshot that is not there": (
        {},
        lambda p: p.edit_metadata(
            lambda d: d.update(
                {
                    "partition-statistics": [
                        {"snapshot-id": 99, "statistics-path": "file:///gone", "file-size-in-bytes": 1}
                    ]
                }
            )
        ),
        "statistics-snapshots",
    ),
    "statistics that are gone": (
        {},
        lambda p: p.edit_metadata(
            lambda d: d.update(
                {
                    "partition-statistics": [
                        {
                            "snapshot-id": d["current-snapshot-id"],
                            "statistics-path": "file:///gone",
                            "file-size-in-bytes": 1,
                        }
                    ]
                }
            )
        ),
        "statistics-files",
    ),
    "a metadata file of the log that is gone": (
        {},
        lambda p: p.metadata.with_name("v1.metadata.json").unlink(),
        "metadata-log",
    ),
    "a delete file in a manifest of data": (
        {},
        lambda p: p.edit_files(lambda d: d.update(content=1)),
        "manifest-files",
    ),
    "data files without row ids": (
        VECTORS,
        lambda p: p.edit_list(lambda records: [r.update(first_row_id=None) for r in records]),
        "row-ids-missing",
    ),
    "a manifest list that is gone": ({}, lambda p: p.manifest_list.unlink(), "manifest-lists"),
    "a manifest that is gone": ({}, lambda p: p.manifest().unlink(), "manifest-files"),
    "a manifest that is longer than its list says": (
        {},
        lambda p: p.edit_list(first(lambda r: r.update(manifest_length=r["manifest_length"] - 1))),
        "manifest-lengths",
    ),
    "a wrong count of files": (
        {},
        lambda p: p.edit_list(first(lambda r: r.update(added_files_count=r["added_files_count"] + 7))),
        "manifest-counts",
    ),
    "a least sequence number above a file's": (
        {},
        lambda p: p.edit_list(first(lambda r: r.update(min_sequence_number=r["min_sequence_number"] + 1))),
        "manifest-sequence-numbers",
    ),
    "a partition outside of its summary": (
        {},
        lambda p: p.edit_list(first(lambda r: r["partitions"][0].update(upper_bound=b"Z"))),
        "manifest-partitions",
    ),
    "totals that are not those of the files": (
        {},
        lambda p: p.edit_metadata(lambda d: set_in(d, "snapshots", -1, "summary", "total-records", "12345")),
        "snapshot-totals",
    ),
    "a data sequence number of the future": (
        {},
        lambda p: p.edit_manifest(first(lambda r: r.update(status=0, sequence_number=99, file_sequence_number=1))),
        "entry-sequence-numbers",
    ),
    "a data file that is listed twice": ({}, lambda p: p.edit_manifest(twice), "listed-twice"),
    "a sort order that is not there": (
        {},
        lambda p: p.edit_files(lambda d: d.update(sort_order_id=9)),
        "sort-orders",
    ),
    "an equality delete file without columns": (
        {},
        lambda p: p.edit_files(lambda d: d.update(content=2, equality_ids=None), content=1),
        "equality-ids",
    ),
    "an equality delete file of a column that is not there": (
        {},
        lambda p: p.edit_files(lambda d: d.update(content=2, equality_ids=[42]), content=1),
        "equality-ids",
    ),
    "a deletion vector in version 2": (
        {},
        lambda p: p.edit_files(lambda d: d.update(file_format="PUFFIN"), content=1),
        "vectors-below-v3",
    ),
    "a deletion vector without a place": (
        VECTORS,
        lambda p: p.edit_files(lambda d: d.update(content_offset=None), content=1),
        "vector-fields",
    ),
    "two deletion vectors of one file": (VECTORS, lambda p: p.edit_manifest(twice, content=1), "vectors-twice"),
    "a deletion vector of a file that is gone": (
        VECTORS,
        lambda p: p.edit_files(lambda d: d.update(referenced_data_file="file:///gone"), content=1),
        "dangling-deletes",
    ),
    "a deletion vector with another cardinality": (
        VECTORS,
        lambda p: p.edit_files(lambda d: d.update(record_count=2), content=1),
        "vectors-damaged",
    ),
    "a position delete file that is damaged": ({}, garble_deletes, "deletes-damaged"),
    "a position delete file with another number of rows": (
        {},
        lambda p: p.edit_files(lambda d: d.update(record_count=2), content=1),
        "deletes-damaged",
    ),
    "a negative position": ({}, lambda p: p.edit_delete_file(at_position(-1)), "deletes-damaged"),
    "a position behind the end of its file": ({}, lambda p: p.edit_delete_file(at_position(5)), "delete-positions"),
    "an equality delete file that is damaged": (
        {},
        lambda p: [delete_by_equality(p), garble_deletes(p)],
        "deletes-damaged",
    ),
    "an equality delete file without its column": (
        {},
        lambda p: [
            delete_by_equality(p),
            p.edit_delete_file(lambda rows: rows.select([]).append_column("x", rows["id"])),
        ],
        "deletes-damaged",
    ),
    "row ids that were given twice": (
        VECTORS,
        lambda p: p.edit_manifest(lambda records: [r["data_file"].update(first_row_id=0) for r in records]),
        "row-ids-twice",
    ),
    "more nulls than values": (
        {},
        lambda p: p.edit_files(lambda d: of_column(3, 1000)(d["null_value_counts"])),
        "counts-impossible",
    ),
    "a lower bound above the upper one": (
        {},
        lambda p: p.edit_files(lambda d: of_column(3, bound(1e9))(d["lower_bounds"])),
        "bounds-crossed",
    ),
    "a data file that is gone": ({}, lambda p: p.data_file().unlink(), "files-missing"),
    "a data file of another size": (
        {},
        lambda p: p.edit_files(lambda d: d.update(file_size_in_bytes=d["file_size_in_bytes"] + 1)),
        "file-sizes",
    ),
    "a data file that is damaged": (
        {},
        lambda p: p.data_file().write_bytes(b"PAR1" + bytes(p.data_file().stat().st_size - 4)),
        "files-damaged",
    ),
    "a wrong record count": (
        {},
        lambda p: p.edit_files(lambda d: d.update(record_count=d["record_count"] + 1)),
        "record-counts",
    ),
    "an upper bound below a value": (
        {},
        lambda p: p.edit_files(lambda d: of_column(3, bound(0.5))(d["upper_bounds"])),
        "bounds",
    ),
    "a wrong count of nulls": (
        {},
        lambda p: p.edit_files(lambda d: of_column(3, 1)(d["null_value_counts"])),
        "null-counts",
    ),
    "rows of another partition": (
        {},
        lambda p: p.edit_files(lambda d: d["partition"].update(kind="aa" if d["partition"]["kind"] == "a" else "a")),
        "partition-values",
    ),
    "rows that are not sorted as the file claims": (
        {},
        lambda p: p.edit_metadata(lambda d: set_in(d, "sort-orders", -1, "fields", 0, "direction", "desc")),
        "sorted-rows",
    ),
}
