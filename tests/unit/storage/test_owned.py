"""Files that a table owns, however their locations are written."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from icefield import Plugins
from icefield.storage import FileIO, OwnedFiles
from icefield.storage.deleting import delete_files


@pytest.fixture
def io() -> FileIO:
    return FileIO(Plugins.installed())


def test_files_are_owned_below_folders_that_are_deep_enough(io: FileIO) -> None:
    below = ["memory://w/db/t", "memory://w/db", "memory://w/other/t", "memory://w/db/t2/"]
    owned = OwnedFiles(io, below, ["memory://w/db"], ["memory://w/db/t/inner/"])
    mine = ["memory://w/db/t/a", "memory://w/db/t2/b/c"]
    others = [
        "memory://w/db/t/inner/a",
        "memory://w/db/tt/a",
        "memory://w/db/t",
        "memory://w/other/t/a",
        "memory://w/db/a",
        "memory://w/db/t/../../other/a",
        "memory://x/db/t/a",
        "file:///w/db/t/a",
        "",
    ]
    assert owned.of([*mine, *others]) == mine
    assert owned.of([]) == []


def test_links_and_dots_lead_where_they_lead(io: FileIO, tmp_path: Path) -> None:
    for name in ("db/t", "db/u"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "db/t/link").symlink_to(tmp_path / "db/u")
    owned = OwnedFiles(io, [f"file://{tmp_path}/db/t"], [str(tmp_path / "db")], [f"file:{tmp_path}/db/u"])
    mine = [f"{tmp_path}/db/t/a", f"file:{tmp_path}/db/./t//a", f"file://{tmp_path}/db/u/../t/a"]
    others = [f"{tmp_path}/db/t/link/a", f"file://{tmp_path}/db/t/../u/a"]
    assert owned.of([*mine, *others]) == mine


def test_schemes_of_one_store_are_one(io: FileIO) -> None:
    owned = OwnedFiles(io, ["s3a://w/db/t"], ["s3://w/db"], ["s3n://w/db/t/u"])
    assert owned.of(["s3://w/db/t/a", "s3a://w/db/t/u/a"]) == ["s3://w/db/t/a"]


def test_what_may_not_be_deleted_stays_and_is_no_failure(io: FileIO, caplog: pytest.LogCaptureFixture) -> None:
    for name in "ab":
        with io.open_output(f"memory://deletions/{name}") as sink:
            sink.write(b"x")
    limited = io.deleting_only(lambda locations: [each for each in locations if each.endswith("a")])
    for same in (limited, limited.relative_to("memory://deletions"), limited.for_table(None, {"some": "property"})):
        assert delete_files(same, (f"memory://deletions/{name}" for name in "ab")) == 0
    assert [io.exists(f"memory://deletions/{name}") for name in "ab"] == [False, True]
    assert "1 files stay" in caplog.text
    with pytest.raises(TypeError, match="stays in its process"):
        pickle.dumps(limited)
    assert delete_files(io, ["memory://deletions/b"]) == 0
    assert not io.exists("memory://deletions/b")
