"""Row-level changes between Icefield and Iceberg's Java runtime for Spark, on tables that both commit to.

A table is in a folder: Spark finds it through a Hadoop catalog, Icefield through the directory catalog. The test keeps
the expected rows in a dictionary by id, and both must read exactly these rows. In version 3 both must also give the
same row ids and last changes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from icefield.catalog import Table
from icefield.manifest import DataFileContent
from shared_with_spark import SCHEMA, Rows, Shared, arrow, delete_formats, fresh, properties_of, source, values

KINDS = pytest.mark.parametrize(
    ("version", "file_format", "mode"),
    [
        (2, "parquet", "copy-on-write"),
        (2, "parquet", "merge-on-read"),
        (2, "orc", "merge-on-read"),
        (2, "avro", "merge-on-read"),
        (3, "parquet", "copy-on-write"),
        (3, "parquet", "merge-on-read"),
        (3, "orc", "merge-on-read"),
        (3, "avro", "merge-on-read"),
    ],
)


# -- written here, read there -----------------------------------------------------------------------------------------


@KINDS
@pytest.mark.spec("VER-13", "DEL-01", "DEL-02")
def test_spark_reads_what_is_changed_here(shared: Shared, version: int, file_format: str, mode: str) -> None:
    granularity = "partition" if file_format == "orc" else "file"
    properties = {**properties_of(version, file_format, mode), "write.delete.granularity": granularity}
    table = shared.catalog.create_table("db.t", SCHEMA, partition_spec=["part"], properties=properties)
    for start in (0, 20):
        table.append(arrow(fresh(range(start, start + 20), 0.5)))
        shared.rows |= fresh(range(start, start + 20), 0.5)
    shared.expect()

    table.delete("id in (1, 2, 3, 25)")
    for id_ in (1, 2, 3, 25):
        del shared.rows[id_]
    table.update("id < 6", {"value": 7.5})
    shared.rows |= {id_: (shared.rows[id_][0], 7.5) for id_ in (0, 4, 5)}
    shared.expect()

    changes = {6: ("b", 8.0), 7: ("b", 8.5), 100: ("c", 9.0)}  # the row 6 moves to another partition
    table.upsert(arrow(changes), ["id"])
    shared.rows |= changes
    merge = table.merge(arrow({8: ("x", 1.0), 9: ("b", 2.0), 101: ("a", 3.0)}), "id")
    merge.when_matched_delete("source.part = 'x'").when_matched_update_all().when_not_matched_insert_all()
    merge.when_not_matched_by_source_update({"value": 4.0}, "id = 30").when_not_matched_by_source_delete("id = 31")
    merge.commit()
    del shared.rows[8], shared.rows[31]
    shared.rows |= {9: ("b", 2.0), 101: ("a", 3.0), 30: ("a", 4.0)}
    shared.expect()
    marked = {(("positions", file_format if version == 2 else "puffin"))} if mode == "merge-on-read" else set()
    assert delete_formats(table.refresh()) == marked

    table.delete_by_equality(pa.table({"id": [10, 11, 9, 1000], "part": ["a", "b", "b", "a"]}), ["id", "part"])
    for id_ in (9, 10, 11):
        del shared.rows[id_]
    table.append(arrow({10: ("a", 6.0)}))
    shared.rows[10] = ("a", 6.0)
    shared.known.pop(10, None)
    shared.expect()
    assert ("equality", file_format) in delete_formats(table.refresh())


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.spec("VER-13", "DEL-33", "DEL-34")
def test_spark_reads_and_changes_deletes_of_all_kinds_in_one_table(shared: Shared, file_format: str) -> None:
    """Position deletes and equality deletes of version 2, and then vectors and equality deletes of version 3."""
    properties = properties_of(2, file_format, "merge-on-read")
    table = shared.catalog.create_table("db.t", SCHEMA, properties=properties)
    for start in (0, 10, 20):
        table.append(arrow(fresh(range(start, start + 10), 0.5)))
        shared.rows |= fresh(range(start, start + 10), 0.5)

    def gone(*ids: int) -> None:
        for id_ in ids:
            del shared.rows[id_]

    table.delete("id in (1, 11, 21)")
    table.delete_by_equality(pa.table({"id": [2, 12]}), ["id"])
    gone(1, 11, 21, 2, 12)
    shared.expect()
    table.transaction().upgrade_table_version(3).commit_transaction()
    shared.expect(upgraded=True)
    table.delete("id in (3, 13)")
    table.delete_by_equality(pa.table({"part": ["a"], "id": [4]}), ["id", "part"])
    gone(3, 13, 4)
    shared.expect()
    kinds = {("positions", file_format), ("positions", "puffin"), ("equality", file_format)}
    assert delete_formats(table.refresh()) == kinds

    shared.sql("DELETE FROM {t} WHERE id IN (5, 15, 25)")
    shared.sql("UPDATE {t} SET value = 3 WHERE id IN (6, 16, 26)")
    gone(5, 15, 25)
    shared.rows |= dict.fromkeys((6, 16, 26), ("a", 3.0))
    shared.expect()
    for task in shared.table.scan().plan_files():
        positions = [delete for delete in task.delete_files if delete.content is DataFileContent.POSITION_DELETES]
        assert {delete.file_format.lower() for delete in positions} <= {"puffin"}
        assert len(positions) < 2
    shared.table.delete("id in (7, 16, 27)")
    gone(7, 16, 27)
    shared.expect()


# -- written there, read here -----------------------------------------------------------------------------------------


@KINDS
@pytest.mark.spec("VER-13", "DEL-01", "ROW-05", "ROW-06")
def test_what_spark_changes_is_read(shared: Shared, version: int, file_format: str, mode: str) -> None:
    properties = ", ".join(f"'{k}' = '{v}'" for k, v in properties_of(version, file_format, mode).items())
    shared.sql(
        "CREATE TABLE {t} (id BIGINT NOT NULL, part STRING, value DOUBLE) USING iceberg PARTITIONED BY (part) "
        f"TBLPROPERTIES ({properties})"
    )
    for start in (0, 20):
        shared.sql(f"INSERT INTO {{t}} VALUES {values(fresh(range(start, start + 20), 0.5))}")
        shared.rows |= fresh(range(start, start + 20), 0.5)
    shared.expect()

    shared.sql("DELETE FROM {t} WHERE id IN (1, 2, 3, 25)")
    for id_ in (1, 2, 3, 25):
        del shared.rows[id_]
    shared.sql("UPDATE {t} SET value = 7.5, part = concat(part, part) WHERE id < 6")
    shared.rows |= {0: ("aa", 7.5), 4: ("aa", 7.5), 5: ("bb", 7.5)}
    shared.expect()

    given = source({6: ("b", 8.0), 7: ("x", 8.5), 8: ("y", 1.0), 100: ("c", 9.0), 101: ("x", 9.5)})
    shared.sql(
        f"MERGE INTO {{t}} t USING {given} s ON t.id = s.id "
        "WHEN MATCHED AND s.part = 'x' THEN DELETE "
        "WHEN MATCHED AND s.part = 'y' THEN UPDATE SET value = t.value + s.value "
        "WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED AND s.part = 'x' THEN INSERT (id, value) VALUES (s.id, s.value) "
        "WHEN NOT MATCHED THEN INSERT * "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 30 THEN UPDATE SET value = 4 "
        "WHEN NOT MATCHED BY SOURCE AND t.id > 37 AND t.id < 50 THEN DELETE"
    )
    for id_ in (7, 38, 39):
        del shared.rows[id_]
    shared.rows |= {6: ("b", 8.0), 8: ("a", 1.5), 100: ("c", 9.0), 101: (None, 9.5), 30: ("a", 4.0)}
    shared.expect()
    marked = {(("positions", file_format if version == 2 else "puffin"))} if mode == "merge-on-read" else set()
    assert delete_formats(shared.table) == marked
    if version == 3:
        last = shared.table.current_snapshot()
        assert last is not None
        changed = {id_ for id_, (_, sequence) in shared.known.items() if sequence == last.sequence_number}
        assert changed == {6, 8, 30, 100, 101}

    shared.table.delete("id in (10, 100)")
    shared.table.update("id in (11, 101)", {"value": 5.0})
    del shared.rows[10], shared.rows[100]
    shared.rows |= {11: ("b", 5.0), 101: (None, 5.0)}
    shared.expect()


# -- in turn ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("VER-13", "DEL-32", "ROW-13")
def test_spark_and_icefield_change_one_table_of_version_3_in_turn(shared: Shared) -> None:
    """Make 20 commits in both modes. Row ids are unique and never change, and both give each row the same id."""
    draw = random.Random(11)
    table = shared.catalog.create_table("db.t", SCHEMA, properties=properties_of(3, "parquet", "merge-on-read"))
    table.append(arrow(fresh(range(60), 0.0)))
    shared.rows = fresh(range(60), 0.0)
    shared.expect()
    changes = ["delete", "update", "merge", "insert", "delete", "update", "merge", "update", "merge", "delete"]
    draw.shuffle(changes)
    for step, (change, spark) in enumerate(product(changes, (False, True)), 1):
        mode = "copy-on-write" if step % 5 == 0 else "merge-on-read"
        if mode != shared.table.properties["write.merge.mode"]:
            shared.table.set_properties(properties_of(3, "parquet", mode))
        some = sorted(draw.sample(sorted(shared.rows), 5))
        listed = f"id in ({', '.join(map(str, some))})"
        new = fresh(range(1000 * step, 1000 * step + 3), float(step))
        before = shared.known
        concerned = set(new) if change == "insert" else set(some) | (set(new) if change == "merge" else set())
        if change == "delete":
            in_turn(shared, spark, f"DELETE FROM {{t}} WHERE {listed}", lambda t, w=listed: t.delete(w))
            for id_ in some:
                del shared.rows[id_]
        elif change == "update":
            text = f"UPDATE {{t}} SET value = {step} WHERE {listed}"
            in_turn(shared, spark, text, lambda t, w=listed, v=step: t.update(w, {"value": float(v)}))
            shared.rows |= {id_: (shared.rows[id_][0], float(step)) for id_ in some}
        elif change == "insert":
            in_turn(shared, spark, f"INSERT INTO {{t}} VALUES {values(new)}", lambda t, r=new: t.append(arrow(r)))
            shared.rows |= new
        else:
            given = {**{id_: ("m", float(step)) for id_ in some[:-1]}, some[-1]: ("x", 0.0), **new}
            text = (
                f"MERGE INTO {{t}} t USING {source(given)} s ON t.id = s.id WHEN MATCHED AND s.part = 'x' THEN DELETE "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
            in_turn(shared, spark, text, lambda t, g=given: merged(t, g))
            shared.rows |= {id_: row for id_, row in given.items() if row[0] != "x"}
            del shared.rows[some[-1]]
        shared.expect()
        unconcerned = (before.keys() & shared.known.keys()) - concerned
        assert {id_: shared.known[id_] for id_ in unconcerned} == {id_: before[id_] for id_ in unconcerned}
        for id_ in concerned & shared.known.keys():
            assert shared.known[id_][1] == shared.table.last_sequence_number
    assert delete_formats(shared.table) == {("positions", "puffin")}
    assert len(shared.table.snapshots()) == 21


def in_turn(shared: Shared, spark: bool, statement: str, ours: Callable[[Table], Any]) -> None:
    if spark:
        shared.sql(statement)
    else:
        ours(shared.table)


def merged(table: Table, given: Rows) -> None:
    merge = table.merge(arrow(given), "id").when_matched_delete("source.part = 'x'")
    merge.when_matched_update_all().when_not_matched_insert_all().commit()
