"""The kit rejects file systems that are broken on purpose: a check that accepts them would be worthless."""

from __future__ import annotations

from pathlib import Path

import pytest
from broken_file_systems.failing import (
    CallsALostReplyAFailure,
    CallsTheFileInvalid,
    EndsEarly,
    LetsErrorsThrough,
    LetsTheSdkThrough,
    ListsNothing,
    RaisesFromTheSdk,
    Remote,
    RepeatsTheSdk,
    SwallowsWhatCloseSays,
    TakesAnOutageForMissing,
)
from broken_file_systems.input_files import (
    CountsWhatWasRead,
    FailsBehindTheEnd,
    ReadsWhatIsClosed,
    SaysItIsNear,
    SeeksToRead,
    SharesOneOffset,
    SortsRanges,
)
from broken_file_systems.places import (
    AsksAnybodyThenRefuses,
    Bound,
    CutsAtZeroBytes,
    LetsTheSystemRefuse,
    RefusesWithoutAdvice,
    ReplacesHalfCharacters,
    SendsItsTokenAnywhere,
    SendsItsTokenThenRefuses,
    SendsItsTokenWhereItDeletes,
    ShowsTheTokenThatItKeeps,
    TakesAForeignHostForAnOutage,
)
from broken_file_systems.reading import (
    CountsSeconds,
    Decodes,
    DeletesOneBatch,
    DeletesOneSmallBatch,
    DeletesWhatIsEmptied,
    HoldsState,
    KeepsTags,
    LeavesOutWhatIsMissing,
    ListsByPrefix,
    ListsFoldersOfOnePage,
    ListsOnePage,
    ListsOneSmallPage,
    OneSlashForTwo,
    OnlyReads,
    QuotesTags,
    RaisesItsOwnErrors,
    ReadsToTheEnd,
    RemembersContents,
    RemembersFiles,
    RemembersListings,
    RemembersMissingFiles,
    RemembersSizes,
    SharesItsInput,
    ShowsItsProperties,
    StopsAtMissing,
    TakesEmptyFilesForNone,
    TakesFoldersForFiles,
    WaitsForItself,
)
from broken_file_systems.suites import OnDisk, given, suite_of
from broken_file_systems.writing import (
    Appends,
    ChecksThenWrites,
    ClosesOnExceptions,
    CopiesOnClose,
    CreateReplaces,
    CreatesThoughItSaysItCannot,
    DeletesThenCreates,
    LooksThenRenames,
    LosesAFullLastPart,
    OpensExclusively,
    OverwritesByArrow,
    OverwritesInPlace,
    PublishesOnAbort,
    RenameReplaces,
    RenamesByCopying,
    ReordersParts,
    SharesItsOutput,
    ShowsHalfFiles,
    TakesBytesOnly,
    WritesInPlace,
)
from icefield.abc import (
    FileSystem,
)
from icefield.builtin.local import LocalFileSystem
from icefield.builtin.memory import MemoryFileSystem
from icefield_testing import FileSystemSuite
from kit_checks import checks, failures, rejection

FOREIGN = "test_a_foreign_host_gets_no_credential_and_is_not_asked"
ZERO = "test_a_name_with_a_zero_byte_or_half_a_character_is_refused"

