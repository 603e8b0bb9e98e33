"""Plugins check the properties that they declare, also in updates that ``Catalog.commit_table`` applies."""

from __future__ import annotations

import icefield
import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument
from icefield.metadata.updates.table import SetProperties


@pytest.mark.parametrize("value", ["few", "0"])
def test_a_value_that_a_plugin_refuses_is_refused_in_an_update(value: str) -> None:
    catalog = icefield.load_catalog("x", type="sql", uri="sqlite://", warehouse="memory://checked-changes")
    catalog.create_namespace("db")
    catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    update = SetProperties({"write.parquet.page-row-limit": value})
    with pytest.raises(InvalidArgument, match=f"'write.parquet.page-row-limit': '{value}'"):
        catalog.commit_table("db.t", [update])
    with pytest.raises(InvalidArgument, match=f"'write.parquet.page-row-limit': '{value}'"):
        catalog.commit_tables([("db.t", [update], [])])
    assert not catalog.load_table("db.t").properties.get("write.parquet.page-row-limit")
