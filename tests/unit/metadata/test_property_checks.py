"""Errors and warnings when table properties are set: unusable values, and names that are close to a known name."""

from __future__ import annotations

import warnings
from pathlib import Path

import icefield
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield import Catalog, Plugins
from icefield.errors import InvalidArgument, MissingPlugin
from icefield.metadata import Property, apply_updates, decode_metadata, encode_metadata
from icefield.metadata.properties import find_property
from icefield.metadata.property_checks import KnownProperties, PropertyWarning
from icefield.metadata.updates.table import SetProperties

ROWS = pa.table({"id": [1, 2]})
ROADS = ["created", "created by the catalog", "set", "set in a transaction"]
REFUSED = {
    "write.format.default": ("parqet", "avro, orc, parquet"),
    "write.delete.format.default": ("puffin", "avro, orc, parquet"),
    "write.parquet.compression-codec": ("zstd3", "zstd"),
    "write.delete.parquet.compression-codec": ("zip", "gzip"),
    "write.avro.compression-codec": ("lz4", "snappy"),
    "write.orc.compression-codec": ("gzip", "zlib"),
    "write.target-file-size-bytes": ("512MB", "integer"),
    "write.wap.enabled": ("yes", "true or false"),
    "write.metadata.metrics.default": ("truncate", "truncate("),
    "write.metadata.metrics.column.id": ("some", "counts"),
    "write.parquet.bloom-filter-fpp.column.id": ("1.5", "between 0 and 1"),
    "schema.name-mapping.default": ("[{", "JSON"),
}
ACCEPTED = {
    "write.format.default": ("PARQUET", "avro", "orc"),
    "write.parquet.compression-codec": ("lzo", "ZSTD", "uncompressed"),
    "write.orc.compression-codec": ("brotli", "none"),
    "write.avro.compression-codec": ("xz", "gzip"),
    "write.metadata.metrics.default": ("truncate(8)", "full"),
}
KNOWN = Plugins.installed().table_properties
LONG = [name for name in KNOWN.declared if len(name) >= 8]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = icefield.load_catalog("x", type="directory", warehouse=f"file://{tmp_path}")
    made.create_namespace("db")
    return made


def go(catalog: Catalog, road: str, name: str, value: str) -> None:
    """Create or change a table with a property, in one of the possible ways."""
    if road == "created":
        catalog.create_table("db.t", ROWS.schema, properties={name: value})
    elif road == "created by the catalog":
        more = {**catalog.properties, f"table-default.{name}": value}
        icefield.load_catalog("x", **more).create_table("db.t", ROWS.schema)
    elif road == "set":
        catalog.create_table("db.t", ROWS.schema).set_properties({name: value})
    else:
        with catalog.create_table("db.t", ROWS.schema).transaction() as tx:
            tx.set_properties({name: value})


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("name", REFUSED)
def test_a_value_that_nothing_could_use_is_refused_where_it_is_set(catalog: Catalog, name: str, road: str) -> None:
    value, allowed = REFUSED[name]
    with pytest.raises(InvalidArgument) as caught:
        go(catalog, road, name, value)
    said = str(caught.value)
    assert f"'{name}'" in said
    assert repr(value) in said
    assert allowed in said
    if road.startswith("created"):
        assert not catalog.table_exists("db.t")
    else:
        assert name not in catalog.load_table("db.t").properties


@pytest.mark.parametrize("road", ROADS)
def test_values_that_some_engine_could_use_are_kept(catalog: Catalog, road: str) -> None:
    for name, values in ACCEPTED.items():
        for value in values:
            go(catalog, road, name, value)
            assert catalog.load_table("db.t").properties[name] == value
            catalog.drop_table("db.t", purge=True)


def test_a_format_whose_plugin_is_not_installed_may_be_set_and_is_missed_by_a_write() -> None:
    plugins = icefield.Plugins(["icefield.builtin.hooks"])
    catalog = icefield.load_catalog("x", plugins=plugins, type="directory", warehouse="memory://no-orc")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.schema, properties={"write.format.default": "orc"})
    with pytest.raises(MissingPlugin, match="orc"):
        table.append(ROWS)


def test_a_format_of_an_installed_plugin_may_be_set() -> None:
    KnownProperties(["lance"]).check({"write.format.default": "Lance"})
    with pytest.raises(InvalidArgument, match="'Lance' is none of avro, orc, parquet"):
        Plugins().table_properties.check({"write.format.default": "Lance"})


