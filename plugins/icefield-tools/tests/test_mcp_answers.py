"""Answers of ``icefield mcp`` without its protocol: they state their omissions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import icefield
import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument
from icefield_frames.duckdb_queries import QueryLimits
from icefield_frames.query_processes import QueryProcesses
from icefield_tools.mcp.limits import AnswerLimits
from icefield_tools.mcp.reading import CatalogReader
from icefield_tools.mcp.served import ServedCatalogs


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[CatalogReader]:
    given = {"type": "directory", "warehouse": tmp_path.as_uri()}
    with icefield.load_catalog("lake", **given) as catalog:
        catalog.create_namespace("db")
        properties = {f"note-{number:03}": "x" * 1_000 for number in range(150)}
        catalog.create_table("db.wide", pa.schema([(f"c{n:03}", pa.int64()) for n in range(90)]), properties=properties)
        yield CatalogReader(ServedCatalogs("lake", given), AnswerLimits(), None)


def test_a_description_without_some_properties_is_not_complete(reader: CatalogReader) -> None:
    found = reader.describe_table("db.wide", "")
    assert (len(found["properties"]), len(found["columns"]), found["is_complete"]) == (100, 90, False)


def test_a_description_has_no_more_bytes_than_an_answer(reader: CatalogReader) -> None:
    found = CatalogReader(reader.catalogs, AnswerLimits(size=105_000), None).describe_table("db.wide", "")
    assert len(json.dumps(found)) < 106_000
    assert (0 < len(found["columns"]) < 90, found["is_complete"]) == (True, False)


def test_a_query_is_stopped_when_its_time_is_up(reader: CatalogReader) -> None:
    queries = QueryProcesses(QueryLimits(seconds=2.0, memory=256_000_000, threads=1, rows=6), 1)
    limited = CatalogReader(reader.catalogs, AnswerLimits(), queries)
    sql = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = 7"
    with pytest.raises(InvalidArgument, match="stopped after"):
        limited.query(sql, 5, "", Future())
