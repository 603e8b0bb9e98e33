"""Fixtures that the tests over all file formats share."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from foreign_files import FORMATS
from format_strategies import numbered
from icefield.catalog import Table
from icefield.schema import Schema
from icefield.types import NestedField, StructType
from tables import memory_catalog, new_table


@pytest.fixture(params=FORMATS)
def file_format(request: pytest.FixtureRequest) -> str:
    """Each file format in turn."""
    return str(request.param)


@pytest.fixture
def make(file_format: str) -> Callable[..., Table]:
    """Makes a table whose files are of the format."""

    def made(*fields: NestedField, version: int = 2, **given: Any) -> Table:
        properties = {"format-version": str(version), "write.format.default": file_format}
        properties |= given.pop("properties", {})
        # The given field ids may repeat, because the table assigns new ids anyway.
        schema = numbered(StructType(*fields), count(1).__next__)
        return new_table(catalog=memory_catalog(), schema=Schema(*schema.fields), properties=properties, **given)

    return made
