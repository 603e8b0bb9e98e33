"""Many processes commit to a table on HDFS; and a rename that replaces, which must be found out."""

from __future__ import annotations

from uuid import uuid4

import many_writers
import pytest
from icefield import Plugins
from icefield.abc import CommitStrategy, FileSystem
from icefield_hdfs.hadoop_file_system import path_of
from icefield_hdfs.hdfs_file_system import HdfsFileSystem
from icefield_testing import CommitStrategySuite, FileSystemSuite
from many_writers import COMMITS, PROCESSES
from servers.hdfs import Hdfs, read_around, write_around


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.spec("COMMIT-01", "COMMIT-03", "COMMIT-07", "COMMIT-13", "FS-09", "FS-13", "META-01")
def test_no_commit_of_many_processes_is_lost(hdfs: Hdfs) -> None:
    catalog = {"type": "directory", "warehouse": f"{hdfs.url}/{uuid4().hex}", "commit": "rename"}
    table, ended = many_writers.race(catalog, PROCESSES, COMMITS)
    assert ended == [0] * PROCESSES
    assert many_writers.lost(table, PROCESSES, COMMITS) == set()
    many_writers.check_history(table, PROCESSES * COMMITS)


class Replacing(HdfsFileSystem):
    """A plugin whose renames replace what is there."""

    def rename(self, source: str, target: str) -> None:
        with self.translated(source, target):
            self.client(source).replace(path_of(source), path_of(target))


class OnReplacing(FileSystemSuite):
    """Raw helpers for the checks."""

    def __init__(self, hdfs: Hdfs) -> None:
        self.hdfs = hdfs

    def raw_get(self, location: str) -> bytes | None:
        return read_around(self.hdfs, path_of(location))

    def raw_put(self, location: str, data: bytes) -> None:
        write_around(self.hdfs, path_of(location), data)


def test_the_kit_finds_that_a_rename_replaces(hdfs: Hdfs) -> None:
    suite, system = OnReplacing(hdfs), Replacing()
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        suite.test_renaming_moves_and_refuses_a_taken_name(system, f"{hdfs.url}/{uuid4().hex}")
    with pytest.raises(AssertionError):
        suite.test_one_of_many_renamers_wins(system, f"{hdfs.url}/{uuid4().hex}")


class OnReplacingRenames(CommitStrategySuite):
    """The commits of that plugin."""

    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return Plugins.installed().commit_strategy("rename")(("db", "t"), location, file_system)


def test_the_kit_finds_updates_that_such_renames_lose(hdfs: Hdfs) -> None:
    with pytest.raises(AssertionError):
        OnReplacingRenames().test_no_update_of_many_writers_is_lost(Replacing(), f"{hdfs.url}/{uuid4().hex}/db/t")
