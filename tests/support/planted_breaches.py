"""One breach of each rule of the doctor for tables, planted into sound tables."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
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
    """Set another position in each row of a position delete file."""
    return lambda rows: rows.set_column(
        1, rows.schema.field(1), pa.array([position] * rows.num_rows, rows.schema.field(1).type)
    )


def delete_by_equality(planted: Planted) -> None:
    """Make a delete by a key the only live delete file."""
    planted.table.maintenance.rewrite_data_files(rewrite_all=True, remove_dangling_deletes=True)
    planted.table.maintenance.rewrite_manifests()
    planted.table.delete_by_equality(pa.table({"id": pa.array([1], pa.int64()), "kind": ["a"]}), ["id"])


def name_another_file(planted: Planted) -> None:
    """Make the delete file refer to another live data file of its partition."""
    files = planted.table.inspect.data_files().to_pylist()

    def edit(record: dict[str, Any]) -> None:
        named = next(each for each in files if each["file_path"] == record["referenced_data_file"])
        others = (each for each in files if each["partition"] == named["partition"] and each is not named)
        record["referenced_data_file"] = next(others)["file_path"]

    planted.edit_files(edit, content=1)


def move_deletes(planted: Planted) -> None:
    """Move the delete file to the other partition, in the manifest list as well."""

    def of_manifest(records: list[dict[str, Any]]) -> None:
        for record in records:
            if record["content"] == 1:
                record["partitions"][0].update(lower_bound=b"b", upper_bound=b"b")

    planted.edit_files(lambda d: d["partition"].update(kind="b"), content=1)
    planted.edit_list(of_manifest)


def take_an_id(planted: Planted) -> None:
    """Set the id of a row in the first data file to null."""
    path = planted.data_file()
    rows = pq.read_table(path)
    ids = pa.array([None, *rows["id"].to_pylist()[1:]], pa.int64())
    rows = rows.set_column(0, pa.field("id", pa.int64(), metadata=rows.schema.field("id").metadata), ids)
    pq.write_table(rows, path)

    def edit(record: dict[str, Any]) -> None:
        if record["file_path"] == f"file://{path}":
            record["file_size_in_bytes"] = path.stat().st_size
            of_column(1, 1)(record["null_value_counts"])

    planted.edit_files(edit)


def garble_deletes(planted: Planted) -> None:
    """Overwrite a delete file with the same number of zero bytes."""
    planted.delete_file().write_bytes(bytes(planted.delete_file().stat().st_size))


VECTORS = {"format_version": 3}
PATHS, POSITIONS = 2147483546, 2147483545
"""The columns of a position delete file."""
PLANTED: dict[str, tuple[dict[str, Any], Callable[[Planted], Any], str]] = {
    # name: how the table is made, the change to it, the rule that is broken
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
    "a partition field of a column that is in no schema": (
        {},
        lambda p: p.edit_metadata(lambda d: set_in(d, "partition-specs", -1, "fields", 0, "source-id", 99)),
        "partition-sources",
    ),
    "a sort order by a column that is in no schema": (
        {},
        lambda p: p.edit_metadata(lambda d: set_in(d, "sort-orders", -1, "fields", 0, "source-id", 99)),
        "sort-order-sources",
    ),
    "a snapshot without a summary": (
        {},
        lambda p: p.edit_metadata(lambda d: d["snapshots"][0].pop("summary")),
        "snapshot-operations",
    ),
    "a summary without an operation": (
        {},
        lambda p: p.edit_metadata(lambda d: d["snapshots"][0]["summary"].pop("operation")),
        "snapshot-operations",
    ),
    "an operation that is none": (
        {},
        lambda p: p.edit_metadata(lambda d: set_in(d, "snapshots", -1, "summary", "operation", "merge")),
        "snapshot-operations",
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
    "a file with row ids beyond the next one": (
        VECTORS,
        lambda p: p.edit_manifest(lambda records: [r["data_file"].update(first_row_id=1_000_000) for r in records[:1]]),
        "next-row-id",
    ),
    "a manifest that gives row ids beyond the next one": (
        VECTORS,
        lambda p: p.edit_list(first(lambda r: r.update(first_row_id=1_000_000))),
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
    "a manifest list that is cut in half": (
        {},
        lambda p: p.manifest_list.write_bytes(p.manifest_list.read_bytes()[: p.manifest_list.stat().st_size // 2]),
        "manifest-lists",
    ),
    "a manifest list of zeros": (
        {},
        lambda p: p.manifest_list.write_bytes(bytes(p.manifest_list.stat().st_size)),
        "manifest-lists",
    ),
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
    "a summary of partitions without a least value": (
        {},
        lambda p: p.edit_list(first(lambda r: r["partitions"][0].update(lower_bound=None))),
        "manifest-partitions",
    ),
    "a summary of partitions whose least value is none": (
        {},
        lambda p: p.edit_list(first(lambda r: r["partitions"][0].update(lower_bound=b"\xff"))),
        "manifest-partitions",
    ),
    "a summary of partitions without a greatest value": (
        {},
        lambda p: p.edit_list(first(lambda r: r["partitions"][0].update(upper_bound=None))),
        "manifest-partitions",
    ),
    **{
        f"a wrong {name} in {made.get('format_version', 2)}": (
            made,
            lambda p, name=name: p.edit_metadata(lambda d: set_in(d, "snapshots", -1, "summary", name, "12345678")),
            "snapshot-totals",
        )
        for name in ("total-files-size", "total-position-deletes", "total-equality-deletes")
        for made in ({}, VECTORS)
    },
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
    "an equality delete file that is older than the files of its partition": (
        {},
        lambda p: [
            delete_by_equality(p),
            p.table.maintenance.rewrite_data_files(where="kind = 'a'", rewrite_all=True),
        ],
        "dangling-deletes",
    ),
    "a position delete file of another partition than its data file": ({}, move_deletes, "delete-partitions"),
    "a deletion vector of another partition than its data file": (VECTORS, move_deletes, "delete-partitions"),
    "a deletion vector that its file has for another data file": (VECTORS, name_another_file, "delete-references"),
    "positions of another data file than the entry names": ({}, name_another_file, "delete-references"),
    "a position delete file whose bounds leave its paths out": (
        {},
        lambda p: p.edit_files(lambda d: of_column(PATHS, b"file:///a")(d["upper_bounds"]), content=1),
        "delete-metrics",
    ),
    "a position delete file whose bounds leave its positions out": (
        {},
        lambda p: p.edit_files(lambda d: of_column(POSITIONS, struct.pack("<q", 4))(d["lower_bounds"]), content=1),
        "delete-metrics",
    ),
    "an equality delete file whose bounds leave its keys out": (
        {},
        lambda p: [
            delete_by_equality(p),
            p.edit_files(lambda d: d.update(lower_bounds=[{"key": 1, "value": struct.pack("<q", 2)}]), content=1),
            p.edit_files(lambda d: d.update(upper_bounds=[{"key": 1, "value": struct.pack("<q", 2)}]), content=1),
        ],
        "delete-metrics",
    ),
    "an equality delete file with another number of nulls": (
        {},
        lambda p: [
            delete_by_equality(p),
            p.edit_files(lambda d: d.update(null_value_counts=[{"key": 1, "value": 1}]), content=1),
        ],
        "delete-metrics",
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
        "delete-metrics",
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
    "split offsets that descend": (
        {},
        lambda p: p.edit_files(lambda d: d.update(split_offsets=[400, 4])),
        "split-offsets",
    ),
    "a split offset behind the end of its file": (
        {},
        lambda p: p.edit_files(lambda d: d.update(split_offsets=[4, d["file_size_in_bytes"]])),
        "split-offsets",
    ),
    "a negative size of a column": (
        {},
        lambda p: p.edit_files(lambda d: of_column(3, -1)(d["column_sizes"])),
        "column-sizes",
    ),
    "a column that is larger than its file": (
        {},
        lambda p: p.edit_files(lambda d: of_column(3, d["file_size_in_bytes"] + 1)(d["column_sizes"])),
        "column-sizes",
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
    "a wrong count of NaNs": (
        {},
        lambda p: p.edit_files(lambda d: of_column(3, 1)(d["nan_value_counts"])),
        "nan-counts",
    ),
    "a null in a required column": ({}, take_an_id, "required-columns"),
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