# The test that rejects each class, and the part of the note that names the cause.
BROKEN: dict[type[FileSystem], tuple[str, str]] = {
    ChecksThenWrites: ("test_one_of_many_creators_wins", "looks first and writes then"),
    ShowsHalfFiles: ("test_a_created_file_is_never_seen_half", "the name appears before the bytes do"),
    CallsALostReplyAFailure: (
        "test_a_step_that_was_done_and_failed_is_not_called_a_failure",
        "the error that is raised says that nothing happened",
    ),
    OpensExclusively: ("test_nobody_sees_a_step_of_a_creation", "``O_EXCL``"),
    OverwritesInPlace: ("test_nobody_sees_a_step_of_an_overwriting", "where it is"),
    DeletesThenCreates: ("test_nobody_sees_a_step_of_an_overwriting", "a reader finds none"),
    CopiesOnClose: ("test_nobody_sees_a_step_of_a_stream", "``close`` copies to the final name"),
    RenameReplaces: ("test_renaming_moves_and_refuses_a_taken_name", "``rename`` replaces"),
    RenamesByCopying: ("test_nobody_sees_a_step_of_a_renaming", "copies and deletes"),
    PublishesOnAbort: ("test_an_aborted_stream_leaves_nothing", "``abort`` publishes"),
    WritesInPlace: ("test_a_stream_publishes_on_close_and_not_before", "while it is still being written"),
    SharesItsInput: ("test_two_files_that_are_read_at_once_keep_apart", "share a buffer"),
    SharesItsOutput: ("test_two_streams_that_are_written_at_once_keep_apart", "share a buffer"),
    LosesAFullLastPart: ("test_a_stream_of_whole_parts_arrives_whole", "the last part is lost when it is full"),
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
    SwallowsWhatCloseSays: ("test_a_stream_that_cannot_be_written_says_so", "swallows what the store said"),
    LetsErrorsThrough: ("test_a_store_that_fails_is_a_storage_error", "translate each error"),
    LetsTheSdkThrough: ("test_a_store_that_fails_is_a_storage_error", "an error of the SDK"),
    ListsNothing: ("test_a_store_that_fails_is_a_storage_error", "list_files says nothing"),
    TakesAnOutageForMissing: ("test_a_store_that_fails_is_a_storage_error", "passes for a file that is"),
    CallsTheFileInvalid: ("test_a_read_that_fails_blames_the_store_and_not_the_file", "calls the file invalid"),
    EndsEarly: ("test_a_read_that_fails_blames_the_store_and_not_the_file", "a read ends early"),
    RepeatsTheSdk: ("test_no_credential_is_in_an_error", "what an SDK said that repeats one"),
    RemembersFiles: ("test_a_file_that_another_deleted_is_missing", "a cache remembers files"),
    TakesEmptyFilesForNone: ("test_an_empty_file_is_a_file", "a file of no bytes"),
    TakesFoldersForFiles: ("test_a_folder_is_no_file", "a prefix that only has files below it"),
    CountsSeconds: ("test_listing_states_when_a_file_was_written", "in seconds"),
    CountsWhatWasRead: ("test_the_size_is_known_before_anything_is_read", "of what was read so far"),
    FailsBehindTheEnd: ("test_a_read_by_offset_is_short_only_at_the_end", "behind the end for an error"),
    SeeksToRead: ("test_reads_by_offset_leave_the_position_alone", "goes astray"),
    SortsRanges: ("test_ranges_come_in_the_order_asked_for", "sorts its answers"),
    SharesOneOffset: ("test_several_threads_read_one_file", "a position that all threads share"),
    ReadsWhatIsClosed: ("test_a_closed_file_is_not_read", "still gives bytes"),
    SaysItIsNear: ("test_a_file_of_a_remote_store_says_so", "for each page by itself"),
    OnlyReads: ("test_pyarrow_reads_an_open_file", "``pyarrow.PythonFile`` needs"),
    DeletesWhatIsEmptied: ("test_any_sequence_of_calls_behaves_like_a_dictionary", "the shortest sequence of calls"),
    ClosesOnExceptions: ("test_an_exception_in_a_with_block_leaves_nothing", "closes where it should abort"),
    TakesBytesOnly: ("test_pyarrow_writes_to_a_stream", "pyarrow asks of a Python file"),
    ReordersParts: ("test_a_large_stream_arrives_whole", "reorders parts"),
    OverwritesByArrow: ("test_a_process_that_dies_while_it_writes_leaves_no_part", "the file of before"),
    Appends: ("test_overwriting_replaces_whole", "appends"),
    CreateReplaces: ("test_creating_refuses_a_taken_name", "``put(CREATE)`` overwrites"),
    CreatesThoughItSaysItCannot: ("test_an_undeclared_atomic_step_is_refused", "stands in for an atomic step"),
    LooksThenRenames: ("test_one_of_many_renamers_wins", "looks first and renames then"),
    RaisesFromTheSdk: ("test_no_credential_is_in_an_error", "a credential is in a"),
    SendsItsTokenAnywhere: (FOREIGN, "leads the credentials to a host that the configuration does not name"),
    SendsItsTokenThenRefuses: (FOREIGN, "the credential arrived there"),
    SendsItsTokenWhereItDeletes: (FOREIGN, "delete_many, with test.token: the credential arrived there"),
    AsksAnybodyThenRefuses: (FOREIGN, "a host that nobody named was asked"),
    RefusesWithoutAdvice: (FOREIGN, "does not say what to configure"),
    TakesAForeignHostForAnOutage: (FOREIGN, "does not say that the host of"),
    ShowsTheTokenThatItKeeps: (FOREIGN, "the credential is in a LocationRefused"),
    CutsAtZeroBytes: (ZERO, "is cut off"),
    LetsTheSystemRefuse: (ZERO, "which is no refusal"),
    ReplacesHalfCharacters: (ZERO, "put(OVERWRITE) takes"),
}


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_file_system_is_rejected_with_a_note_that_names_the_cause(
    kind: type[FileSystem], tmp_path: Path
) -> None:
    check, cause = BROKEN[kind]
    fail_fast = type("Suite", (suite_of(kind),), {"check_seconds": 1.0 if kind is WaitsForItself else 60.0})
    said = rejection(fail_fast, check, given(kind, tmp_path))
    assert cause in " ".join(said.split()), said


@pytest.mark.slow
def test_a_file_that_is_written_in_place_is_found_each_time_and_in_two_ways(tmp_path: Path) -> None:
    ways = ("test_nobody_sees_a_step_of_a_creation", "test_a_process_that_dies_while_it_writes_leaves_no_part")
    said = [rejection(OnDisk, way, given(OpensExclusively, tmp_path / f"{n}")) for n in range(50) for way in ways]
    assert [bool(each) for each in said] == [True] * 100


@pytest.mark.slow
@pytest.mark.parametrize("kind", [LocalFileSystem, MemoryFileSystem, Remote, Bound])
def test_a_right_file_system_passes_every_check(kind: type[FileSystem], tmp_path: Path) -> None:
    assert failures(suite_of(kind), given(kind, tmp_path)) == []


def test_there_is_a_broken_file_system_for_every_check() -> None:
    about_the_plugin = {"test_the_plugin_states_its_contract_number"}  # test_contract_numbers.py
    assert {name for name, _ in checks(FileSystemSuite)} - about_the_plugin == {check for check, _ in BROKEN.values()}
