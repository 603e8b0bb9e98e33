"""Dynamic overwrites of tables whose partition spec has changed: no old row stays beside the new ones unseen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import icefield
import pytest
from icefield.errors import ValidationFailed
from pyspark.errors import PySparkException

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MODE = "spark.sql.sources.partitionOverwriteMode"


@pytest.fixture(params=["statement", "frame", "data source"])
def overwrite(request: pytest.FixtureRequest, spark: Any, ice: Any, options: dict[str, str]) -> Callable[[str], None]:
    """Overwrites the partitions of the rows of a query."""

    def by_statement(query: str) -> None:
        spark.conf.set(MODE, "dynamic")
        try:
            ice.sql(f"INSERT OVERWRITE db.t {query}")
        finally:
            spark.conf.unset(MODE)

    def by_frame(query: str) -> None:
        ice.overwrite_partitions(spark.sql(query), "db.t")

    def by_data_source(query: str) -> None:
        writer = spark.sql(query).write.format("icefield").options(**options)
        writer.option("partition-overwrite-mode", "dynamic").mode("overwrite").save("db.t")

    return {"statement": by_statement, "frame": by_frame, "data source": by_data_source}[request.param]


def test_rows_of_an_older_spec_that_would_stay_in_a_replaced_partition_are_told_of(
    ice: Any, catalog: icefield.Catalog, overwrite: Callable[[str], None]
) -> None:
    ice.sql("CREATE TABLE db.t (id int, cat string, region string) PARTITIONED BY (cat)")
    ice.sql("INSERT INTO db.t VALUES (1, 'A', 'us'), (2, 'B', 'us')")
    ice.sql("ALTER TABLE db.t ADD PARTITION FIELD region")
    ice.sql("INSERT INTO db.t VALUES (3, 'A', 'us'), (4, 'A', 'eu')")
    before = catalog.load_table("db.t").current_snapshot()
    with pytest.raises((ValidationFailed, PySparkException), match="partition spec"):
        overwrite("SELECT 10 AS id, 'A' AS cat, 'us' AS region")
    assert catalog.load_table("db.t").current_snapshot() == before
    overwrite("SELECT 11 AS id, 'C' AS cat, 'us' AS region")  # where no old row can be
    assert sorted(row.id for row in ice.table("db.t").collect()) == [1, 2, 3, 4, 11]
    ice.maintenance("db.t").rewrite_data_files(rewrite_all=True)  # the way that the error names
    overwrite("SELECT 10 AS id, 'A' AS cat, 'us' AS region")
    assert sorted(row.id for row in ice.table("db.t").collect()) == [2, 4, 10, 11]