def test_a_table_from_elsewhere_with_values_that_nothing_could_use_is_read_and_changed(catalog: Catalog) -> None:
    made = catalog.create_table("db.t", ROWS.schema)
    made.append(ROWS)
    bad = {name: value for name, (value, _) in REFUSED.items() if "codec" in name or "format" in name}
    # The metadata of another engine, which checks no value.
    text = encode_metadata(apply_updates(made.metadata, [SetProperties(dict.fromkeys(bad, "zstd"))]))
    for name, value in bad.items():
        text = text.replace(f'"{name}":"zstd"'.encode(), f'"{name}":"{value}"'.encode())
    location = f"{made.location()}/metadata/v99.metadata.json"
    assert bad.items() <= decode_metadata(text, location).properties.items()
    with catalog.io.open_output(location) as sink:
        sink.write(text)
    assert icefield.open_table(location).scan().count() == 2
    table = catalog.register_table("db.u", location)
    assert table.scan().to_arrow().num_rows == 2
    table.set_properties({"owner": "me", **bad})  # those that it has already change nothing
    table.update_schema().add_column("more", "int").commit()
    table.delete()
    assert table.scan().count() == 0
    with pytest.raises(MissingPlugin, match="parqet"):
        table.append(ROWS)
    table.set_properties({"write.format.default": "parquet", "write.parquet.compression-codec": "zstd"})
    table.append(ROWS)
    assert table.scan().count() == 2


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("write.parquet.compresion-codec", "write.parquet.compression-codec"),
        ("write.formt.default", "write.format.default"),
        ("write.metadata.metrics.colunm.id", "write.metadata.metrics.column.id"),
    ],
)
def test_a_name_that_all_but_spells_a_known_one_is_kept_with_one_warning(
    catalog: Catalog, road: str, name: str, meant: str
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        go(catalog, road, name, "full")
    assert [each.category for each in caught] == [PropertyWarning]
    assert f"'{name}'" in str(caught[0].message)
    assert f"'{meant}'" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert catalog.load_table("db.t").properties[name] == "full"


@pytest.mark.parametrize(
    "name",
    [
        "owner",
        "gc",
        "created-at",
        "my.own.property",
        "external.table.purge",
        "write.location-provider.impl",
        "read.data-planning-mode",
        "read.delete-planning-mode",
        "encryption.table.key-id",
        "write.orc.compression-level",
        "write.delete.parquet.row-group-check-min-record-count",
        "flink.max-continuous-empty-commits",
        "x" * 100_000,
    ],
)
def test_nothing_is_said_of_other_names(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KNOWN.warn_of_names([name, *KNOWN.declared, "write.metadata.metrics.column.anything"])
    assert KNOWN.likely_name(name) is None


@given(st.sampled_from(LONG), st.data())
def test_the_nearest_name_is_found_after_any_slip(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name) - 2))
    slips = {
        "left out": name[:at] + name[at + 1 :],
        "put in": f"{name[:at]}q{name[at:]}",
        "replaced": f"{name[:at]}q{name[at + 1 :]}",
        "swapped": name[:at] + name[at + 1] + name[at] + name[at + 2 :],
        "in capitals": name[: at + 1].upper() + name[at + 1 :],
    }
    whole = "id" if name.endswith(".") else ""
    if whole and at == len(name) - 2:
        del slips["swapped"]  # `colum.nid` is one slip from the column `nid`, too
    slip = slips[data.draw(st.sampled_from(sorted(slips)))]
    if find_property(slip + whole, KNOWN.declared) is None:
        assert KNOWN.likely_name(slip + whole) == name + whole


# A name that ends with a dot is a property of a column, of which only the beginning is compared.
NAMES = st.text("ab.", min_size=8, max_size=12).filter(lambda name: not name.endswith("."))


@given(NAMES, NAMES)
def test_names_that_are_near_have_all_but_two_letters_in_common(one: str, other: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("icefield.metadata.property_checks.TABLE_PROPERTIES", {})
        patch.setattr("icefield.metadata.property_checks._CHECKED", ())
        known = KnownProperties((), [Property(other, str, None, "Tried.")])
        if known.likely_name(one) is not None:
            assert _in_common(one, other) >= max(len(one), len(other)) - 2


def _in_common(one: str, other: str) -> int:
    """The length of the longest common subsequence, by the complete table of prefixes."""
    rows = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one, 1):
        for j, b in enumerate(other, 1):
            rows[i][j] = rows[i - 1][j - 1] + 1 if a == b else max(rows[i - 1][j], rows[i][j - 1])
    return rows[-1][-1]
