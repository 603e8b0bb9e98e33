"""File systems that confuse names which look alike, or delete by more than a name, one defect each."""

from __future__ import annotations

import fnmatch
import os
import shutil
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from urllib.parse import quote_plus, unquote, unquote_plus

from icefield.abc import FileInfo, InputFile, OutputStream, PutMode
from icefield.builtin.local import LocalFileSystem
from icefield.builtin.memory import MemoryFileSystem
from icefield.storage import local_path

from mutants import Mutant, of


class _Spells(LocalFileSystem):
    """Changes each location on its way to the store."""

    def spelled(self, location: str) -> str:
        return location

    def open_input(self, location: str) -> InputFile:
        return super().open_input(self.spelled(location))

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        super().put(self.spelled(location), data, mode)

    def open_output(self, location: str) -> OutputStream:
        return super().open_output(self.spelled(location))

    def stat(self, location: str) -> FileInfo:
        return replace(super().stat(self.spelled(location)), location=location)


def _of_the_name(change: str, location: str) -> str:
    """Change the last level alone: the folders of the tests have upper-case letters."""
    folder, _, name = location.rpartition("/")
    return f"{folder}/{getattr(name, change)()}"


class NfcNames(_Spells):
    """Brings names to the Unicode form NFC."""

    def spelled(self, location: str) -> str:
        return unicodedata.normalize("NFC", location)


class LowerCaseNames(_Spells):
    """Makes names lower case."""

    def spelled(self, location: str) -> str:
        return _of_the_name("lower", location)


class StripsNames(_Spells):
    """Cuts blanks at both ends of a name."""

    def spelled(self, location: str) -> str:
        return _of_the_name("strip", location)


class CutsDotsAtTheEnd(_Spells):
    """Cuts dots at the end of a name, as Windows does."""

    def spelled(self, location: str) -> str:
        return location.rstrip(".")


class CutsFragments(_Spells):
    """Takes a location for a URL, and cuts it at a number sign."""

    def spelled(self, location: str) -> str:
        return location.partition("#")[0]


class CutsSlashesAtTheEnd(_Spells):
    """Cuts slashes at the end of a name, as fsspec does."""

    def spelled(self, location: str) -> str:
        return location.rstrip("/")


class DeletesWithoutTheSlash(LocalFileSystem):
    """Cuts the slash at the end of a name where it deletes."""

    def delete_many(self, locations: Iterable[str]) -> None:
        super().delete_many([location.rstrip("/") for location in locations])


class StreamsToDecodedNames(LocalFileSystem):
    """Decodes the name of a stream alone."""

    def open_output(self, location: str) -> OutputStream:
        return super().open_output(unquote_plus(location))


class ReadsDecodedNames(LocalFileSystem):
    """Decodes a name where it reads."""

    def open_input(self, location: str) -> InputFile:
        return super().open_input(unquote(location))


class StatesNfcNames(LocalFileSystem):
    """Normalises a name where it looks at a file."""

    def stat(self, location: str) -> FileInfo:
        return replace(super().stat(unicodedata.normalize("NFC", location)), location=location)


class _Lists(LocalFileSystem):
    """Changes the locations of a listing."""

    def listed(self, location: str) -> str | None:
        return location

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        for info in super().list_files(prefix, shallow=shallow):
            location = self.listed(info.location)
            if location is not None:
                yield replace(info, location=location)


class ListDecodes(_Lists):
    """Lists a name decoded, as the keys of an XML answer are."""

    def listed(self, location: str) -> str | None:
        return unquote(location)


class ListsEncoded(_Lists):
    """Lists a name encoded, as it was in the answer."""

    def listed(self, location: str) -> str | None:
        return quote_plus(location, safe="/:+%*?[]=&\u00e9\u0301")


class ListsInNfc(_Lists):
    """Lists names in the Unicode form NFC."""

    def listed(self, location: str) -> str | None:
        return unicodedata.normalize("NFC", location)


class HidesDotFiles(_Lists):
    """Lists no file whose name begins with a dot, as a glob does."""

    def listed(self, location: str) -> str | None:
        return None if location.rpartition("/")[2].startswith(".") else location


class HidesDotFolders(_Lists):
    """Lists nothing below a folder whose name begins with a dot."""

    def listed(self, location: str) -> str | None:
        return None if "/." in location.rpartition("/")[0] + "/" else location


