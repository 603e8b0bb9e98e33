"""Iceberg's Java runtime for Spark merges into tables that were made and evolved here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
import pytest
from icefield.catalog import Table
from icefield.types import parse_type
from plain_rows import comparable, plain_rows
from servers.spark_runtime import SparkError
from shared_with_spark import SCHEMA, Shared, properties_of

WIDE = pa.schema(
    [
        *SCHEMA,
        ("number", pa.int32()),
        ("small", pa.float32()),
        ("home", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("gone", pa.string()),
    ]
)


def added(table: Table) -> None:
    with table.update_schema() as update:
        update.add_column("late", parse_type("string")).add_column(("home", "z"), parse_type("long"))


def renamed(table: Table) -> None:
    with table.update_schema() as update:
        update.rename_column("small", "little").rename_column("home.x", "xx").rename_column("gone", "kept")


def promoted(table: Table) -> None:
    with table.update_schema() as update:
        update.update_column("number", parse_type("long")).update_column("small", parse_type("double"))
        update.update_column("home.x", parse_type("long"))


def dropped(table: Table) -> None:
    with table.update_schema() as update:
        update.delete_column("gone").delete_column("home.y")


def dropped_and_added_again(table: Table) -> None:
    dropped(table)
    with table.refresh().update_schema() as update:
        update.add_column("gone", parse_type("int")).add_column(("home", "y"), parse_type("double"))


def moved_and_swapped(table: Table) -> None:
    with table.update_schema() as update:
        update.move_first("gone").rename_column("number", "between")
    with table.refresh().update_schema() as update:
        update.rename_column("small", "number")


def partitioned_anew(table: Table) -> None:
    with table.update_spec() as update:
        update.add_identity("part")
    table.append(wide(range(40, 43)))
    with table.refresh().update_spec() as update:
        update.remove_field("part").add_field("id", "bucket[4]").add_field("number", "truncate[5]")
    table.append(wide(range(43, 46)))
    with table.refresh().update_spec() as update:
        update.remove_field("number_trunc_5")
    with table.refresh().update_schema() as update:
        update.update_column("number", parse_type("long"))


def given_defaults(table: Table) -> None:
    with table.update_schema() as update:
        update.add_column("late", parse_type("int"), default_value=7)
        update.add_column("word", parse_type("string"), default_value="it's", required=True)
    with table.refresh().update_schema() as update:
        update.set_default_value("late", 8)


def identified_and_sorted(table: Table) -> None:
    with table.update_schema() as update:
        update.set_identifier_fields("id")
    with table.refresh().update_sort_order() as update:
        update.asc("id", "bucket[4]").desc("part")


def partitioned_by_what_was_dropped(table: Table) -> None:
    with table.update_spec() as update:
        update.add_identity("gone")
    table.append(wide(range(40, 43)))
    with table.refresh().update_spec() as update:
        update.remove_field("gone")
    with table.refresh().update_schema() as update:
        update.delete_column("gone")


EVOLUTIONS = [
    added,
    renamed,
    promoted,
    dropped,
    dropped_and_added_again,
    moved_and_swapped,
    partitioned_anew,
    given_defaults,
    identified_and_sorted,
]


def wide(ids: Iterable[int]) -> pa.Table:
    made = [
        {
            "id": id_,
            "part": "ab"[id_ % 2],
            "value": 0.5,
            "number": id_,
            "small": id_ / 2,
            "home": {"x": id_, "y": f"y{id_}"} if id_ % 3 else None,
            "gone": "g",
        }
        for id_ in ids
    ]
    return pa.Table.from_pylist(made, schema=WIDE)


@pytest.mark.parametrize("evolve", EVOLUTIONS, ids=lambda evolve: evolve.__name__)
@pytest.mark.parametrize(("version", "mode"), [(2, "copy-on-write"), (3, "merge-on-read")])
@pytest.mark.spec("VER-13")
def test_spark_merges_into_a_table_that_was_evolved_here(
    shared: Shared, version: int, mode: str, evolve: Callable[[Table], None]
) -> None:
    if version < 3 and evolve is given_defaults:
        pytest.skip("there are no defaults in version 2")
    table = shared.catalog.create_table("db.t", WIDE, properties=properties_of(version, "parquet", mode))
    table.append(wide(range(10)))
    table.delete("id = 0")
    evolve(table.refresh())
    before = {row["id"]: row for row in shared.table.scan().to_arrow().to_pylist()}
    new = "(id, part, word)" if evolve is given_defaults else "(id, part)"
    for statement in (
        "UPDATE {t} SET part = 'u' WHERE id = 3",
        "DELETE FROM {t} WHERE id = 4",
        "MERGE INTO {t} t USING (SELECT * FROM VALUES (1L, 'm', 'w'), (2L, 'x', 'w'), (100L, 'n', 'w') "
        "AS v(id, part, word)) s ON t.id = s.id WHEN MATCHED AND s.part = 'x' THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET part = s.part WHEN NOT MATCHED THEN INSERT {new} VALUES "
        f"{new.replace('(', '(s.').replace(', ', ', s.')} WHEN NOT MATCHED BY SOURCE AND t.id = 7 THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE AND t.id = 8 THEN UPDATE SET part = 'alone'",
        "MERGE INTO {t} t USING (SELECT * FROM {t} WHERE id = 1) s ON t.id = s.id + 4 "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    ):
        shared.sql(statement)
    table = shared.table
    there = plain_rows(table.scan().to_arrow(), table.schema())
    said = shared.spark.sql(f"SELECT * FROM {shared.name}")
    assert comparable(there, table.schema()) == comparable(said, table.schema())
    found = {id_: {**row, "part": None} for id_, row in before.items() if id_ not in (2, 4, 5, 7)}
    # The second merge gave the row 5 all values of the row 1, also its id.
    rows = [row for row in table.scan().to_arrow().to_pylist() if row["id"] in found]
    assert sorted(({**row, "part": None} for row in rows), key=lambda row: row["id"]) == sorted(
        [*found.values(), found[1]], key=lambda row: row["id"]
    )
    parts = sorted((row["id"], row["part"]) for row in there if row["id"] < 10 or row["id"] == 100)
    assert parts == [(1, "m"), (1, "m"), (3, "u"), (6, "a"), (8, "alone"), (9, "b"), (100, "n")]
    (inserted,) = (row for row in there if row["id"] == 100)
    if evolve is given_defaults:
        assert (inserted["late"], inserted["word"]) == (8, "w")


@pytest.mark.parametrize("made", ["here", "there"])
def test_spark_merges_by_rewriting_where_an_earlier_spec_lost_its_column(shared: Shared, made: str) -> None:
    """Iceberg 1.12 fails to merge on read there, in tables of its own making as well; copy-on-write works.

    Its type of ``_partition`` leaves out fields of dropped columns (``Partitioning.partitionType``). Its writer of
    deletes projects this type to the whole partition type of each spec, which still has the field.
    """
    properties = properties_of(2, "parquet", "merge-on-read")
    if made == "here":
        table = shared.catalog.create_table("db.t", WIDE, properties=properties)
        table.append(wide(range(10)))
        partitioned_by_what_was_dropped(table.refresh())
    else:
        given = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        shared.sql(
            "CREATE TABLE {t} (id BIGINT, part STRING, gone STRING) USING iceberg PARTITIONED BY (gone) "
            f"TBLPROPERTIES ({given})"
        )
        shared.sql("INSERT INTO {t} VALUES (3, 'a', 'g'), (4, 'b', 'g'), (6, 'a', 'h')")
        shared.sql("ALTER TABLE {t} DROP PARTITION FIELD gone")
        shared.sql("ALTER TABLE {t} DROP COLUMN gone")
    merge = (
        "MERGE INTO {t} t USING (SELECT 3L AS id UNION ALL SELECT 4L) s ON t.id = s.id "
        "WHEN MATCHED AND t.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET part = 'm'"
    )
    with pytest.raises(SparkError, match="Cannot find field 1000"):
        shared.sql(merge)
    shared.table.set_properties(properties_of(2, "parquet", "copy-on-write"))
    before = {row["id"]: row for row in shared.table.scan().to_arrow().to_pylist()}
    shared.sql(merge)
    found = shared.table.scan().to_arrow().to_pylist()
    wanted = [{**row, "part": "m"} if id_ == 4 else row for id_, row in before.items() if id_ != 3]
    assert sorted(found, key=lambda row: row["id"]) == sorted(wanted, key=lambda row: row["id"])
    assert len(found) > 1
