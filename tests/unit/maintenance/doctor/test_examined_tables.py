"""A doctor for tables: it finds and names each planted breach of the specification, and advises a remedy."""

from __future__ import annotations

import ast
import gzip
import inspect
import re
import uuid
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield import clear_caches
from icefield.manifest import manifest_list
from icefield.types import LongType
from icefield_maintenance.doctor import Finding, Ledger, Result, Rule, RuleGroup, Subject, examine_table, repair_table
from icefield_maintenance.doctor.tables import maintenance_checks, rules
from planted_breaches import PLANTED
from planted_faults import Planted


def findings(planted: Planted, **options: Any) -> dict[str, list[Finding]]:
    """The findings about a table that are not OK, by rule."""
    found: dict[str, list[Finding]] = {}
    for group in examine_table(planted.again(), whole=True, **options):
        for finding in group.findings:
            if finding.result not in (Result.OK, Result.SKIPPED):
                found.setdefault(finding.check, []).append(finding)
    return found


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_a_sound_table_has_no_finding(format_version, tmp_path):
    assert findings(Planted.sound(tmp_path, format_version)) == {}


def test_a_sound_table_with_compressed_metadata_has_no_finding(tmp_path):
    planted = Planted.sound(tmp_path)
    planted.metadata.write_bytes(gzip.compress(planted.metadata.read_bytes()))
    assert findings(planted) == {}


def test_numbers_that_are_too_low_are_found_in_compressed_metadata(tmp_path):
    planted = Planted.sound(tmp_path)
    planted.edit_metadata(lambda document: document.update({"last-column-id": 1}))
    planted.metadata.write_bytes(gzip.compress(planted.metadata.read_bytes()))
    assert set(findings(planted)) == {"last-column-id"}


CLAIMS = [
    "a manifest that is longer than its list says",
    "a wrong count of files",
    "a least sequence number above a file's",
    "a partition outside of its summary",
]


@pytest.mark.parametrize("name", CLAIMS)
@pytest.mark.parametrize("add", ["create_tag", "create_branch"])
def test_a_list_of_main_that_lies_is_found_though_another_head_lists_the_same_manifest_truly(name, add, tmp_path):
    _, plant, rule = PLANTED[name]
    planted = Planted.sound(tmp_path)
    first = planted.table.snapshots()[0].snapshot_id
    with planted.table.manage_snapshots() as refs:
        getattr(refs, add)(first, "kept")
    listed = planted.table.inspect.manifests(snapshot_id=first)["path"].to_pylist()
    assert listed == [f"file://{planted.manifest()}"]
    plant(planted)
    assert rule in findings(planted)


ENTRIES = [
    "a data file of another size",
    "a wrong record count",
    "an upper bound below a value",
    "a wrong count of nulls",
    "rows of another partition",
]


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_of_main_that_lies_is_found_though_a_tag_has_a_true_one_of_the_same_file(name, tmp_path):
    _, plant, rule = PLANTED[name]
    planted = Planted.sound(tmp_path)
    with planted.table.manage_snapshots() as refs:
        refs.create_tag(planted.table.metadata.current_snapshot_id, "kept")
    planted.table.maintenance.rewrite_manifests()
    assert findings(planted) == {}
    plant(planted)
    clear_caches()
    assert rule in findings(planted)


def test_a_manifest_that_is_gone_makes_no_other_finding(tmp_path):
    planted = Planted.sound(tmp_path)
    planted.manifest().unlink()
    assert set(findings(planted)) == {"manifest-files"}


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_a_partition_field_whose_column_is_in_no_schema_any_more_has_no_finding(format_version, tmp_path):
    planted = Planted.sound(tmp_path, format_version)
    with planted.table.update_spec() as spec:
        spec.remove_field("kind")
    with planted.table.update_schema() as schema:
        schema.delete_column("kind")
    current = planted.table.schema().schema_id

    def forget(document: dict[str, Any]) -> None:
        document["schemas"] = [each for each in document["schemas"] if each["schema-id"] == current]
        for snapshot in document["snapshots"]:
            snapshot["schema-id"] = current

    planted.edit_metadata(forget)
    assert findings(planted) == {}


