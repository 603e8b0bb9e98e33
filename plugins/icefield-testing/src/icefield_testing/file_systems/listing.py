"""Checks of listing and deleting: they cover all files, in any number of pages and requests."""

from __future__ import annotations

from icefield.abc import FileSystem, FileSystemAbility, PutMode

from icefield_testing.file_systems.base import FileSystemChecks


class ListingChecks(FileSystemChecks):
    """Checks of ``list_files`` and ``delete_many``."""

    def test_listing_finds_every_file_below_a_folder(self, file_system: FileSystem, root: str) -> None:
        """If this fails, look at prefixes that are no folders (``a`` against ``ab``), and at paging."""
        self.needs(file_system, FileSystemAbility.LIST)
        names = ["a/1", "a/2", "a/b/3", "a/b/c/4", "ab/5"]
        for number, name in enumerate(names):
            self.raw_put(f"{root}/{name}", b"x" * number)
        for prefix in (f"{root}/a", f"{root}/a/"):
            found = {info.location: info.size for info in file_system.list_files(prefix)}
            assert found == {f"{root}/{name}": number for number, name in enumerate(names[:4])}
        shallow = {info.location for info in file_system.list_files(f"{root}/a", shallow=True)}
        assert shallow == {f"{root}/a/1", f"{root}/a/2", f"{root}/a/b/"}
        assert list(file_system.list_files(f"{root}/nothing")) == []
        assert list(file_system.list_files(f"{root}/nothing", shallow=True)) == []

    def test_a_listing_goes_on_after_its_first_page(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a listing ends with a page of the store: ask for the next one while there is a token, for
        folders as for files."""
        self.needs(file_system, FileSystemAbility.LIST)
        files = [f"{root}/d/{number:05}" for number in range(self.listing_page + 2)]
        # Some files are in a folder of their own, which appears in a listing of the direct children.
        files = [f"{file}/f" if number % 10 == 1 or file == files[-1] else file for number, file in enumerate(files)]
        for file in files:
            self.raw_put(file, b"x")
        found = [info.location for info in file_system.list_files(f"{root}/d")]
        assert len(found) == len(files), f"{len(found)} of {len(files)} files were listed"
        assert sorted(found) == sorted(files)
        shallow = [info.location for info in file_system.list_files(f"{root}/d", shallow=True)]
        assert len(shallow) == len(files), f"{len(shallow)} of {len(files)} entries were listed"
        assert set(shallow) == {file.removesuffix("f") for file in files}

    def test_listing_states_when_a_file_was_written(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``modified_ms`` is in seconds, in local time, or differs from that of ``stat``."""
        self.needs(file_system, FileSystemAbility.LIST)
        self.raw_put(f"{root}/f", b"x")
        (listed,) = file_system.list_files(root)
        stated = file_system.stat(f"{root}/f").modified_ms
        if listed.modified_ms is not None and stated is not None:
            assert abs(listed.modified_ms - stated) < 2_000
            assert stated > 1_600_000_000_000

    def test_listing_gives_the_entity_tag_of_stat(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``etag`` has quotes in one of ``list_files``, ``stat`` and ``put``, or stays while the bytes
        change."""
        self.needs(file_system, FileSystemAbility.LIST)
        self.raw_put(f"{root}/f", b"x")
        (listed,) = file_system.list_files(root)
        stated = file_system.stat(f"{root}/f").etag
        assert listed.etag in (None, stated)
        if stated is not None:
            self.raw_put(f"{root}/f", b"y")
            assert file_system.stat(f"{root}/f").etag != stated
        given = file_system.put(f"{root}/put", b"z", PutMode.OVERWRITE)
        assert given in (None, file_system.stat(f"{root}/put").etag)

    def test_deleting_many_is_content_with_missing_files(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a file that is gone already ends the deletion of the others."""
        for number in range(5):
            self.raw_put(f"{root}/{number}", b"x")
        file_system.delete_many([f"{root}/{number}" for number in (0, 9, 1, 8, 2)])
        file_system.delete_many([])
        assert [self.raw_get(f"{root}/{number}") is None for number in range(5)] == [True, True, True, False, False]

    def test_deleting_goes_on_after_the_first_batch(self, file_system: FileSystem, root: str) -> None:
        """If this fails, only as many files are deleted as one request takes: cut the list into batches."""
        names = [f"{root}/{number:05}" for number in range(2 * self.delete_page + 2)]
        # Only a few of them exist, at both ends of each batch, so that the check is fast on a store with slow requests.
        there = [names[at] for at in (0, self.delete_page - 1, self.delete_page, 2 * self.delete_page - 1, -2, -1)]
        for name in there:
            self.raw_put(name, b"x")
        file_system.delete_many(iter(names))
        left = [name for name in there if self.raw_get(name) is not None]
        assert not left, f"not deleted of {len(names)}: those at {[names.index(name) for name in left]}"
