"""Names of tables and namespaces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.catalog.identifiers import namespace_name, table_name
from icefield.errors import InvalidArgument


def test_names_are_strings_or_levels():
    assert table_name("db.events") == table_name(("db", "events")) == table_name(["db", "events"]) == ("db", "events")
    assert table_name("lake.raw.events") == ("lake", "raw", "events")
    assert namespace_name("db") == ("db",)
    assert namespace_name(("lake", "raw")) == ("lake", "raw")
    assert table_name(("db", "a.b")) == ("db", "a.b")


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        ".",
        "a..b",
        ".a",
        "a.",
        "a. .b",
        "..",
        (),
        ("a", ""),
        ("a", ".."),
        ("a", "."),
        ("a", 7),
        "a.b\n",
        "a.b\0",
        "x" * 1025 + ".y",
        "a." * 70,
    ],
)
def test_a_name_that_no_catalog_could_hold_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        table_name(wrong)


def test_a_table_needs_a_namespace():
    with pytest.raises(InvalidArgument, match="names no namespace"):
        table_name("events")


@given(st.lists(st.text(st.characters(categories=("L", "N")), min_size=1, max_size=5), min_size=2, max_size=5))
def test_string_and_levels_mean_the_same(levels):
    assert table_name(".".join(levels)) == table_name(levels) == tuple(levels)