class StripsListedNames(_Lists):
    """Cuts the blanks of a name, as a parser of lines does."""

    def listed(self, location: str) -> str | None:
        return location.strip()


class ListsAFileBelowItself(MemoryFileSystem):
    """Lists keys by their prefix, without a slash after it."""

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        if prefix in self.files:
            yield self.stat(prefix)
        yield from super().list_files(prefix, shallow=shallow)


class ListsTheFolderItself(MemoryFileSystem):
    """Lists the marker of a folder as a file."""

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        if not shallow and any(name.startswith(prefix.rstrip("/") + "/") for name in self.files):
            yield FileInfo(prefix.rstrip("/") + "/", 0)
        yield from super().list_files(prefix, shallow=shallow)


class DeletesFolders(LocalFileSystem):
    """Deletes a folder with all files in it."""

    def delete_many(self, locations: Iterable[str]) -> None:
        for location in locations:
            if os.path.isdir(local_path(location)):
                shutil.rmtree(local_path(location))
            else:
                super().delete_many([location])


class DeletesByPrefix(MemoryFileSystem):
    """Deletes all keys that begin with a name."""

    def delete_many(self, locations: Iterable[str]) -> None:
        for location in locations:
            super().delete_many([name for name in self.files if name.startswith(location)])


class DeletesByPattern(MemoryFileSystem):
    """Takes a name for a pattern, as a library with globs does."""

    def delete_many(self, locations: Iterable[str]) -> None:
        for location in locations:
            super().delete_many([name for name in self.files if fnmatch.fnmatchcase(name, location)])


class DeletesEmptiedFolders(LocalFileSystem):
    """Deletes the folder of a file, and what another writer has put there."""

    def delete_many(self, locations: Iterable[str]) -> None:
        for location in locations:
            super().delete_many([location])
            with suppress(OSError):
                shutil.rmtree(os.path.dirname(local_path(location)))


_ALIKE = "test_names_that_look_alike_are_different_files"
_SLASH = "test_a_name_with_a_slash_at_its_end_is_no_file_without_it"
_LETTER = "test_a_listing_gives_names_to_the_letter"
_OTHER = "test_deleting_a_name_deletes_no_other"

MUTANTS: list[Mutant] = of(
    {
        NfcNames: (_ALIKE, "2 of 26 names: 'cafe\\u0301' was written elsewhere"),
        LowerCaseNames: (_ALIKE, "to lower case"),
        StripsNames: (_ALIKE, "3 of 26 names: ' blank' was written elsewhere"),
        CutsDotsAtTheEnd: (_ALIKE, "'dot.' was written elsewhere"),
        CutsFragments: (_ALIKE, "'mark#part' was written elsewhere"),
        CutsSlashesAtTheEnd: (_SLASH, "open_input of 'f/' reads b'f' from the file f"),
        DeletesWithoutTheSlash: (_SLASH, "delete_many of 'f/' changes the file f"),
        StreamsToDecodedNames: (_ALIKE, "3 of 26 names: 'es%20cape' was written elsewhere"),
        ReadsDecodedNames: (_ALIKE, "2 of 26 names: 'es%20cape' was read from elsewhere"),
        StatesNfcNames: (_ALIKE, "'cafe\\u0301' has the size of another"),
        ListDecodes: (_LETTER, "list_files lacks 2 of 26 names, such as 'es%20cape'"),
        ListsEncoded: (_LETTER, "names that nobody wrote: '+blank', 'blank+'"),
        ListsInNfc: (_LETTER, "such as 'cafe\\u0301'"),
        HidesDotFiles: (_LETTER, "lacks 2 of 26 names, such as '.dot'"),
        HidesDotFolders: (_LETTER, "lacks 1 of 26 names, such as '.folder/file'"),
        StripsListedNames: (_LETTER, "lacks 1 of 26 names, such as 'blank '"),
        ListsAFileBelowItself: ("test_a_file_has_nothing_below_it", "listed below a file"),
        ListsTheFolderItself: ("test_listing_finds_every_file_below_a_folder", "prefixes that are no folders"),
        DeletesFolders: (_OTHER, "delete_many of 'folder' deleted 2 of 6 other files"),
        DeletesByPrefix: (_OTHER, "delete_many of 'folder' deleted 3 of 6 other files"),
        DeletesByPattern: (_OTHER, "delete_many of '?olders' deleted 1 of 6 other files"),
        DeletesEmptiedFolders: (_OTHER, "other files"),
    }
)
