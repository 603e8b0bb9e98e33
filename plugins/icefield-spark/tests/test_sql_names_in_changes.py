"""Which columns DELETE, UPDATE and MERGE mean by a name, and of which types their values may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import icefield
import pytest
from icefield.errors import IcefieldError
from pyspark.errors import PySparkException

pytestmark = pytest.mark.spark

Changed = Callable[[str], list[tuple[Any, ...]]]
REFUSED = (IcefieldError, PySparkException)


@pytest.fixture
def changed(ice: Any) -> Changed:
    """Runs a statement on a table of the rows (1, 1), (2, 2) and (3, 3), and gives its rows then."""
    ice.sql("CREATE TABLE db.w (id int, v int)")

    def run(statement: str) -> list[tuple[Any, ...]]:
        ice.sql("INSERT OVERWRITE db.w VALUES (1, 1), (2, 2), (3, 3)")
        ice.sql(statement)
        return sorted(tuple(row) for row in ice.sql("SELECT * FROM db.w").collect())

    return run


@pytest.mark.slow
def test_a_subquery_over_the_changed_table_names_its_own_columns(changed: Changed) -> None:
    inner = "SELECT 1 FROM db.w WHERE db.w.id = x.id + 1"
    assert changed(f"DELETE FROM db.w AS x WHERE NOT EXISTS ({inner})") == [(1, 1), (2, 2)]
    assert changed("DELETE FROM db.w AS x WHERE x.id + 1 IN (SELECT db.w.id FROM db.w)") == [(3, 3)]
    assert changed(f"UPDATE db.w x SET v = -1 WHERE EXISTS ({inner})") == [(1, -1), (2, -1), (3, 3)]
    assert changed("UPDATE db.w AS x SET v = (SELECT max(db.w.v) FROM db.w) WHERE id = 1")[0] == (1, 3)
    outer = "SELECT 1 FROM db.w y WHERE y.id = db.w.id + 1"
    assert changed(f"DELETE FROM db.w WHERE EXISTS ({outer})") == [(3, 3)]


@pytest.mark.slow
def test_a_table_in_a_subquery_keeps_its_whole_name(ice: Any, changed: Changed) -> None:
    ice.sql("CREATE NAMESPACE w")
    ice.sql("CREATE TABLE w.snapshots (x int)")
    assert len(changed("DELETE FROM db.w WHERE 0 = (SELECT count(*) FROM db.w.snapshots)")) == 3
    assert changed("UPDATE db.w SET v = (SELECT count(*) FROM db.w.refs)") == [(1, 1), (2, 1), (3, 1)]
    ice.sql("ALTER TABLE db.w CREATE TAG one")
    assert changed("DELETE FROM db.w WHERE id < 3 AND id IN (SELECT id FROM db.w.tag_one)") == [(3, 3)]


@pytest.mark.slow
def test_a_changed_table_is_known_by_every_end_of_its_name_or_by_its_alias(ice: Any, changed: Changed) -> None:
    assert changed("DELETE FROM test.db.w WHERE db.w.id = 1 AND w.v = 1") == [(2, 2), (3, 3)]
    assert changed("DELETE FROM db.w WHERE test.db.w.id = 1") == [(2, 2), (3, 3)]
    assert changed("UPDATE db.w SET test.db.w.v = `db`.`w`.v + 1 WHERE db.w.id = 1") == [(1, 2), (2, 2), (3, 3)]
    for refused in (
        "DELETE FROM db.w x WHERE db.w.id = 1",
        "UPDATE db.w x SET db.w.v = 1",
        "UPDATE db.w x SET v = db.w.id",
        "DELETE FROM db.w WHERE other.db.w.id = 1",
    ):
        with pytest.raises(REFUSED):
            ice.sql(refused)
    ice.sql("CREATE TABLE db.lk (id int, w int)")
    ice.sql("INSERT INTO db.lk VALUES (1, 100), (20, 200)")
    assert changed(
        "MERGE INTO db.w USING db.lk ON db.w.id = db.lk.id WHEN MATCHED THEN UPDATE SET db.w.v = db.lk.w "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (db.lk.id, test.db.lk.w)"
    ) == [(1, 100), (2, 2), (3, 3), (20, 200)]
    ice.sql("CREATE NAMESPACE more")
    ice.sql("CREATE TABLE more.w (id int, v int)")
    ice.sql("INSERT INTO more.w VALUES (1, 50)")
    merge = "MERGE INTO db.w USING more.w ON db.w.id = more.w.id WHEN MATCHED THEN UPDATE SET v = {}"
    assert changed(merge.format("more.w.v + db.w.v"))[0] == (1, 51)
    with pytest.raises(REFUSED, match="AMBIGUOUS"):
        ice.sql(merge.format("w.v"))


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM db.w WHERE id = 1 LIMIT 1",
        "DELETE FROM db.w WHERE id = 1 GROUP BY id",
        "DELETE FROM db.w WHERE id = 1 foo",
        "UPDATE db.w SET v = count(*)",
        "UPDATE db.w SET v = struct(*).id",
        "UPDATE db.w SET v = explode(array(1, 2))",
        "MERGE INTO db.w t USING (SELECT 1 AS id) s ON t.id = s.id ORDER BY 1 WHEN MATCHED THEN DELETE",
    ],
)
def test_what_is_no_single_expression_is_refused(ice: Any, catalog: icefield.Catalog, statement: str) -> None:
    ice.sql("CREATE TABLE db.w (id int, v int)")
    before = catalog.load_table("db.w").metadata_location
    with pytest.raises(REFUSED):
        ice.sql(statement)
    assert catalog.load_table("db.w").metadata_location == before


@pytest.mark.slow
def test_bare_names_in_subqueries_of_a_merge_are_those_of_the_subquery(ice: Any, changed: Changed) -> None:
    ice.sql("CREATE TABLE db.lk (id int, w int)")
    ice.sql("INSERT INTO db.lk VALUES (10, 100), (20, 200)")
    rows = [(1, 1), (2, 2), (3, 3)]
    merge = "MERGE INTO db.w t USING (SELECT 9 AS id) s ON t.id = s.id WHEN NOT MATCHED {}"
    with pytest.raises(PySparkException, match="SUBQUERY"):  # as Spark has it for every table
        ice.sql(merge.format("BY SOURCE AND EXISTS (SELECT 1 FROM db.lk WHERE id = 2) THEN DELETE"))
    for value, stored in (("(SELECT id FROM VALUES (33) AS v(id))", 33), ("(SELECT max(id) FROM db.lk)", 20)):
        assert changed(merge.format(f"THEN INSERT (id, v) VALUES (id, {value})")) == [*rows, (9, stored)]


@pytest.mark.slow
def test_a_clause_about_one_side_of_a_merge_names_no_column_of_the_other(ice: Any, changed: Changed) -> None:
    merge = "MERGE INTO db.w t USING (SELECT 9 AS id, 1 AS more) s ON t.id = s.id WHEN NOT MATCHED {}"
    changed("DELETE FROM db.w WHERE id = 1")
    for refused in (
        "THEN INSERT (id, v) VALUES (id, t.v)",
        "THEN INSERT (id, v) VALUES (id, v)",
        "THEN INSERT (id, more.v) VALUES (id, 1)",
        "AND v IS NULL THEN INSERT (id) VALUES (id)",
        "BY SOURCE AND more IS NULL THEN DELETE",
        "BY SOURCE THEN UPDATE SET v = s.more",
    ):
        with pytest.raises(REFUSED):
            ice.sql(merge.format(refused))
    assert len(ice.sql("SELECT * FROM db.w").collect()) == 2


@pytest.mark.slow
def test_a_field_of_a_bare_struct_is_of_the_side_that_a_clause_has(ice: Any) -> None:
    ice.sql("CREATE TABLE db.h (id int, addr struct<city: string>)")
    ice.sql("INSERT INTO db.h VALUES (1, named_struct('city', 'T'))")
    ice.sql(
        "MERGE INTO db.h t USING (SELECT 2 AS id, named_struct('city', 'S') AS addr) s ON t.id = s.id "
        "WHEN NOT MATCHED AND addr.city = 'S' THEN INSERT (id, addr) VALUES (id, addr) "
        "WHEN NOT MATCHED BY SOURCE AND addr.city = 'T' THEN UPDATE SET addr.city = concat(addr.city, '!')"
    )
    assert ice.sql("SELECT id, addr.city FROM db.h ORDER BY id").collect() == [(1, "T!"), (2, "S")]


@pytest.mark.slow
def test_values_of_update_and_merge_are_stored_as_the_policy_says(spark: Any, ice: Any) -> None:
    ice.sql("CREATE TABLE db.t (id int, i int, b boolean, s string, l bigint)")
    ice.sql("INSERT INTO db.t VALUES (1, 1, true, 'x', 1)")
    merge = "MERGE INTO db.t t USING (SELECT 1 AS id, 2 AS new, '7' AS i) s ON t.id = s."
    wrong = ["i = '5'", "i = TIMESTAMP '2024-01-01 00:00:00'", "i = true", "b = 1", "b = 'yes'", "s = array(1)"]
    for refused in (
        *(f"UPDATE db.t SET {each}" for each in (*wrong, "s = named_struct('a', 1)")),
        "UPDATE db.t SET i = '5' WHERE id = 77",
        f"{merge}id WHEN MATCHED THEN UPDATE SET i = s.i",
        f"{merge}new WHEN NOT MATCHED THEN INSERT (id, i) VALUES (s.id, s.i)",
        f"{merge}id WHEN MATCHED THEN UPDATE SET s = 'y' WHEN NOT MATCHED THEN INSERT (i) VALUES (s.i)",
    ):
        with pytest.raises(PySparkException, match=r"CANNOT_SAFELY_CAST|is of type"):
            ice.sql(refused)
    with pytest.raises(PySparkException, match="overflow"):
        ice.sql("UPDATE db.t SET i = 99999999999")
    spark.conf.set("spark.sql.storeAssignmentPolicy", "STRICT")
    try:
        with pytest.raises(PySparkException, match="CANNOT_SAFELY_CAST"):
            ice.sql("UPDATE db.t SET i = l")
        ice.sql("UPDATE db.t SET l = i + 4, s = id")
    finally:
        spark.conf.set("spark.sql.storeAssignmentPolicy", "ANSI")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(PySparkException, match=r"CAST_OVERFLOW|does not fit into the type int"):
            ice.sql("UPDATE db.t SET i = 99999999999")
        ice.sql("UPDATE db.t SET i = l + 1")
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
    assert ice.sql("SELECT * FROM db.t").collect() == [(1, 6, True, "1", 5)]
