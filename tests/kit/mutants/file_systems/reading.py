"""File systems that read, list or delete wrongly, one defect each."""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace
from typing import Any

from icefield.abc import FileInfo, InputFile, PutMode
from icefield.builtin.local import LocalFileSystem
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import FileMissing
from icefield.storage import local_path

from mutants import Mutant, of


class RaisesItsOwnErrors(LocalFileSystem):
    """Lets the library's errors through."""

    def open_input(self, location: str) -> InputFile:
        return open(local_path(location), "rb")


class HoldsState(LocalFileSystem):
    """Forgets its type's promise when it is pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalFileSystem, ()


class ShowsItsProperties(LocalFileSystem):
    """Prints credentials."""

    def __repr__(self) -> str:
        return f"LocalFileSystem({self.properties})"


class ReadsToTheEnd(LocalFileSystem):
    """Ignores the offset of a seek."""

    def open_input(self, location: str) -> InputFile:
        source = super().open_input(location)
        file = io.BytesIO(source.read())
        file.seek = lambda offset, whence=0: offset  # type: ignore[method-assign,assignment]
        return file


class LeavesOutWhatIsMissing(LocalFileSystem):
    """Reports existing files only, and leaves out missing ones."""

    def stat_many(self, locations: Sequence[str]) -> list[FileInfo | None]:
        return [found for found in super().stat_many(locations) if found is not None]


class OneSlashForTwo(MemoryFileSystem):
    """Merges slashes in a row into one when it writes."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        super().put(re.sub("(?<!:)//+", "/", location), data, mode)


class Decodes(LocalFileSystem):
    """Decodes a location like a URL."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        super().put(location.replace("%20", " "), data, mode)


class RemembersMissingFiles(LocalFileSystem):
    """Answers from a cache that a file is missing."""

    def stat(self, location: str) -> FileInfo:
        missing: set[str] = self.__dict__.setdefault("missing", set())
        if location in missing:
            raise FileMissing(f"no file {location}", location=location)
        try:
            return super().stat(location)
        except FileMissing:
            missing.add(location)
            raise


class RemembersSizes(LocalFileSystem):
    """Answers from a cache how large a file is."""

    def stat(self, location: str) -> FileInfo:
        sizes: dict[str, FileInfo] = self.__dict__.setdefault("sizes", {})
        return sizes.setdefault(location, super().stat(location)) if location not in sizes else sizes[location]


class RemembersContents(LocalFileSystem):
    """Answers reads of a file from a cache."""

    def open_input(self, location: str) -> InputFile:
        contents: dict[str, bytes] = self.__dict__.setdefault("contents", {})
        if location not in contents:
            contents[location] = super().open_input(location).read()
        return io.BytesIO(contents[location])


class RemembersListings(LocalFileSystem):
    """Answers listings of a folder from a cache."""

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        listings: dict[Any, list[FileInfo]] = self.__dict__.setdefault("listings", {})
        if (prefix, shallow) not in listings:
            listings[prefix, shallow] = [*super().list_files(prefix, shallow=shallow)]
        return iter(listings[prefix, shallow])


class RemembersFiles(RemembersSizes):
    """Answers from a cache for files that others delete."""


class TakesEmptyFilesForNone(LocalFileSystem):
    """Treats an empty file as missing."""

    def stat(self, location: str) -> FileInfo:
        found = super().stat(location)
        if not found.size:
            raise FileMissing(f"no file {location}", location=location)
        return found


class TakesFoldersForFiles(LocalFileSystem):
    """Reports folders as files."""

    def stat(self, location: str) -> FileInfo:
        if os.path.isdir(local_path(location)):
            return FileInfo(location, 0)
        return super().stat(location)


class OnlyReads(LocalFileSystem):
    """Opens files with nothing but ``read`` and ``close``."""

    def open_input(self, location: str) -> InputFile:
        source = super().open_input(location)
        return SimpleNamespace(read=source.read, close=source.close, closed=False)  # type: ignore[return-value]


class SharesItsInput(MemoryFileSystem):
    """Reads every file through one buffer."""

    buffer = io.BytesIO()

    def open_input(self, location: str) -> InputFile:
        self.buffer.seek(0)
        self.buffer.truncate()
        self.buffer.write(super().open_input(location).read())
        self.buffer.seek(0)
        return _Unclosed(self.buffer)


class _Unclosed(io.BytesIO):
    def __init__(self, shared: io.BytesIO) -> None:
        super().__init__()
        self.read = shared.read  # type: ignore[method-assign]
        self.seek = shared.seek  # type: ignore[method-assign]
        self.tell = shared.tell  # type: ignore[method-assign]


class WaitsForItself(LocalFileSystem):
    """Takes a lock twice."""

    lock = threading.Lock()

    def stat(self, location: str) -> FileInfo:
        with self.lock:
            return super().stat(location)

    def stat_many(self, locations: Sequence[str]) -> list[FileInfo | None]:
        with self.lock:
            return [self.stat(location) for location in locations]


class ListsByPrefix(LocalFileSystem):
    """Lists a folder as a prefix of names, and so includes other folders."""

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        if shallow:
            yield from super().list_files(prefix, shallow=True)
            return
        parent = prefix.rstrip("/").rpartition("/")[0]
        yield from (info for info in super().list_files(parent) if info.location.startswith(prefix))


class ListsOnePage(LocalFileSystem):
    """Lists the first page."""

    page = 1000

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        return islice(super().list_files(prefix, shallow=shallow), self.page)


class ListsOneSmallPage(ListsOnePage):
    """Lists only the first page, of a store with small pages."""

    page = 100


class ListsFoldersOfOnePage(LocalFileSystem):
    """Lists the files of every page, but only the folders of the first page."""

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        for number, info in enumerate(super().list_files(prefix, shallow=shallow)):
            if number < 1000 or not info.location.endswith("/"):
                yield info


class CountsSeconds(LocalFileSystem):
    """States in seconds when a file was written."""

    def stat(self, location: str) -> FileInfo:
        found = super().stat(location)
        return replace(found, modified_ms=(found.modified_ms or 0) // 1000)


class StopsAtMissing(LocalFileSystem):
    """Fails to delete a missing file."""

    def delete_many(self, locations: Any) -> None:
        for location in locations:
            if not os.path.exists(local_path(location)):
                raise FileMissing("gone", location=location)
            os.unlink(local_path(location))


class DeletesOneBatch(LocalFileSystem):
    """Deletes only the files of the first request."""

    batch = 1000

    def delete_many(self, locations: Iterable[str]) -> None:
        super().delete_many(islice(locations, self.batch))


class DeletesOneSmallBatch(DeletesOneBatch):
    """Deletes only the files of the first request, of 100 files as in another store."""

    batch = 100


class DeletesWhatIsEmptied(LocalFileSystem):
    """Deletes a file whose new contents are empty."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        super().put(location, data, mode)
        if mode is PutMode.OVERWRITE and not data:
            self.delete_many([location])


