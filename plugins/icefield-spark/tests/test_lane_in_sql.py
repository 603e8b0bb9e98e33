"""Statements of ``ice.sql`` read by Spark's own Parquet reader: rows and schema are those of the Arrow road."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield_spark.catalog import scans
from icefield_spark.planned import planned
from icefield_spark.roads.choosing import Road

pytestmark = pytest.mark.spark

INNER = pa.struct([pa.field("city", pa.string(), nullable=False), ("zip", pa.int32())])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("word", pa.string(), nullable=False),
        ("price", pa.float32()),
        pa.field("home", INNER, nullable=False),
        ("tags", pa.list_(pa.field("element", pa.string(), nullable=False))),
        ("scores", pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False))),
        ("part", pa.string()),
    ]
)
QUERIES = [
    "SELECT * FROM db.t ORDER BY id",
    "SELECT id, new, kind FROM db.t WHERE id > 3 ORDER BY id",
    "SELECT id FROM db.t WHERE word = 'w2' OR home.city = 'c7' ORDER BY id",
    "SELECT id, other.new FROM db.t JOIN db.t AS other USING (id) WHERE other.part = 'a' ORDER BY id",
    "SELECT id, kind FROM db.t WHERE kind = 'given' AND price >= 0 ORDER BY id",
    "SELECT part, count(*) AS n, sum(id) AS s FROM db.t GROUP BY part ORDER BY part",
    "SELECT id FROM db.t WHERE new IS NULL AND id IN (SELECT id FROM db.t WHERE price < 5) ORDER BY id",
    "SELECT home.zip, tags[0] AS tag, scores['k'] AS score FROM db.t WHERE id IS NOT NULL ORDER BY id",
]


def rows(first: int, part: str) -> pa.Table:
    made = [
        {
            "id": i,
            "word": f"w{i}",
            "price": None if i % 4 == 3 else i / 2,
            "home": {"city": f"c{i}", "zip": None if i % 2 else i},
            "tags": None if i % 3 == 0 else [f"t{i}"],
            "scores": None if i % 5 == 0 else [("k", i)],
            "part": part,
        }
        for i in range(first, first + 4)
    ]
    return pa.Table.from_pylist(made, schema=SCHEMA)


@pytest.fixture
def table(catalog: icefield.Catalog) -> icefield.Table:
    """A table with required columns and fields, whose older files lack columns, have other names and narrower types."""
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    made = catalog.create_table("db.t", SCHEMA, partition_spec=["part"], properties=properties)
    made.append(rows(0, "a"))
    with made.update_schema() as update:
        update.add_column("new", "int").add_column("kind", "string", default_value="given")
        update.update_column("id", "long").update_column("price", "double")
        update.rename_column("word", "word__").rename_column("part", "word_").rename_column("word__", "word")
        update.rename_column("word_", "part")
        update.update_column("price", doc="in euro").update_column("home.zip", doc="since 1962")
    later = rows(4, "b").append_column("new", pa.array([1, 2, None, 4], pa.int32()))
    made.append(later.append_column("kind", pa.array(["x", None, "given", "z"])))
    return made


@pytest.fixture
def roads(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, int]]:
    """The number of files on each road, for each table that a statement reads."""
    seen: list[dict[str, int]] = []

    def noted(spark: Any, scan: Any, columns: Any, *, road: Road | None = None, **given: Any) -> Any:
        made = planned(spark, scan, columns, road=road, **given)
        taken = [str(each.road) for each in made.roads.chosen]
        seen.append({name: taken.count(name) for name in set(taken)})
        return made

    monkeypatch.setattr(scans, "planned", noted)
    return seen


@pytest.fixture
def on_arrow(ice: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """A statement read in Arrow alone."""

    def run(statement: str) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(
                scans,
                "planned",
                lambda spark, scan, columns, *, road=None, **given: planned(
                    spark, scan, columns, road=Road.ARROW, **given
                ),
            )
            found = ice.sql(statement)
            found.count()  # plans it
            return found

    return run


def check(ice: Any, on_arrow: Any, queries: list[str]) -> None:
    for query in queries:
        found, wanted = ice.sql(query), on_arrow(query)
        assert found.schema == wanted.schema, query
        assert found.collect() == wanted.collect(), query


@pytest.mark.slow
def test_statements_read_evolved_tables_alike_on_both_roads(
    ice: Any, table: icefield.Table, on_arrow: Any, roads: list[dict[str, int]]
) -> None:
    check(ice, on_arrow, QUERIES)
    assert roads
    assert all(each.keys() == {"spark"} for each in roads), roads
    assert not ice.sql("SELECT id FROM db.t").schema["id"].nullable


@pytest.mark.slow
def test_statements_read_deletes_and_other_formats_on_both_roads_at_once(
    ice: Any, table: icefield.Table, on_arrow: Any, roads: list[dict[str, int]]
) -> None:
    table.delete("id = 2")
    table.set_properties({"write.format.default": "orc"})
    ice.sql("INSERT INTO db.t SELECT id + 20, word, price, home, tags, scores, 'c', new, kind FROM db.t WHERE id > 5")
    roads.clear()
    check(ice, on_arrow, QUERIES)
    assert {"spark": 2, "arrow": 1} in roads


@pytest.mark.slow
def test_statements_read_earlier_states_alike_on_both_roads(
    ice: Any, table: icefield.Table, on_arrow: Any, roads: list[dict[str, int]]
) -> None:
    first = table.snapshots()[0].snapshot_id
    table.manage_snapshots().create_tag(first, "before").commit()
    queries = [f"SELECT * FROM db.t VERSION AS OF {at} WHERE id > 1 ORDER BY id" for at in (first, "'before'")]
    check(ice, on_arrow, queries)
    assert {str(row) for row in ice.sql(queries[0]).collect()} == {str(row) for row in ice.sql(queries[1]).collect()}
    assert all(each == {"spark": 1} for each in roads), roads
    assert ice.sql(queries[0]).columns == SCHEMA.names


@pytest.mark.slow
def test_a_table_is_rewritten_from_itself_by_statements_on_the_fast_road(ice: Any, table: icefield.Table) -> None:
    before = ice.sql("SELECT * FROM db.t ORDER BY id").collect()
    ice.sql("INSERT OVERWRITE db.t SELECT * FROM db.t")
    assert ice.sql("SELECT * FROM db.t ORDER BY id").collect() == before
    ice.sql("CREATE TABLE db.copy AS SELECT * FROM db.t WHERE id < 3")
    assert ice.sql("SELECT id FROM db.copy ORDER BY id").collect() == [(0,), (1,), (2,)]


@pytest.mark.slow
def test_a_file_that_may_hold_nulls_in_a_required_column_is_read_in_arrow(catalog: icefield.Catalog, ice: Any) -> None:
    optional = pa.schema([("a", pa.int64()), ("b", pa.list_(pa.int64()))])
    table = catalog.create_table("db.was_optional", optional)
    table.append(pa.table({"a": [1, 2], "b": [[1], [2]]}, schema=optional))
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("a", required=True)
    table.append(pa.table({"a": pa.array([3], pa.int64()), "b": [[3]]}, schema=pa.schema([
        pa.field("a", pa.int64(), nullable=False), ("b", pa.list_(pa.int64()))])))  # fmt: skip
    reasons = sorted(file.reason for file in ice.explain("db.was_optional").files)
    assert reasons == ["", "it may hold nulls in 'a', which is required"]
    frame = ice.table("db.was_optional")
    assert not frame.schema["a"].nullable
    assert sorted(row.a for row in frame.collect()) == [1, 2, 3]
    nulls = catalog.create_table("db.nulls", optional)
    nulls.append(pa.table({"a": [None, 2], "b": [[1], [2]]}, schema=optional))
    with nulls.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("a", required=True)
    assert ice.explain("db.nulls").count_by_road() == {"arrow": 1}


@pytest.mark.slow
def test_filters_of_a_later_query_reach_parquet_through_required_columns(ice: Any, table: icefield.Table) -> None:
    plan = ice.sql("SELECT id, word FROM db.t").where("word = 'w5'")
    assert [row.id for row in plan.collect()] == [5]
    shown = plan._jdf.queryExecution().toString()
    assert "PushedFilters: [" in shown
    assert "EqualTo(word,w5)" in shown


@pytest.mark.slow
def test_many_paths_reach_spark_as_they_are(catalog: icefield.Catalog, ice: Any, spark: Any) -> None:
    columns = pa.schema([pa.field("a", pa.int64(), nullable=False), ("p", pa.string())])
    table = catalog.create_table("db.many", columns, partition_spec=["p"])
    names = [f"p {at} ü%{at}=,{{}}" for at in range(70)]
    table.append(pa.table({"a": range(70), "p": names}, schema=columns))
    assert ice.explain("db.many").count_by_road() == {"spark": 70}
    found = ice.sql("SELECT a, p FROM db.many ORDER BY a").collect()
    assert [(row.a, row.p) for row in found] == list(enumerate(names))
