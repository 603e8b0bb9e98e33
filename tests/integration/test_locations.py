"""Tables of one catalog whose locations meet: whatever is done to one, no other loses a file."""

from __future__ import annotations

from uuid import uuid4

import pytest
from icefield import Catalog, load_catalog
from icefield.builtin.memory import MemoryFileSystem
from location_life import FilesInMemory, LocationLife, kinds

STEPS = 14
FEW, MANY = 16, 2_000
DONE = ("create", "append", "orphans", "expire", "drop", "purge", "refused")


def in_memory(kind: str) -> tuple[Catalog, FilesInMemory]:
    root = f"memory://{uuid4().hex}"
    given = {"type": "directory", "warehouse": f"{root}/wh"}
    if kind == "sql":
        given = {"type": "sql", "uri": "sqlite://", "warehouse": f"{root}/wh"}
    return load_catalog("lives", **given), FilesInMemory(root)


def lives_in_memory(kind: str, seeds: range, steps: int = STEPS) -> dict[str, int]:
    lives = []
    for seed in seeds:
        catalog, files = in_memory(kind)
        with catalog:
            life = LocationLife(catalog, files, seed)
            life.live(steps)
            lives.append(life)
        for each in files.all():
            del MemoryFileSystem.files[each]
    return kinds(lives)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sql", "directory"])
def test_no_table_loses_a_file_that_another_operation_had_no_right_to_delete(kind):
    done = lives_in_memory(kind, range(FEW))
    assert done.keys() >= set(DONE), done


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["sql", "directory"])
def test_no_table_loses_a_file_in_two_thousand_lives(kind):
    lives_in_memory(kind, range(FEW, FEW + MANY))
