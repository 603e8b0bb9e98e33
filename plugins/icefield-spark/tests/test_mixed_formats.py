"""A table whose files are of three formats and five versions of its schema, read through PySpark."""

from __future__ import annotations

from typing import Any

import pytest
from mixed_tables import MIXED_FILTERS, mixed_rows, mixed_table

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def plain(value: Any) -> Any:
    """A value of Spark's as Python's."""
    if hasattr(value, "asDict"):
        return {name: plain(held) for name, held in value.asDict().items()}
    if isinstance(value, dict):
        return [(key, plain(held)) for key, held in sorted(value.items())]
    return [plain(item) for item in value] if isinstance(value, list) else value


def rows_of(frame: Any) -> list[dict[str, Any]]:
    return sorted((plain(row) for row in frame.collect()), key=lambda row: row["id"])


@pytest.mark.spec("PRJ-01", "PRJ-16", "TYP-29", "DEF-02")
def test_the_session_scans_and_filters_it_right(catalog: Any, ice: Any) -> None:
    mixed_table(catalog, "db.mixed")
    assert rows_of(ice.table("db.mixed")) == mixed_rows()
    for text in list(MIXED_FILTERS)[::2]:
        wanted = [row for row in mixed_rows() if MIXED_FILTERS[text](row)]
        assert rows_of(ice.table("db.mixed", where=text)) == wanted, text


def test_the_data_source_scans_and_filters_it_right(catalog: Any, spark: Any, options: dict[str, str]) -> None:
    mixed_table(catalog, "db.mixed")
    frame = spark.read.format("icefield").options(**options).load("db.mixed")
    assert rows_of(frame) == mixed_rows()
    for text in ("id = 7", "note = 'older'", "place.alt = -1", "day is null", "price < 3"):
        wanted = [row for row in mixed_rows() if MIXED_FILTERS[text](row)]
        assert rows_of(frame.where(text)) == wanted, text
