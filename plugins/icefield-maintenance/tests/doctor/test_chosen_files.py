"""The files that the doctor reads, on random histories: equal to plain lists and sets of manifest entries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield import Table
from icefield.errors import IcefieldError
from icefield.manifest import DataFile, DataFileContent, EntryStatus
from icefield.storage import path_hashes
from icefield_maintenance.doctor import Subject
from icefield_maintenance.doctor.tables.row_counts import RowCounts
from icefield_maintenance.doctor.tables.subject import is_data, is_delete_file, is_vector
from tables import entries, manifests, memory_catalog, new_table, rows

STEPS = ("append", "again", "delete", "keys", "branch", "tag", "manifests", "upgrade")


def changed(table: Table, step: str, number: int, ref: str) -> None:
    """Make one change; a change that is refused changes nothing."""
    try:
        if step == "append":
            table.append(rows([number, number + 10], "ab"[number % 2]), branch=ref)
        elif step == "again":
            path = table.inspect.files()["file_path"].to_pylist()[0]
            table.add_files([path], check_duplicate_files=False)
        elif step == "delete":
            table.delete(f"id = {number}", branch=ref)
        elif step == "keys":
            table.delete_by_equality(pa.table({"id": [number]}), ["id"], branch=ref)
        elif step == "branch":
            table.manage_snapshots().create_branch(table.snapshots()[-1].snapshot_id, "b").commit()
        elif step == "tag":
            table.manage_snapshots().create_tag(table.snapshots()[number % 3].snapshot_id, f"t{number}").commit()
        elif step == "manifests":
            table.maintenance.rewrite_manifests()
        else:
            with table.transaction() as tx:
                tx.upgrade_table_version(3)
    except (IcefieldError, IndexError):
        table.refresh()


def listed(table: Table, subject: Subject) -> list[DataFile]:
    """Every distinct live entry of the heads, without row ids, in the order of the manifests."""
    found: list[DataFile] = []
    seen: set[str] = set()
    for head in subject.heads():
        for manifest in manifests(table, head):
            if manifest.manifest_path in seen:
                continue
            seen.add(manifest.manifest_path)
            part = entries(table, manifest)
            for file, status in zip(part.data_files(), part.status().tolist(), strict=True):
                plain = replace(file, first_row_id=None)
                if status != EntryStatus.DELETED and plain not in found:
                    found.append(plain)
    return found


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9), st.sampled_from(["main", "b"])), max_size=9),
    st.integers(0, 5),
    st.sampled_from(["2", "3"]),
)
@settings(max_examples=40, deadline=None)
def test_the_chosen_files_are_those_of_plain_lists(history, most, version):
    properties = {"format-version": version, "write.delete.mode": "merge-on-read"}
    table = new_table(["kind"], catalog=memory_catalog(), **properties)
    table.append(rows(range(4)))
    for step in history:
        changed(table, *step)
    subject = Subject(table.metadata, table.io, table.metadata_location)
    every = listed(table, subject)
    kinds = {
        is_data: [file for file in every if file.content is DataFileContent.DATA],
        is_vector: [file for file in every if file.is_deletion_vector],
        is_delete_file: [
            file for file in every if file.content is not DataFileContent.DATA and not file.is_deletion_vector
        ],
    }
    for kind, expected in kinds.items():
        found = [replace(file, first_row_id=None) for file in subject.files(kind)]
        assert sorted(found, key=repr) == sorted(expected, key=repr)
        names = [*dict.fromkeys((file.file_path, file.content_offset) for file in expected)]
        chosen = dict.fromkeys((file.file_path, file.content_offset) for file in subject.files(kind, most))
        assert len(chosen) == min(most, len(names))
        assert set(chosen) <= set(names)
        if most > 1 and names:
            assert {names[0], names[-1]} <= set(chosen)
    assert {file.file_path for file in subject.data_files()} == {file.file_path for file in kinds[is_data]}


@given(st.lists(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 3)), max_size=5), max_size=4))
def test_the_row_count_of_a_data_file_is_that_of_its_first_entry(parts):
    counts, expected = RowCounts(), {}
    for part in parts:
        for path, count in part:
            expected.setdefault(path, count)
        paths = pa.array([path for path, _ in part], pa.string())
        counts.add(path_hashes(paths), np.array([count for _, count in part], np.int64))
        assert counts.find(list("abcdefg")).tolist() == [expected.get(path, -1) for path in "abcdefg"]
