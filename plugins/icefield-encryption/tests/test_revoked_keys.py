"""A master key that was revoked: what a process reads from its caches, and for how long."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from encrypted_tables import MASTER, catalog_in, clear_caches, ids, new_table, rows
from icefield.errors import AccessDenied
from icefield.scan import read_tasks
from icefield_encryption import standard
from icefield_encryption.local_keystore import LocalKeystore

USES: dict[str, Callable] = {
    "scan": lambda table: table.scan().to_arrow(),
    "count": lambda table: table.scan().count(),
    "files": lambda table: table.inspect.files(),
    "partition statistics": lambda table: table.inspect.partition_statistics(),
    "append": lambda table: table.append(rows(900, 1)),
    "delete": lambda table: table.delete("id = 1"),
    "changes": lambda table: table.incremental_changelog_scan().to_arrow(),
}


@pytest.fixture
def table(tmp_path):
    made = new_table(catalog_in(tmp_path))
    made.append(rows(0))
    made.append(rows(100))
    made.maintenance.compute_partition_stats()
    made.refresh()
    assert len(made.scan().to_arrow()) == 200  # all caches are filled
    return made


@pytest.fixture
def revoked(monkeypatch):
    """The service denies the master key."""

    def denied(self, *given):
        raise AccessDenied(f"the master key '{MASTER}' is disabled")

    for name in ("wrap", "unwrap", "master_key"):
        monkeypatch.setattr(LocalKeystore, name, denied)


def later(monkeypatch, seconds):
    begin = time.monotonic()
    monkeypatch.setattr(standard.time, "monotonic", lambda: begin + seconds)


@pytest.mark.parametrize("use", USES)
def test_a_revoked_key_opens_nothing_after_the_life_of_cached_keys_whatever_is_cached(table, revoked, monkeypatch, use):
    later(monkeypatch, LocalKeystore.key_life_seconds - 60)
    USES[use](table)  # the key of the process is still valid
    later(monkeypatch, LocalKeystore.key_life_seconds + 60)
    with pytest.raises(AccessDenied, match="disabled"):
        USES[use](table)
    clear_caches()
    with pytest.raises(AccessDenied, match="disabled"):
        USES[use](table)


def test_a_process_that_begins_after_the_revocation_reads_nothing(table, revoked, tmp_path):
    clear_caches()
    with pytest.raises(AccessDenied):
        catalog_in(tmp_path).load_table("db.t").scan().to_arrow()


def test_tasks_that_were_planned_before_are_read_and_the_table_again_when_the_key_is_back(table, revoked, monkeypatch):
    tasks, context = list(table.scan().plan_files()), table.scan().context
    later(monkeypatch, LocalKeystore.key_life_seconds + 60)
    assert sum(map(len, read_tasks(tasks, context))) == 200  # a task holds the keys of its files
    with pytest.raises(AccessDenied):
        table.scan().to_arrow()
    monkeypatch.undo()
    assert ids(table) == [*range(200)]