class QuotesTags(MemoryFileSystem):
    """Returns an entity tag with the quotes of a header, and without quotes in listings."""

    def stat(self, location: str) -> FileInfo:
        found = super().stat(location)
        return replace(found, etag=f'"{found.modified_ms}"')

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        return (replace(found, etag=str(found.modified_ms)) for found in super().list_files(prefix, shallow=shallow))


class KeepsTags(MemoryFileSystem):
    """Uses the name as the entity tag, so that the tag stays while the bytes change."""

    def stat(self, location: str) -> FileInfo:
        return replace(super().stat(location), etag=location)


MUTANTS: list[Mutant] = of(
    {
        SharesItsInput: ("test_two_files_that_are_read_at_once_keep_apart", "share a buffer"),
        ListsByPrefix: ("test_listing_finds_every_file_below_a_folder", "prefixes that are no folders"),
        ListsOnePage: ("test_a_listing_goes_on_after_its_first_page", "ends with a page of the store"),
        ListsOneSmallPage: ("test_a_listing_goes_on_after_its_first_page", "ends with a page of the store"),
        ListsFoldersOfOnePage: ("test_a_listing_goes_on_after_its_first_page", "for folders as for files"),
        QuotesTags: ("test_listing_gives_the_entity_tag_of_stat", "has quotes in one"),
        KeepsTags: ("test_listing_gives_the_entity_tag_of_stat", "stays while the bytes change"),
        StopsAtMissing: ("test_deleting_many_is_content_with_missing_files", "gone already"),
        DeletesOneBatch: ("test_deleting_goes_on_after_the_first_batch", "cut the list into batches"),
        DeletesOneSmallBatch: ("test_deleting_goes_on_after_the_first_batch", "cut the list into batches"),
        RaisesItsOwnErrors: ("test_a_missing_file_raises_file_missing", "the SDK's own not-found error"),
        HoldsState: ("test_a_pickled_copy_reads_and_writes", "holds state besides its properties"),
        ShowsItsProperties: ("test_its_repr_shows_no_property", "would end up in logs"),
        Decodes: ("test_names_are_taken_to_the_letter", "decoded"),
        OneSlashForTwo: ("test_two_slashes_are_not_one", "``a//b`` is made ``a/b``"),
        ReadsToTheEnd: ("test_a_file_reads_back_whole_and_in_ranges", "seek"),
        LeavesOutWhatIsMissing: ("test_files_are_stated_of_together_in_the_order_asked_for", "leaves out a file"),
        RemembersMissingFiles: ("test_a_file_that_was_missing_is_found_as_soon_as_it_is_there", "a cache remembers"),
        RemembersListings: ("test_a_file_that_was_missing_is_found_as_soon_as_it_is_there", "what a folder held"),
        RemembersSizes: ("test_a_file_that_was_replaced_is_read_as_it_is_now", "a cache answers"),
        RemembersContents: ("test_a_file_that_was_replaced_is_read_as_it_is_now", "a cache answers"),
        WaitsForItself: ("test_files_are_stated_of_together_in_the_order_asked_for", "did not end within 1 s"),
        RemembersFiles: ("test_a_file_that_another_deleted_is_missing", "a cache remembers files"),
        TakesEmptyFilesForNone: ("test_an_empty_file_is_a_file", "a file of no bytes"),
        TakesFoldersForFiles: ("test_a_folder_is_no_file", "a prefix that only has files below it"),
        CountsSeconds: ("test_listing_states_when_a_file_was_written", "in seconds"),
        OnlyReads: ("test_pyarrow_reads_an_open_file", "``pyarrow.PythonFile`` needs"),
        DeletesWhatIsEmptied: (
            "test_any_sequence_of_calls_behaves_like_a_dictionary",
            "the shortest sequence",
        ),
    }
)
