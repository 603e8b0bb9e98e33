"""Files below some folders, however their locations are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from icefield import FileIO, Plugins
from icefield_rest_server.owned_folders import OwnedFiles


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
