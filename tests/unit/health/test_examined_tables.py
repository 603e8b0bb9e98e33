"""A doctor for tables: each planted breach of the specification is found, named, and told what would mend it."""

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
from icefield.health import Finding, Result
from icefield.health.tables import examine, examine_table, repair_table, rules
from icefield.health.tables.ledger import Ledger
from icefield.health.tables.rules import Rule
from icefield.health.tables.subject import Subject
from icefield.manifest import clear_caches
from icefield.types import LongType
from planted_breaches import PLANTED
from planted_faults import Planted


def findings(planted: Planted, **options: Any) -> dict[str, list[Finding]]:
    """What is wrong with a table, by rule."""
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

    monkeypatch.setattr(examine, "GROUPS", {**examine.GROUPS, "upkeep": (examine.GROUPS["upkeep"][0], broken)})
    planted = Planted.sound(tmp_path)
    found = findings(planted)
    assert set(found) == {"small-files", "upkeep"}
    assert (found["upkeep"][0].result, found["upkeep"][0].found) == (Result.FAILED, "ValueError: not of Icefield")
    *_, upkeep = examine_table(planted.again())
    assert {finding.check for finding in upkeep.findings} == set(found), "what it did not come to is called sound"
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


def test_no_rule_is_without_a_planted_breach_but_those_of_upkeep(tmp_path):
    rules = {finding.check for group in examine_table(Planted.sound(tmp_path).table) for finding in group.findings}
    upkeep = {"small-files", "delete-debt", "small-manifests", "old-snapshots", "unfinished-expiry"}
    assert {rule for _, _, rule in PLANTED.values()} == rules - upkeep


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
