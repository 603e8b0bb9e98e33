"""Metadata of views: read, written, and changed by the updates of the REST catalog protocol."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from icefield.errors import InvalidArgument, InvalidMetadata, UnsupportedFeature, ValidationFailed
from icefield.metadata import (
    ViewRepresentation,
    apply_view_updates,
    decode_view_metadata,
    encode_view_metadata,
    new_view_metadata,
    view_creation_updates,
    view_requirements_from_json,
    view_requirements_to_json,
    view_updates_from_json,
    view_updates_to_json,
)
from icefield.metadata.view_updates import SetCurrentViewVersion, choose_view_version
from icefield.schema import Schema
from icefield.types import NestedField, StringType
from msgspec.structs import replace as replace_version

# The example of the view specification's appendix.
EXAMPLE: dict[str, Any] = {
    "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
    "format-version": 1,
    "location": "s3://bucket/warehouse/default.db/event_agg",
    "current-version-id": 1,
    "properties": {"comment": "Daily event counts"},
    "versions": [
        {
            "version-id": 1,
            "timestamp-ms": 1573518431292,
            "schema-id": 1,
            "default-catalog": "prod",
            "default-namespace": ["default"],
            "summary": {"engine-name": "Spark", "engine-version": "3.3.2"},
            "representations": [{"type": "sql", "sql": "SELECT COUNT(1) FROM events", "dialect": "spark"}],
        }
    ],
    "schemas": [
        {
            "schema-id": 1,
            "type": "struct",
            "fields": [{"id": 1, "name": "event_count", "required": False, "type": "int", "doc": "Count of events"}],
        }
    ],
    "version-log": [{"timestamp-ms": 1573518431292, "version-id": 1}],
}


def decoded(**changes: Any) -> Any:
    document = {key: value for key, value in {**EXAMPLE, **changes}.items() if value is not ...}
    return decode_view_metadata(json.dumps(document).encode(), "s3://b/v.json")


def version(**changes: Any) -> dict[str, Any]:
    return {**EXAMPLE["versions"][0], **changes}


def added(**changes: Any) -> list[dict[str, Any]]:
    """The updates that make another version current."""
    return [
        {"action": "add-view-version", "view-version": version(**changes)},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]


def changed(metadata: Any, updates: list[dict[str, Any]]) -> Any:
    return apply_view_updates(metadata, view_updates_from_json(updates))


@pytest.mark.spec("VIEW-01", "VIEW-02")
def test_the_example_of_the_specification_is_read_and_written_again() -> None:
    metadata = decoded(unknown={"of": "later"})
    assert metadata.current_version().sql == {"spark": "SELECT COUNT(1) FROM events"}
    assert metadata.current_version().default_catalog == "prod"
    assert [field.name for field in metadata.schema().fields] == ["event_count"]
    assert json.loads(encode_view_metadata(metadata)) == {**EXAMPLE, "unknown": {"of": "later"}}
    assert json.loads(encode_view_metadata(decode_view_metadata(encode_view_metadata(metadata, compress=True), "v")))


@pytest.mark.parametrize(
    "key", ["view-uuid", "format-version", "location", "schemas", "current-version-id", "versions", "version-log"]
)
def test_a_key_that_must_be_there_is_missed(key: str) -> None:
    with pytest.raises(InvalidMetadata, match=key):
        decoded(**{key: ...})


@pytest.mark.parametrize("key", sorted({*EXAMPLE["versions"][0]} - {"default-catalog"}))
def test_a_key_of_a_version_that_must_be_there_is_missed(key: str) -> None:
    with pytest.raises(InvalidMetadata, match=r"v\.json"):
        decoded(versions=[{name: value for name, value in version().items() if name != key}])


@pytest.mark.parametrize(
    "changes",
    [
        {"current-version-id": 2},
        {"versions": [version(**{"schema-id": 7})]},
        {"versions": {}},
        {"versions": [version(), version()]},
        {"properties": {"a": 1}},
        {"location": 1},
        {"format-version": 0},
        {"versions": [version(representations=[{"type": "sql", "sql": "a", "dialect": d} for d in ("x", "X")])]},
    ],
)
def test_metadata_that_breaks_a_rule_is_refused_with_its_location(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidMetadata, match=r"v\.json"):
        decoded(**changes)


def test_a_later_format_version_is_refused() -> None:
    with pytest.raises(UnsupportedFeature):
        decoded(**{"format-version": 2})


@pytest.mark.spec("VIEW-03")
def test_a_version_has_one_query_a_dialect_and_another_text_is_another_version() -> None:
    metadata = decoded()
    two = [{"type": "sql", "sql": "SELECT 1", "dialect": dialect} for dialect in ("spark", "Spark")]
    with pytest.raises(InvalidArgument, match="several queries in the dialect"):
        changed(metadata, added(representations=two))
    other = changed(metadata, added(representations=[{"type": "sql", "sql": "SELECT 2", "dialect": "spark"}]))
    assert [each.version_id for each in other.versions] == [1, 2]
    assert other.versions.find(1).sql == {"spark": "SELECT COUNT(1) FROM events"}
    with pytest.raises(InvalidArgument, match="no version -1"):
        changed(metadata, added())
    assert changed(metadata, [*added()[:-1], {"action": "set-current-view-version", "view-version-id": 1}]) is metadata


def test_a_query_and_columns_that_a_view_has_already_are_chosen_by_their_ids() -> None:
    first = decoded()
    columns, version = first.schema(), first.current_version()
    assert choose_view_version(first, columns, version) == (SetCurrentViewVersion(1),)
    other = replace_version(version, representations=(ViewRepresentation("sql", "SELECT 2", "spark"),))
    second = apply_view_updates(first, choose_view_version(first, columns, other))
    assert (second.current_version_id, len(second.schemas)) == (2, 1)
    assert choose_view_version(second, columns, version) == (SetCurrentViewVersion(1),)
    wider = Schema(*columns.fields, NestedField(77, "more", StringType()))
    third = apply_view_updates(second, choose_view_version(second, wider, other))
    assert (third.current_version_id, third.current_version().schema_id, len(third.schemas)) == (3, 2, 2)
    back = apply_view_updates(third, choose_view_version(third, columns, version))
    assert (back.current_version_id, len(back.versions)) == (1, 3)


@pytest.mark.spec("VIEW-04")
def test_the_log_records_each_change_and_the_oldest_versions_go() -> None:
    metadata = changed(decoded(), [{"action": "set-properties", "updates": {"version.history.num-entries": "3"}}])
    for number in range(5):
        query = {"type": "sql", "sql": f"SELECT {number}", "dialect": "spark"}
        metadata = changed(metadata, added(representations=[query]))
    assert [each.version_id for each in metadata.versions] == [4, 5, 6]
    assert [entry.version_id for entry in metadata.version_log] == [4, 5, 6]
    back = changed(metadata, [{"action": "set-current-view-version", "view-version-id": 4}])
    assert [entry.version_id for entry in back.version_log] == [4, 5, 6, 4]


def test_a_dialect_is_dropped_only_where_the_view_allows_it() -> None:
    trino = added(representations=[{"type": "sql", "sql": "SELECT 1", "dialect": "trino"}])
    with pytest.raises(InvalidArgument, match=r"replace\.drop-dialect\.allowed"):
        changed(decoded(), trino)
    allowed = {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}}
    assert changed(decoded(), [allowed, *trino]).current_version().sql == {"trino": "SELECT 1"}


@pytest.mark.parametrize(
    "update",
    [
        {"action": "no-such"},
        {"action": "add-view-version"},
        {"action": "add-view-version", "view-version": {"version-id": 1}},
        {"action": "add-view-version", "view-version": version(**{"schema-id": 9})},
        {"action": "add-view-version", "view-version": version(representations=[])},
        {"action": "set-current-view-version", "view-version-id": 9},
        {"action": "assign-uuid", "uuid": "00000000-0000-0000-0000-000000000000"},
        {"action": "set-properties", "updates": {"a": 1}},
        {"action": "set-location", "location": "relative"},
        "no object",
    ],
)
def test_an_update_that_cannot_be_is_refused(update: Any) -> None:
    with pytest.raises(InvalidArgument):
        changed(decoded(), [update])


def test_updates_and_requirements_are_written_as_they_are_read() -> None:
    given = [
        {"action": "assign-uuid", "uuid": EXAMPLE["view-uuid"]},
        {"action": "upgrade-format-version", "format-version": 1},
        {"action": "add-schema", "schema": {**EXAMPLE["schemas"][0]}},
        {"action": "set-location", "location": "s3://bucket/v"},
        {"action": "set-properties", "updates": {"a": "b"}},
        {"action": "remove-properties", "removals": ["c"]},
        *added(),
    ]
    assert json.loads(json.dumps(view_updates_to_json(view_updates_from_json(given)))) == given
    (requirement,) = view_requirements_from_json([{"type": "assert-view-uuid", "uuid": EXAMPLE["view-uuid"]}])
    assert view_requirements_to_json([requirement]) == [{"type": "assert-view-uuid", "uuid": EXAMPLE["view-uuid"]}]
    requirement.check(decoded())
    with pytest.raises(ValidationFailed):
        requirement.check(None)


def test_a_new_view_has_its_first_schema_and_version_and_the_updates_that_create_it() -> None:
    example = decoded()
    given = replace_version(example.current_version(), version_id=7)
    made = new_view_metadata(example.schema().with_schema_id(5), given, "s3://b/v/", {"a": "b"}, example.view_uuid)
    assert made.view_uuid == example.view_uuid
    assert (made.location, made.format_version, dict(made.properties)) == ("s3://b/v", 1, {"a": "b"})
    assert made.schema() == example.schema().with_schema_id(0)
    assert (made.current_version_id, made.current_version().schema_id) == (7, 0)
    assert [entry.version_id for entry in made.version_log] == [7]
    assert UUID(new_view_metadata(example.schema(), given, "s3://b/v").view_uuid).version == 4
    updates = view_updates_to_json(view_creation_updates(made))
    assert [update["action"] for update in updates] == [
        "assign-uuid", "upgrade-format-version", "set-location", "add-schema", "add-view-version",
        "set-current-view-version", "set-properties",
    ]  # fmt: skip
    assert updates[4]["view-version"]["schema-id"] == -1
    plain = new_view_metadata(example.schema(), given, "s3://b/v")
    assert view_updates_to_json(view_creation_updates(plain))[-1]["action"] == "set-current-view-version"


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_view_keeps_as_many_versions_as_its_property_says_and_the_current_one(kept: int) -> None:
    metadata = decoded(properties={"version.history.num-entries": str(kept)})
    for number in range(2, 6):
        metadata = changed(metadata, added(**{"representations": [query(f"SELECT {number}")]}))
    newest = list(range(5, 5 - kept, -1))
    assert sorted(metadata.versions.positions, reverse=True) == newest
    assert [entry.version_id for entry in metadata.version_log] == newest[::-1]
    again = apply_view_updates(metadata, [SetCurrentViewVersion(newest[-1])])
    assert again.current_version_id == newest[-1]
    assert sorted(again.versions.positions, reverse=True) == newest


@pytest.mark.parametrize("kept", ["0", "-1", "x", "", "\u0663"])
def test_a_number_of_kept_versions_that_is_not_positive_is_refused(kept: str) -> None:
    metadata = decoded(properties={"version.history.num-entries": kept})
    with pytest.raises(InvalidArgument, match="is a positive number"):
        changed(metadata, added(representations=[query("SELECT 2")]))


def query(text: str, dialect: str = "spark") -> dict[str, str]:
    return {"type": "sql", "sql": text, "dialect": dialect}
