"""Metadata files: their names, their log, and the properties that say how they are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from icefield import Catalog, Table
from icefield.errors import UnsupportedFeature
from icefield.toolkit import version_of

from icefield_testing.behaviour.base import BehaviourChecks, ids, rows

_GZIP = b"\x1f\x8b"


class FileChecks(BehaviourChecks):
    """Checks of metadata files."""

    def test_every_commit_is_a_metadata_file_of_its_own(self, catalog: Catalog) -> None:
        """If this fails, a metadata file is overwritten, and readers of the old version read the new one."""
        table = self.create(catalog)
        seen = {table.metadata_location: catalog.io.read(table.metadata_location)}
        for number in range(3):
            table.append(rows([number]))
            assert table.metadata_location not in seen
            seen[table.metadata_location] = catalog.io.read(table.metadata_location)
        assert {location: catalog.io.read(location) for location in seen} == seen

    def test_the_log_names_the_versions_before(self, catalog: Catalog) -> None:
        """If this fails, the metadata log skips a version, or names files that are not there."""
        table = self.create(catalog)
        locations = []
        for number in range(3):
            locations.append(table.metadata_location)
            table.append(rows([number]))
        log = self.held_again(catalog, table).metadata.metadata_log
        assert [entry.metadata_file for entry in log] == locations
        assert all(catalog.io.exists(entry.metadata_file) for entry in log)

    def test_the_log_is_as_long_as_the_table_wants(self, catalog: Catalog) -> None:
        """If this fails, ``write.metadata.previous-versions-max`` is not honoured."""
        table = self.create(catalog, **{"write.metadata.previous-versions-max": "2"})
        for number in range(5):
            table.append(rows([number]))
        assert len(self.held_again(catalog, table).metadata.metadata_log) == 2

    def test_metadata_is_compressed_only_where_a_pointer_names_it(self, catalog: Catalog) -> None:
        """If this fails, a version of a file-system table has two names, or a metastore ignores the property."""
        wanted = {"write.metadata.compression-codec": "gzip"}
        if not self.is_metastore(catalog):
            self._check_refused(catalog, self.create(catalog), wanted)
            return
        table = self.create(catalog, **wanted)
        table.append(rows([1]))
        assert catalog.io.read(table.metadata_location)[:2] == _GZIP
        assert table.metadata_location.endswith(".gz.metadata.json")
        assert ids(self.held_again(catalog, table)) == [1]
        self.held_again(catalog, table).append(rows([2]))
        assert ids(table.refresh()) == [1, 2]

    def test_old_metadata_is_deleted_where_that_is_safe_and_refused_elsewhere(self, catalog: Catalog) -> None:
        """If this fails, a file-system table frees names of versions, or a metastore leaves old files for ever."""
        table = self.create(catalog)
        wanted = {
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "1",
        }
        if not self.is_metastore(catalog):
            self._check_refused(catalog, table, wanted)
            return
        table.set_properties(wanted)
        for number in range(4):
            table.append(rows([number]))
        found = self.held_again(catalog, table)
        kept = {found.metadata_location, *(entry.metadata_file for entry in found.metadata.metadata_log)}
        stored = {at for at in self.files(catalog, table.location()) if at.endswith(".metadata.json")}
        # Files from before the property was set were in the log at that time, and have left it since.
        assert stored == kept
        assert len(kept) == 2
        assert ids(found) == [0, 1, 2, 3]

    def test_another_folder_for_metadata_is_used_where_that_is_safe_and_refused_elsewhere(
        self, catalog: Catalog
    ) -> None:
        """If this fails, ``write.metadata.path`` is ignored, or a file-system table loses itself."""
        table = self.create(catalog)
        folder = f"{table.location()}/elsewhere"
        if not self.is_metastore(catalog):
            self._check_refused(catalog, table, {"write.metadata.path": folder})
            return
        table.set_properties({"write.metadata.path": folder})
        table.append(rows([1]))
        assert table.metadata_location.startswith(f"{folder}/")
        assert ids(self.held_again(catalog, table)) == [1]

    def test_another_folder_for_data_is_used(self, catalog: Catalog) -> None:
        """If this fails, ``write.data.path`` is ignored."""
        table = self.create(catalog)
        folder = f"{table.location()}/rows"
        table.set_properties({"write.data.path": folder})
        table.append(rows([1]))
        found = self.held_again(catalog, table)
        assert [at.startswith(f"{folder}/") for at in found.inspect.files().column("file_path").to_pylist()] == [True]
        assert ids(found) == [1]

    def test_a_commit_leaves_no_file_that_nothing_refers_to(self, catalog: Catalog) -> None:
        """If this fails, temporary files or those of a lost attempt stay."""
        table = self.create(catalog)
        for number in range(3):
            table.append(rows([number]))
        found = self.held_again(catalog, table)
        named = {found.metadata_location, *(entry.metadata_file for entry in found.metadata.metadata_log)}
        for snapshot in found.snapshots():
            named.add(str(snapshot.manifest_list))
            named |= set(found.inspect.manifests(snapshot.snapshot_id).column("path").to_pylist())
            named |= set(found.inspect.files(snapshot.snapshot_id).column("file_path").to_pylist())
        stored = self.files(catalog, table.location())
        versions = {catalog.io.read(at) for at in named if at.endswith(".metadata.json")}
        for left in stored - named:
            file_name = left.rpartition("/")[2]
            # A version may also exist under its number, for readers that look for it there.
            copied = version_of(file_name) is not None and catalog.io.read(left) in versions
            assert copied or file_name == "version-hint.text", left
        assert named - stored == set()

    def _check_refused(self, catalog: Catalog, table: Table, properties: Mapping[str, str]) -> None:
        """Check that the properties are refused on a table and at its creation, and that nothing changes."""
        changes: list[Callable[[], Table]] = [
            lambda: table.set_properties(properties),
            lambda: self.create(catalog, f"{table.name()[0]}.refused", **properties),
        ]
        for change in changes:
            with pytest.raises(UnsupportedFeature) as caught:
                change()
            assert "write.metadata." in str(caught.value)
        assert self.held_again(catalog, table).metadata == table.metadata
        assert catalog.list_tables(table.name()[0]) == [table.name()]
