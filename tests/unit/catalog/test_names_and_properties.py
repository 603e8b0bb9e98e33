"""The names of tables, namespaces and properties that a catalog accepts."""

from __future__ import annotations

import icefield
import pytest
from icefield.errors import InvalidArgument
from tables import SCHEMA, memory_catalog, new_table, orphans, rows


@pytest.mark.parametrize("key", [None, 5, "", b"owner"])
def test_a_property_is_named_by_a_string(key):
    catalog = memory_catalog()
    table = new_table(catalog=catalog)
    given = {key: "x"}
    for change in (
        lambda: catalog.create_namespace("other", given),
        lambda: catalog.update_namespace_properties("db", updates=given),
        lambda: catalog.update_namespace_properties("db", removals=[key]),
        lambda: catalog.create_table("db.u", SCHEMA, properties=given),
        lambda: table.set_properties(given),
        lambda: table.remove_properties(key),
        lambda: table.append(rows([1]), snapshot_properties=given),
        lambda: table.update_snapshot().fast_append().set_snapshot_property(key, "x"),
        lambda: icefield.open_table(table.metadata_location, properties=given),
    ):
        with pytest.raises(InvalidArgument, match="string"):
            change()
    assert not catalog.namespace_exists("other")
    assert not catalog.table_exists("db.u")
    assert orphans(table) == set()


def test_a_value_of_none_is_refused_wherever_a_property_is_set():
    catalog = memory_catalog()
    table = new_table(catalog=catalog)
    given = {"owner": None}
    for change in (
        lambda: catalog.create_namespace("other", given),
        lambda: catalog.update_namespace_properties("db", updates=given),
        lambda: catalog.create_table("db.u", SCHEMA, properties=given),
        lambda: table.set_properties(given),
        lambda: table.append(rows([1]), snapshot_properties=given),
        lambda: table.update_snapshot().fast_append().set_snapshot_property("owner", None),
    ):
        with pytest.raises(InvalidArgument, match="owner"):
            change()
    assert orphans(table) == set()


@pytest.mark.parametrize("given", [{"k" * 65_537: "x"}, {"owner": "x" * (1024 * 1024 + 1)}], ids=["name", "value"])
def test_a_namespace_is_given_no_property_that_is_too_long_to_be_read(given):
    catalog = memory_catalog()
    for change in (
        lambda: catalog.create_namespace("other", given),
        lambda: catalog.update_namespace_properties("db", updates=given),
    ):
        with pytest.raises(InvalidArgument, match="the most that are allowed"):
            change()
    assert not catalog.namespace_exists("other")
    assert given.keys().isdisjoint(catalog.load_namespace_properties("db"))


@pytest.mark.parametrize("name", [None, 5, b"db.t", True])
def test_a_table_and_a_namespace_are_named_by_strings(name):
    catalog = memory_catalog()
    for use in (
        lambda: catalog.load_table(name),
        lambda: catalog.create_table(name, SCHEMA),
        lambda: catalog.drop_table(name),
        lambda: catalog.table_exists(name),
        lambda: catalog.create_namespace(name),
        lambda: catalog.namespace_exists(name),
        lambda: catalog.list_tables(name),
        lambda: catalog.load_namespace_properties(name),
    ):
        with pytest.raises(InvalidArgument, match="name"):
            use()