def test_an_error_that_a_group_of_checks_lets_out_is_a_finding_beside_what_it_found_before(tmp_path, monkeypatch):
    def broken(subject: Subject, ledger: Ledger) -> None:
        ledger.breach(rules.SMALL_FILES, "file:///small", "seen before")
        raise ValueError("not of Icefield")

    replaced = RuleGroup(maintenance_checks.RULES.rules, broken)
    monkeypatch.setattr(maintenance_checks, "RULES", replaced)
    planted = Planted.sound(tmp_path)
    found = findings(planted)
    assert set(found) == {"small-files", "maintenance"}
    assert (found["maintenance"][0].result, found["maintenance"][0].found) == (
        Result.FAILED,
        "ValueError: not of Icefield",
    )
    *_, maintenance = examine_table(planted.again())
    assert {finding.check for finding in maintenance.findings} == set(found), "what it did not come to is called sound"
    assert repair_table(planted.again()).left


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_breach_is_found_with_its_file_and_what_to_do(name, tmp_path):
    made, plant, rule = PLANTED[name]
    planted = Planted.sound(tmp_path, **made)
    plant(planted)
    before = {path: path.read_bytes() for path in Path(tmp_path).rglob("*") if path.is_file()}
    found = findings(planted)
    assert rule in found, found
    for finding in found[rule]:
        assert finding.location
        assert finding.advice
        assert finding.section
    assert {path: path.read_bytes() for path in Path(tmp_path).rglob("*") if path.is_file()} == before


def test_no_rule_is_without_a_planted_breach_but_those_of_maintenance(tmp_path):
    rules = {finding.check for group in examine_table(Planted.sound(tmp_path).table) for finding in group.findings}
    maintenance = {"small-files", "delete-debt", "small-manifests", "old-snapshots", "unfinished-expiry"}
    assert {rule for _, _, rule in PLANTED.values()} == rules - maintenance


def test_deletes_that_can_be_read_are_sound_whatever_their_format_and_kind(tmp_path):
    planted = Planted.sound(tmp_path)
    table = planted.table
    table.append(pa.table({"id": pa.array([20, 21], pa.int64()), "kind": ["a", "a"], "value": [0.5, 1.5]}))
    for file_format in ("parquet", "avro"):
        table.set_properties({"write.delete.format.default": file_format})
        table.delete_by_equality(pa.table({"id": pa.array([21], pa.int64()), "kind": ["a"]}), ["id"])
    with table.update_schema() as update:
        update.add_column("other", LongType())
    table.delete_by_equality(pa.table({"other": pa.array([7], pa.int64()), "kind": ["a"]}), ["other"])
    with table.update_schema() as update:
        update.delete_column("other")
    assert table.inspect.delete_files().num_rows == 4
    assert set(findings(planted)) <= {"delete-debt"}


def test_each_of_several_vectors_in_one_file_is_read(tmp_path):
    planted = Planted.sound(tmp_path, 3)
    planted.table.maintenance.rewrite_data_files(rewrite_all=True, remove_dangling_deletes=True)
    planted.table.maintenance.rewrite_manifests()
    planted.table.delete("id in (4, 5)")

    def edit(records: list[dict[str, Any]]) -> None:
        first, last = (record["data_file"] for record in records)
        assert first["file_path"] == last["file_path"]
        last["record_count"] = 9

    planted.edit_manifest(edit, content=1)
    assert "vectors-damaged" in findings(planted)


def rules_that_there_are():
    return {name: rule for name, rule in vars(rules).items() if isinstance(rule, Rule)}


def test_every_rule_is_looked_at(tmp_path):
    looked_at = {finding.check for group in examine_table(Planted.sound(tmp_path).table) for finding in group.findings}
    assert {rule.name for rule in rules_that_there_are().values()} == looked_at


