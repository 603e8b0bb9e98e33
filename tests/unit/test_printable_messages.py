"""Messages about a table are one printable line, whatever characters are in its names."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield import Schema
from icefield.errors import IcefieldError
from icefield.partitioning import PartitionField, PartitionSpec, SortField, SortOrder
from icefield.toolkit import parse_transform
from icefield.types import GeometryType, ListType, LongType, MapType, NestedField, StringType, StructType

ODD = ["\x1b[31m", "\x9b2J", "a\rb", "a\nb", "\u202egnp", "\x00", "\x7f", "\udc80", "\u2066x"]


@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_an_error_is_one_printable_line_and_keeps_what_it_is_about(odd: str) -> None:
    error = IcefieldError(f"no column '{odd}'", column=odd)
    assert str(error).isprintable()
    assert error.args[0].isprintable()
    assert error.data["column"] == odd


@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_what_is_shown_of_a_schema_and_of_its_parts_prints(odd: str) -> None:
    inner = StructType(NestedField(3, odd, StringType(), required=True, doc=odd))
    kinds: list[Any] = [LongType(), inner, ListType(4, inner, False), MapType(5, StringType(), 6, inner, False)]
    for kind in kinds:
        schema = Schema(NestedField(1, odd, kind, required=False, doc=odd), schema_id=0)
        assert all(line.isprintable() for line in str(schema).split("\n"))
        assert len(str(schema).split("\n")) == 3
        assert repr(schema).isprintable()
        assert all(str(field).isprintable() and repr(field).isprintable() for field in schema.fields)
        assert str(kind).isprintable()


@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_what_is_shown_of_specs_and_orders_prints(odd: str) -> None:
    spec = PartitionSpec(PartitionField(1, 1000, parse_transform("identity"), odd))
    order = SortOrder(SortField(1, parse_transform("identity")), order_id=1)
    unknown = PartitionField(1, 1000, parse_transform(f"zorder{odd}"), odd)
    for each in (spec, order, unknown):
        assert str(each).isprintable()
        assert repr(each).isprintable()


def test_filters_and_properties_that_do_not_fit_say_so_in_printable_words(tmp_path: Path) -> None:
    with (
        icefield.load_catalog("c", type="directory", warehouse=f"file://{tmp_path}") as catalog,
        warnings.catch_warnings(record=True) as said,
    ):
        warnings.simplefilter("always")
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
        shown: list[str] = []
        for odd in ODD[:-2]:  # half a character is in no property
            for filter_ in (f"id = '{odd}'", f'"x{odd}y" = 1', f"id = 1 {odd}x y"):
                try:
                    table.scan(filter_).to_arrow()
                except IcefieldError as error:
                    shown += [str(error), *map(str, error.args)]
            with table.transaction() as transaction:
                transaction.set_properties({f"write.format.defaul{odd[0]}": "parquet"})
    assert said
    assert len(shown) > len(ODD)
    assert all(each.isprintable() for each in shown)
    assert all(str(each.message).isprintable() for each in said)


@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_a_coordinate_system_that_does_not_print_is_spelt_out(odd: str) -> None:
    try:
        field = NestedField(1, "g", GeometryType(odd), required=False)
    except IcefieldError:
        return  # refused, by an error as above
    assert str(field).isprintable()
