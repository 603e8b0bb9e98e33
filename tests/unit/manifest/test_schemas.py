"""The field tables of manifests and manifest lists, compared with the tables of the specification."""

from typing import Any

import pytest
from icefield.errors import UnsupportedFeature
from icefield.manifest import schemas
from icefield.manifest.schemas import FieldRule, entry_schema, manifest_list_schema
from icefield.schema import Schema
from icefield.types import IcebergType, ListType, MapType, NestedField, StructType, parse_type
from vectors import VECTORS

TABLES = {
    "manifest_entry_fields": schemas.ENTRY_FIELDS,
    "data_file_fields": schemas.DATA_FILE_FIELDS,
    "manifest_file_fields": schemas.MANIFEST_FILE_FIELDS,
    "field_summary_fields": schemas.FIELD_SUMMARY_FIELDS,
}
PARTITION = StructType(NestedField(1000, "day", parse_type("date")), NestedField(1001, "bucket", parse_type("int")))


def kind_of(type_: IcebergType) -> str:
    """A type in the spelling of the test vectors."""
    match type_:
        case ListType():
            inner = "field_summary" if isinstance(type_.element_type, StructType) else str(type_.element_type)
            return f"list<{type_.element_id}:{inner}>"
        case MapType():
            return f"map<{type_.key_id}:{type_.key_type},{type_.value_id}:{type_.value_type}>"
        case StructType():
            return "struct"
    return str(type_)


@pytest.mark.spec(
    *[f"MAN-{n:02}" for n in (7, 8, 9, 10, 11, 12, *range(30, 53))], *[f"ML-{n:02}" for n in (*range(3, 19),)], "VER-14"
)
@pytest.mark.parametrize("table", TABLES)
def test_every_field_has_the_id_name_type_and_requirement_of_the_specification(table: str) -> None:
    given = {
        rule.field_id: (rule.name, kind_of(rule.type), rule.v1, rule.v2, rule.v3, rule.read_default)
        for rule in TABLES[table]
    }
    wanted = {
        row["id"]: (row["name"], row["type"], row["v1"], row["v2"], row["v3"], row.get("read_default"))
        for row in VECTORS[table]
    }
    assert given == wanted


@pytest.mark.spec("VER-15", "VER-04", "VER-06", "MAN-36", "MAN-37", "MAN-42", "MAN-53", "MAN-12")
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("table", TABLES)
def test_a_writer_leaves_out_what_its_version_does_not_have_and_writes_what_it_requires(
    table: str, version: int
) -> None:
    written = fields_of(table, version)
    for row in VECTORS[table]:
        rule, field = row[f"v{version}"], written.get(row["id"])
        if rule is None:
            assert field is None
        elif rule == "required":
            assert field is not None
            assert field.required
        elif field is not None:
            assert field.optional
    assert set(written) <= {row["id"] for row in VECTORS[table]}
    # Deprecated fields are not written, except the field that version 1 requires.
    assert {106, 107, 111, 146}.isdisjoint(written)
    assert (105 in written) is (table == "data_file_fields" and version == 1)


def fields_of(table: str, version: int) -> dict[int, NestedField]:
    if table == "manifest_entry_fields":
        found: Any = entry_schema(version, PARTITION).fields
    elif table == "data_file_fields":
        found = entry_schema(version, PARTITION).find_type("data_file").fields  # type: ignore[attr-defined]
    elif table == "manifest_file_fields":
        found = manifest_list_schema(version).fields
    else:
        found = manifest_list_schema(version).find_field(508).field_type.fields  # type: ignore[attr-defined]
    return {field.field_id: field for field in found}


@pytest.mark.spec("MAN-33", "PART-11", "PART-22", "PART-16")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_partition_struct_is_required_and_has_the_fields_of_the_spec(version: int) -> None:
    assert entry_schema(version, PARTITION).find_field(102) == NestedField(102, "partition", PARTITION, required=True)
    assert entry_schema(version, StructType()).find_type(102) == StructType()


@pytest.mark.spec("MAN-54", "MAN-55")
@pytest.mark.parametrize("row", VECTORS["reader_matrix"])
def test_a_reader_counts_only_on_what_both_versions_require(row: dict[str, Any]) -> None:
    rule = FieldRule(1, "field", parse_type("int"), row["v1"], row["v2"], row["v2"])
    assert rule.reader_rule == row["read"]


@pytest.mark.spec("MAN-54", "MAN-37", "MAN-42")
def test_deprecated_fields_are_ignored_on_read() -> None:
    ignored = {rule.field_id for rule in schemas.DATA_FILE_FIELDS if rule.reader_rule == "ignore"}
    assert ignored == {row["id"] for row in VECTORS["data_file_fields"] if row.get("deprecated")}


@pytest.mark.spec("VER-11")
def test_a_later_format_version_is_refused() -> None:
    for build in (lambda: entry_schema(4, PARTITION), lambda: manifest_list_schema(4)):
        with pytest.raises(UnsupportedFeature):
            build()


def test_schemas_are_schemas() -> None:
    assert isinstance(entry_schema(2, PARTITION), Schema)