def test_every_call_that_an_advice_names_is_there_and_takes_what_is_given_to_it(tmp_path):
    table = Planted.sound(tmp_path).table
    for rule in rules_that_there_are().values():
        for call in re.findall("`([^`]*)`", rule.advice):
            parsed = ast.parse(call, mode="eval").body
            assert isinstance(parsed, ast.Call), f"{rule.name}: `{call}` is no call"
            found = eval(compile(ast.Expression(parsed.func), rule.name, "eval"), {"table": table})
            given = {str(word.arg): None for word in parsed.keywords}
            inspect.signature(found).bind(*parsed.args, **given)


@pytest.mark.parametrize(("column", "direction"), [("at", "asc"), ("key", "desc")])
def test_no_file_that_was_sorted_here_is_found_unsorted(column, direction, tmp_path):
    catalog = icefield.load_catalog("sorted", type="directory", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    keys = pa.array([uuid.UUID(int=number).bytes for number in (3, 9, 1, 1, 7)], pa.uuid())
    rows = pa.table({"at": [0.0, None, -0.0, float("nan"), float("-inf")], "key": keys})
    table = catalog.create_table("db.t", rows.schema)
    with table.update_sort_order() as update:
        getattr(update, direction)(column, null_order="nulls-last")
    table.append(rows)
    table.maintenance.rewrite_data_files("sort", rewrite_all=True)
    assert table.inspect.data_files()["sort_order_id"].to_pylist() == [1]
    assert findings(Planted(table)) == {}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garble(path: Path) -> None:
    path.write_bytes(b"no Avro " * (path.stat().st_size // 8))


@pytest.mark.parametrize("harm", [cut, garble, Path.unlink])
@pytest.mark.parametrize("position", [0, -1])
@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_a_list_that_cannot_be_read_is_found_in_every_snapshot_and_alone(format_version, position, harm, tmp_path):
    planted = Planted.sound(tmp_path, format_version)
    snapshot = planted.table.snapshots()[position]
    harm(Path(snapshot.manifest_list.removeprefix("file://")))
    clear_caches()
    found = findings(planted)
    assert set(found) == {"manifest-lists"}
    (finding,) = found["manifest-lists"]
    assert finding.location == snapshot.manifest_list
    assert str(snapshot.snapshot_id) in finding.found


def test_each_list_is_decoded_once(tmp_path, monkeypatch):
    planted = Planted.sound(tmp_path)
    clear_caches()
    decode, decoded = manifest_list._decode, []

    def noted(*given: Any) -> Any:
        decoded.append(given[2])
        return decode(*given)

    monkeypatch.setattr(manifest_list, "_decode", noted)
    assert findings(planted) == {}
    assert sorted(decoded) == sorted(snapshot.manifest_list for snapshot in planted.table.snapshots())


def partitioned_by_a_float(folder: Path, values: list[float | None]) -> Planted:
    catalog = icefield.load_catalog("floats", type="directory", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    rows = pa.table({"value": pa.array(values, pa.float64())})
    table = catalog.create_table("db.t", rows.schema)
    with table.update_spec() as spec:
        spec.add_identity("value")
    table.append(rows)
    return Planted(table)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, None),
        ({"contains_nan": None}, None),
        ({"contains_nan": False}, "has NaN"),
        ({"lower_bound": None}, "does not say which is the least"),
        ({"upper_bound": None}, "does not say which is the greatest"),
    ],
)
def test_a_list_that_hides_values_or_nan_of_a_partition_field_is_found(said, words, tmp_path):
    planted = partitioned_by_a_float(tmp_path, [float("nan"), None, 1.5])
    planted.edit_list(lambda records: records[0]["partitions"][0].update(said))
    clear_caches()
    found = findings(planted)
    assert set(found) == ({"manifest-partitions"} if words else set())
    assert all(words in finding.found for finding in found.get("manifest-partitions", []))


def test_a_partition_field_of_nulls_and_nan_alone_needs_no_bounds(tmp_path):
    assert findings(partitioned_by_a_float(tmp_path, [float("nan"), None])) == {}


@pytest.mark.parametrize("stated", ["many", "-1", "9" * 10_000])
def test_a_total_that_is_no_number_to_engines_is_not_judged(stated, tmp_path):
    planted = Planted.sound(tmp_path)
    planted.edit_metadata(lambda document: document["snapshots"][-1]["summary"].update({"total-records": stated}))
    assert findings(planted) == {}


@pytest.mark.parametrize("beside", [0, 7])
def test_the_size_of_a_vector_may_count_as_its_own_or_as_that_of_its_file(beside, tmp_path):
    planted = Planted.sound(tmp_path, 3)
    (vector,) = planted.table.inspect.delete_files().to_pylist()
    larger = vector["file_size_in_bytes"] - vector["content_size_in_bytes"]
    assert larger > 0

    def edit(document: dict[str, Any]) -> None:
        summary = document["snapshots"][-1]["summary"]
        summary["total-files-size"] = str(int(summary["total-files-size"]) + larger + beside)

    planted.edit_metadata(edit)
    assert set(findings(planted)) == ({"snapshot-totals"} if beside else set())


def test_a_next_row_id_right_behind_the_last_row_is_sound_and_one_below_is_not(tmp_path):
    planted = Planted.sound(tmp_path, 3)
    end = planted.table.metadata.next_row_id
    first = planted.table.inspect.data_files().sort_by("first_row_id").to_pylist()[-1]
    assert first["first_row_id"] + first["record_count"] == end

    def edit(document: dict[str, Any]) -> None:
        document["next-row-id"] = end - 1
        for snapshot in document["snapshots"]:
            snapshot["added-rows"] = 0

    assert findings(planted) == {}
    planted.edit_metadata(edit)
    found = findings(planted)
    assert set(found) == {"next-row-id"}
    assert f"ids up to {end}" in found["next-row-id"][0].found


def test_a_first_row_id_near_the_greatest_number_is_found(tmp_path):
    planted = Planted.sound(tmp_path, 3)
    planted.edit_manifest(lambda records: records[0]["data_file"].update(first_row_id=2**63 - 1))
    clear_caches()
    (finding,) = findings(planted)["next-row-id"]
    assert int(finding.found.rsplit(" ", 1)[-1]) > 2**63 - 1


def test_an_unknown_source_of_a_partition_field_is_named_and_nothing_is_said_of_its_name(tmp_path):
    planted = Planted.sound(tmp_path)
    PLANTED["a partition field of a column that is in no schema"][1](planted)
    found = findings(planted)
    assert "partition-names" not in found
    assert found["partition-sources"][0].found == (
        "partition field 'kind' of spec 1 is of column 99, which no schema of the table has"
    )


def lose_sources_of_older(planted: Planted, kind: str, default: str) -> None:
    """Make all specs or sort orders except the default refer to a column that is in no schema."""

    def edit(document):
        for each in document[kind]:
            if each[default.removeprefix("sort-")] != document[f"default-{default}"]:
                for field in each["fields"]:
                    field["source-id"] = 99

    planted.edit_metadata(edit)


def test_an_older_spec_of_an_unknown_source_has_no_finding_but_for_a_name_that_a_column_has(tmp_path):
    planted = Planted.sound(tmp_path)
    with planted.table.update_spec() as spec:
        spec.remove_field("kind")
    lose_sources_of_older(planted, "partition-specs", "spec-id")
    found = findings(planted)
    assert "partition-sources" not in found
    assert found["partition-names"][0].found == (
        "partition field 'kind' of spec 1 has the name of a column, and is of column 99, "
        "which no schema of the table has"
    )


def test_an_older_sort_order_of_an_unknown_column_has_no_finding(tmp_path):
    planted = Planted.sound(tmp_path)
    with planted.table.update_sort_order() as order:
        order.asc("value")
    lose_sources_of_older(planted, "sort-orders", "sort-order-id")
    assert "sort-order-sources" not in findings(planted)


def test_a_snapshot_of_version_1_needs_no_summary_also_after_an_upgrade(tmp_path):
    planted = Planted.sound(tmp_path, 1)

    def edit(document: dict[str, Any]) -> None:
        for snapshot in document["snapshots"]:
            snapshot.pop("summary")

    planted.edit_metadata(edit)
    assert findings(planted) == {}
    planted = Planted(planted.loaded())
    with planted.table.transaction() as tx:
        tx.upgrade_table_version(2)
    assert findings(planted) == {}
