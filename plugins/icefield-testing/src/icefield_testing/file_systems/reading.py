"""Checks of reading: whole files and ranges, exact names, and always the current contents."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from icefield.abc import FileSystem, FileSystemAbility, PutMode
from icefield.errors import FileMissing
from icefield.toolkit import as_input_file

from icefield_testing.file_systems.base import FileSystemChecks
from icefield_testing.same_bytes import check_bytes

ODD_NAMES = ("a b", "a%20b", "a=b,c;d", "ü-日本", "p=1/q=x%2Fy/f", "[x]{y}*?")


class ReadingChecks(FileSystemChecks):
    """Checks of ``open_input``, ``stat`` and names."""

    def test_a_file_reads_back_whole_and_in_ranges(self, file_system: FileSystem, root: str) -> None:
        """If this fails, look at ``open_input``: read, seek from the start and the end, tell."""
        data = bytes(range(256)) * 64
        self.raw_put(f"{root}/a.bin", data)
        source = file_system.open_input(f"{root}/a.bin")
        try:
            check_bytes(source.read(), data, "the whole file")
            source.seek(100)
            assert source.read(16) == data[100:116]
            assert source.tell() == 116
            source.seek(-10, 2)
            assert source.read() == data[-10:]
            source.seek(len(data))
            assert source.read(5) == b""
        finally:
            source.close()
        assert source.closed

    def test_pyarrow_reads_an_open_file(self, file_system: FileSystem, root: str) -> None:
        """If this fails, what ``open_input`` returns lacks something that ``pyarrow.PythonFile`` needs."""
        self.raw_put(f"{root}/a.bin", b"0123456789")
        source = as_input_file(file_system.open_input(f"{root}/a.bin"))
        file = source.arrow_file()
        assert file.size() == 10
        assert file.read_at(3, 4) == b"456"
        file.close()
        source.close()

    def test_two_files_that_are_read_at_once_keep_apart(self, file_system: FileSystem, root: str) -> None:
        """If this fails, open files share a buffer or a position: keep both in the object that is returned."""
        data = {name: bytes([number]) * 70_000 for number, name in enumerate(("a", "b"))}
        for name, contents in data.items():
            self.raw_put(f"{root}/{name}", contents)
        names = ("a", "b", "a")
        sources = [file_system.open_input(f"{root}/{name}") for name in names]
        read = [b"", b"", b""]
        for _ in range(8):
            for number, source in enumerate(sources):
                read[number] += source.read(10_000)
        for source in sources:
            source.close()
        assert [(len(found), set(found)) for found in read] == [(70_000, {data[name][0]}) for name in names]

    def test_an_empty_file_is_a_file(self, file_system: FileSystem, root: str) -> None:
        """If this fails, the store takes a file of no bytes for none, or for a folder."""
        self.raw_put(f"{root}/empty", b"")
        assert file_system.stat(f"{root}/empty").size == 0
        assert file_system.open_input(f"{root}/empty").read() == b""

    def test_a_missing_file_raises_file_missing(self, file_system: FileSystem, root: str) -> None:
        """If this fails, translate the SDK's own not-found error at the plugin's border."""
        with pytest.raises(FileMissing) as opened:
            file_system.open_input(f"{root}/no").read()
        with pytest.raises(FileMissing) as looked:
            file_system.stat(f"{root}/no")
        assert f"{root}/no" in str(opened.value)
        assert f"{root}/no" in str(looked.value)

    def test_a_folder_is_no_file(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``stat`` answers for a prefix that only has files below it."""
        self.raw_put(f"{root}/folder/file", b"x")
        with pytest.raises(FileMissing):
            file_system.stat(f"{root}/folder")

    def test_files_are_stated_of_together_in_the_order_asked_for(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``stat_many`` leaves out a file that is missing, or mixes up the answers."""
        for size in (1, 2, 3):
            self.raw_put(f"{root}/f/{size}", b"x" * size)
        names = ["3", "no", "1", "", "2", "1"]
        found = file_system.stat_many([f"{root}/f/{name}".rstrip("/") for name in names])
        assert [None if info is None else info.size for info in found] == [3, None, 1, None, 2, 1]
        assert found[0] == file_system.stat(f"{root}/f/3")
        assert file_system.stat_many([]) == []

    # -- names

    def test_names_are_taken_to_the_letter(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a location is decoded, globbed or normalised on its way."""
        for name in ODD_NAMES:
            file_system.put(f"{root}/{name}", name.encode(), PutMode.OVERWRITE)
        for name in ODD_NAMES:
            assert self.raw_get(f"{root}/{name}") == name.encode()
            assert file_system.stat(f"{root}/{name}").size == len(name.encode())

    def test_two_slashes_are_not_one(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``a//b`` is made ``a/b`` on its way: take a location as it is, and join no paths with it."""
        self.raw_put(f"{root}/one/f", b"one")
        if self.raw_get(f"{root}/one//f") is not None:
            pytest.skip("the store itself takes two slashes for one")
        file_system.put(f"{root}/two//f", b"two", PutMode.OVERWRITE)
        with file_system.open_output(f"{root}/two//g") as sink:
            sink.write(b"22")
        assert (self.raw_get(f"{root}/two//f"), self.raw_get(f"{root}/two//g")) == (b"two", b"22")
        assert file_system.open_input(f"{root}/two//f").read() == b"two"
        assert file_system.stat_many([f"{root}/one//f", f"{root}/two/f"]) == [None, None]
        with pytest.raises(FileMissing):
            file_system.stat(f"{root}/one//f")
        if FileSystemAbility.LIST in file_system.abilities:
            assert {info.location for info in file_system.list_files(f"{root}/two")} == {
                f"{root}/two//f",
                f"{root}/two//g",
            }
        file_system.delete_many([f"{root}/one//f", f"{root}/two//f"])
        assert (self.raw_get(f"{root}/one/f"), self.raw_get(f"{root}/two//f")) == (b"one", None)

    # -- nothing is remembered

    def test_a_file_that_was_missing_is_found_as_soon_as_it_is_there(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a cache remembers that a file was missing, or what a folder held: switch it off."""
        location = f"{root}/folder/late"
        self.raw_put(f"{root}/folder/early", b"x")
        views = self._views(file_system, location)
        assert [view() for view in views] == [None] * len(views)
        self.raw_put(location, b"here")
        assert [view() for view in views] == [4] * len(views)

    def test_a_file_that_was_replaced_is_read_as_it_is_now(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a cache answers with bytes, sizes or listings of before: switch it off."""
        location = f"{root}/folder/version-hint.text"
        for contents in (b"9", b"10", b"11"):
            self.raw_put(location, contents)
            views = self._views(file_system, location)
            assert [view() for view in views] == [len(contents)] * len(views)
            assert file_system.open_input(location).read() == contents

    def test_a_file_that_another_deleted_is_missing(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a cache remembers files that another process has deleted since: switch it off."""
        location = f"{root}/folder/gone"
        self.raw_put(location, b"here")
        views = self._views(file_system, location)
        assert [view() for view in views] == [4] * len(views)
        self.alone(file_system).delete_many([location])
        assert self.raw_get(location) is None
        assert [view() for view in views] == [None] * len(views)

    def _views(self, file_system: FileSystem, location: str) -> list[Callable[[], int | None]]:
        """The size of a file by each way to look at it; None if the file is missing."""
        folder = location.rpartition("/")[0]

        def look() -> int | None:
            try:
                return file_system.stat(location).size
            except FileMissing:
                return None

        def read() -> int | None:
            try:
                return len(file_system.open_input(location).read())
            except FileMissing:
                return None

        def look_together() -> int | None:
            (info,) = file_system.stat_many([location])
            return None if info is None else info.size

        def listed(shallow: bool) -> int | None:
            sizes = {info.location: info.size for info in file_system.list_files(folder, shallow=shallow)}
            return sizes.get(location)

        views = [look, read, look_together]
        if FileSystemAbility.LIST in file_system.abilities:
            views += [lambda: listed(False), lambda: listed(True)]
        return views
