"""A file that is listed twice is found, over all manifests of a plan."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import InvalidMetadata
from icefield.manifest import clear_caches
from icefield.scan.planning import duplicates
from icefield.storage.places import path_hashes
from planned_tables import PlannedTable


@pytest.mark.slow
@given(st.lists(st.text(max_size=40), max_size=30), st.integers(0, 3))
def test_hashes_are_equal_for_equal_paths_and_differ_for_others(paths: list[str], skipped: int) -> None:
    hashes = path_hashes(pa.array(paths, pa.string()).slice(skipped)).tolist()
    assert len(hashes) == len(paths[skipped:])
    assert len(set(hashes)) == len(set(paths[skipped:]))
    alone = [path_hashes(pa.array([path], pa.string())).tolist()[0] for path in paths[skipped:]]
    assert alone == hashes


def test_every_byte_of_a_path_counts() -> None:
    path = "s3://bucket/warehouse/dt=2024-01-01/00000-0-abcdef.parquet"
    changed = [path, *(path[:i] + "#" + path[i + 1 :] for i in range(len(path)))]
    changed += [path[:i] for i in range(len(path))]
    assert len(set(path_hashes(pa.array(changed, pa.string())).tolist())) == len(changed)


@pytest.mark.spec("SCAN-26", "MAN-23")
def test_a_path_in_two_manifests_is_refused_by_name() -> None:
    table = PlannedTable()
    table.add([table.file("a"), table.file("b")])
    table.commit()
    table.add([table.file("b"), table.file("c")])
    table.commit()
    for plan in (lambda: table.scan().plan_arrow(), lambda: list(table.scan("id = 1").plan_files())):
        with pytest.raises(InvalidMetadata, match=r"data/b\.parquet is listed twice") as caught:
            plan()
        assert all(m.manifest_path in str(caught.value) for m in table.manifests)


@pytest.mark.spec("SCAN-26")
def test_each_live_file_is_planned_once_and_paths_are_not_checked_again() -> None:
    table = PlannedTable()
    for i in range(5):
        table.add([table.file(f"{i}-{j}") for j in range(4)])
        table.commit()
    clear_caches()
    names = [f"{i}-{j}" for i in range(5) for j in range(4)]
    assert not table.manifest_list().paths_are_distinct
    assert table.planned("id = 3") == names
    assert not table.manifest_list().paths_are_distinct
    assert table.planned() == names
    assert table.manifest_list().paths_are_distinct
    assert table.planned() == names


def test_a_collision_of_hashes_is_no_duplicate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "path_hashes", lambda paths: path_hashes(paths) % 2)
    table = PlannedTable()
    for i in range(3):
        table.add([table.file(f"{i}-{j}") for j in range(4)])
    table.commit()
    assert len(table.planned()) == 12
    table.add([table.file("1-2")])
    table.commit()
    with pytest.raises(InvalidMetadata, match="1-2"):
        table.planned()


def test_a_duplicate_is_found_while_planning_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "_FIRST_CHECK", 4)
    monkeypatch.setattr(duplicates, "_HASHED_AT_ONCE", 4)
    table = PlannedTable()
    for i in range(40):
        table.add([table.file("same" if i in (0, 5) else f"{i}")])
    table.commit()
    planned = []
    with pytest.raises(InvalidMetadata):
        planned.extend(table.scan().plan_files())
    assert len(planned) < 20
