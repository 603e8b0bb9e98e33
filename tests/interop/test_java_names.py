"""Names of columns and partition fields: Iceberg's Java library accepts and refuses the same names as Icefield."""

import pytest
from icefield.errors import InvalidSchema
from icefield.metadata import encode_metadata
from icefield.schema import Schema
from icefield.types import NestedField, StructType
from peer_tables import rows_of
from servers.java_iceberg import JavaError

SCHEMA = Schema(
    NestedField(1, "id", "long"),
    NestedField(2, "kind", "string"),
    NestedField(3, "where", StructType(NestedField(4, "city", "string"))),
)


def add(*path):
    return lambda table: table.update_schema().add_column(path if len(path) > 1 else path[0], "string").commit()


def rename(old, new):
    return lambda table: table.update_schema().rename_column(old, new).commit()


def delete(name):
    return lambda table: table.update_schema().delete_column(name).commit()


def unpartition(name):
    return lambda table: table.update_spec().remove_field(name).commit()


def changed(table, *changes):
    for change in changes:
        change(table)
    table.append(rows_of(table, {"id": 1}))
    return table


ALLOWED = {
    "identity": (["kind"], []),
    "nested identity": ([("where.city", "identity")], []),
    "another case": (["bucket[4](id)"], [add("ID_bucket_4")]),
    "last part of a nested name": ([("id", "bucket[4]", "where.zip")], [add("zip")]),
    "void": (["kind"], [unpartition("kind")]),
    "void in a new table": (["void(kind)", "bucket[4](id)"], []),
    "brought back": (["kind"], [unpartition("kind"), delete("kind"),
                                lambda table: table.update_schema().undelete_column("kind").commit()]),
}  # fmt: skip
REFUSED = {
    "column": (["bucket[4](id)"], [], ("id_bucket_4",)),
    "nested column": ([("id", "bucket[4]", "where.zip")], [], ("where", "zip")),
    "name that a rename set free": (["kind"], [rename("kind", "sort")], ("kind",)),
    "field of a former spec": (["kind", "bucket[4](id)"], [unpartition("id_bucket_4")], ("id_bucket_4",)),
}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("case", ALLOWED)
def test_java_loads_tables_whose_names_are_allowed(catalog, java_iceberg, case, version):
    spec, changes = ALLOWED[case]
    properties = {"format-version": str(version)}
    table = catalog.create_table("db.t", SCHEMA, partition_spec=spec, properties=properties)
    assert len(java_iceberg.read(changed(table, *changes).metadata_location)) == 1


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("case", REFUSED)
def test_java_refuses_tables_whose_names_are_refused(catalog, java_iceberg, tmp_path, case, version):
    spec, changes, path = REFUSED[case]
    properties = {"format-version": str(version)}
    table = changed(catalog.create_table("db.t", SCHEMA, partition_spec=spec, properties=properties), *changes)
    with pytest.raises(InvalidSchema, match="has the name of a partition field"):
        add(*path)(table)
    # The same change without a check: it uses a free name, which the test then replaces in the file.
    add(*path[:-1], "free")(table)
    text = encode_metadata(table.metadata).decode().replace('"free"', f'"{path[-1]}"')
    (tmp_path / "misnamed.metadata.json").write_text(text)
    with pytest.raises(JavaError, match="sourced from different field in schema"):
        java_iceberg.read(f"{tmp_path}/misnamed.metadata.json")


@pytest.mark.parametrize("version", [1, 2])
def test_the_name_of_a_deleted_source_is_refused_although_java_reads_it_since_1_12(catalog, version):
    """Java's library before 1.12 cannot load such a table."""
    properties = {"format-version": str(version)}
    table = catalog.create_table("db.t", SCHEMA, partition_spec=["kind"], properties=properties)
    changed(table, unpartition("kind"), delete("kind"))
    with pytest.raises(InvalidSchema, match="has the name of a partition field"):
        add("kind")(table)
