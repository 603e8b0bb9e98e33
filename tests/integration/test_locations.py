"""Tables of one catalog whose locations meet: no step costs another table a file or a row."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from icefield import Catalog, load_catalog
from icefield.builtin.memory import MemoryFileSystem
from icefield_rest_server import app
from location_judge import Files, FilesInMemory, FilesOnDisk
from location_life import LocationLife
from rest_served import served
from servers.hive import drop_databases

STEPS = 18
LIVES = 500 if os.environ.get("ICEFIELD_SOAK") else 16
ON_SERVERS = 500 if os.environ.get("ICEFIELD_SOAK") else 8
DONE = ("create", "append", "delete", "orphans", "expire", "drop", "purge", "register", "refused")
WAITS = {"iceberg.hive.lock-check-min-wait-ms": "5", "iceberg.hive.lock-check-max-wait-ms": "50"}


def lived(catalog: Catalog, files: Files, seed: int) -> LocationLife:
    """Live a whole life, and read every snapshot again at its end."""
    life = LocationLife(catalog, files, seed).live(STEPS)
    for _ in life.judge.judge_the_end():
        pass
    return life


def check_that_much_happened(lives: list[LocationLife]) -> None:
    """Check that the lives deleted enough files and that not most steps were refused; otherwise they prove nothing."""
    done = sum((life.done for life in lives), Counter[str]())
    deleted = sum((life.judge.deleted for life in lives), Counter[str]())
    print(f"{len(lives)} lives: {dict(done)}; files deleted: {dict(deleted)}")
    assert done.keys() >= set(DONE), done
    assert deleted["purge"] > len(lives) / 4
    assert deleted["expire"] + deleted["compact"] > len(lives) / 4
    assert done["refused"] < done.total() / 2


def in_memory(kind: str, seed: int) -> LocationLife:
    root = f"memory://{uuid4().hex}"
    given = {"uri": "sqlite://"} if kind == "sql" else {}
    files = FilesInMemory(root)
    with load_catalog("lives", type=kind, warehouse=f"{root}/wh", **given) as catalog:
        life = lived(catalog, files, seed)
    for each in files.all():
        del MemoryFileSystem.files[each]
    return life


@contextmanager
def over_rest(folder: Path) -> Iterator[Catalog]:
    uri, warehouse = f"sqlite:///{folder}/catalog.db", f"file://{folder}/files/wh"
    with (
        load_catalog("served", type="sql", uri=uri, warehouse=warehouse) as behind,
        served(app(behind)) as address,
        load_catalog("lives", type="rest", uri=address) as catalog,
    ):
        yield catalog


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sql", "directory"])
def test_no_table_loses_a_file_that_another_operation_had_no_right_to_delete(kind: str) -> None:
    check_that_much_happened([in_memory(kind, seed) for seed in range(LIVES)])


@pytest.mark.counted
@pytest.mark.slow
def test_no_table_of_a_rest_service_loses_a_file_that_another_operation_had_no_right_to_delete(tmp_path: Path) -> None:
    lives = []
    for seed in range(ON_SERVERS):
        folder = tmp_path / str(seed)
        (folder / "files").mkdir(parents=True)
        with over_rest(folder) as catalog:
            lives.append(lived(catalog, FilesOnDisk(folder / "files"), seed))
    check_that_much_happened(lives)


@pytest.mark.counted
def test_no_table_of_a_hive_metastore_loses_a_file_that_another_operation_had_no_right_to_delete(
    hive: str, tmp_path: Path
) -> None:
    lives = []
    for seed in range(ON_SERVERS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        drop_databases(hive)
        with load_catalog("lives", type="hive", uri=hive, warehouse=f"file://{folder}/wh", **WAITS) as catalog:
            lives.append(lived(catalog, FilesOnDisk(folder), seed))
    check_that_much_happened(lives)
