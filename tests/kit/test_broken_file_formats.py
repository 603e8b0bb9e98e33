"""File formats that are broken on purpose: the intended check of the kit must reject each of them."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from broken_file_formats.damage import (
    MakesUpRowsWhereTheFileEnds,
    NamesNoFile,
    RaisesItsOwnErrors,
    SaysNothingOfWhereDamageIs,
    TakesDamageForAnEmptyFile,
)
from broken_file_formats.handed_on import Right
from broken_file_formats.metrics import (
    BoundsNegativeZeroByZero,
    BoundsWhatLiesBelowNulls,
    CountsNoNulls,
    CountsNullsOfParentsOnly,
    CountsRowsTwice,
    OrdersTextsByUtf16,
    TellsBoundsThatAreTooTight,
    TellsNanForABound,
)
from broken_file_formats.reading import (
    CannotTravel,
    CountsPositionsOfWhatItReads,
    DropsFieldIds,
    DropsWantedMapKeys,
    EncodesNullsAsValues,
    ForgetsMetadata,
    ForgetsWhatIsRequired,
    GuessesIdsByPlace,
    IgnoresSplits,
    IgnoresTheBatchSize,
    IgnoresTheOrderOfColumns,
    LeavesItsInputOpen,
    LosesRowsWithoutColumns,
    LosesTheFirstRowOfASplit,
    MixesFilesReadTogether,
    ReadsOnce,
    RestartsPositions,
    SkipsByAnUnsoundFilter,
    TakesEmptyForNull,
    TellsAWrongCount,
    TellsSanitisedNames,
)
from broken_file_formats.writing import (
    AppendsNothing,
    AppendsToAnything,
    CountsNoFlushedBytes,
    IgnoresTheOffsetsOfSlices,
    LosesTheLastBatch,
    PublishesBeforeTheEnd,
    PublishesWhatIsAborted,
    SwallowsErrorsOfTheStorage,
    TellsAWrongSize,
    WritesInAnotherOrder,
    WritesWhatLiesBelowNulls,
)
from icefield.abc import FileFormat, FormatWriter, OutputStream
from icefield.errors import UnsupportedFeature
from icefield.schema import Schema
from icefield.types import FixedType, UUIDType
from icefield_testing import ManifestFormatSuite
from kit_checks import checks, failures


class Suite(ManifestFormatSuite):
    small_blocks: ClassVar = {"write.avro.block-size-bytes": "4096"}


BROKEN = {
    DropsFieldIds: "test_ids_are_kept_at_every_level",
    LosesTheLastBatch: "test_many_batches_keep_their_order",
    WritesInAnotherOrder: "test_many_batches_keep_their_order",
    TakesEmptyForNull: "test_every_nested_shape_reads_back",
    RestartsPositions: "test_positions_count_rows_of_the_file",
    IgnoresTheBatchSize: "test_batches_are_bounded",
    IgnoresTheOrderOfColumns: "test_columns_are_pruned_at_every_level",
    IgnoresSplits: "test_splits_read_every_row_once",
    LosesTheFirstRowOfASplit: "test_splits_read_every_row_once",
    SkipsByAnUnsoundFilter: "test_a_filter_leaves_no_matching_row_out",
    DropsWantedMapKeys: "test_map_keys_that_are_wanted_come",
    EncodesNullsAsValues: "test_columns_come_as_dictionaries",
    ForgetsMetadata: "test_key_value_metadata_comes_back",
    TellsBoundsThatAreTooTight: "test_metrics_are_true",
    CountsNoNulls: "test_metrics_are_true",
    CountsRowsTwice: "test_metrics_are_true",
    TellsNanForABound: "test_a_nan_is_no_bound",
    TellsAWrongSize: "test_the_size_is_that_of_the_file",
    CountsNoFlushedBytes: "test_the_size_counts_every_block_flush_and_key",
    PublishesWhatIsAborted: "test_an_aborted_file_is_never_seen",
    TakesDamageForAnEmptyFile: "test_damage_gets_one_typed_error",
    RaisesItsOwnErrors: "test_damage_gets_one_typed_error",
    NamesNoFile: "test_damage_gets_one_typed_error",
    CannotTravel: "test_it_pickles",
    ForgetsWhatIsRequired: "test_what_is_required_is_kept_at_every_level",
    GuessesIdsByPlace: "test_a_file_is_read_under_a_later_schema",
    TellsSanitisedNames: "test_a_column_may_have_any_name",
    LosesRowsWithoutColumns: "test_rows_are_counted_without_any_column",
    TellsAWrongCount: "test_rows_are_counted_without_any_column",
    ReadsOnce: "test_one_reader_reads_several_times",
    MixesFilesReadTogether: "test_files_read_together_are_read_as_one_by_one",
    CountsPositionsOfWhatItReads: "test_positions_are_right_under_filters_and_splits",
    IgnoresTheOffsetsOfSlices: "test_slices_of_batches_are_written_as_they_are",
    WritesWhatLiesBelowNulls: "test_what_is_below_nulls_does_not_come_back",
    BoundsWhatLiesBelowNulls: "test_values_below_null_parents_are_not_counted",
    OrdersTextsByUtf16: "test_metrics_of_strings_are_true",
    BoundsNegativeZeroByZero: "test_metrics_of_floats_are_true",
    CountsNullsOfParentsOnly: "test_metrics_of_nested_columns_are_true",
    SwallowsErrorsOfTheStorage: "test_a_stream_that_fails_fails_the_file",
    PublishesBeforeTheEnd: "test_a_file_is_not_seen_before_it_is_closed",
    LeavesItsInputOpen: "test_a_closed_reader_has_closed_its_input",
    AppendsNothing: "test_appended_blocks_come_after_the_old_ones",
    AppendsToAnything: "test_blocks_are_not_appended_to_a_file_of_another_schema",
    MakesUpRowsWhereTheFileEnds: "test_a_file_that_was_cut_off_gives_an_error_or_its_first_rows",
    SaysNothingOfWhereDamageIs: "test_damage_to_nested_columns_gets_one_typed_error",
}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "check"), BROKEN.items(), ids=lambda value: getattr(value, "__name__", value))
def test_a_broken_file_format_is_rejected_by_the_check_for_it(kind: type[FileFormat], check: str) -> None:
    alone = type("Suite", (Suite,), {name: None for name, _ in checks(ManifestFormatSuite) if name != check})
    assert failures(alone, {"file_format": lambda _: kind()}) == [check]


@pytest.mark.slow
def test_a_right_file_format_passes_every_check() -> None:
    assert failures(Suite, {"file_format": lambda _: Right()}) == []


@pytest.mark.parametrize("check", ["test_every_primitive_type_reads_back", "test_every_type_reads_back_at_every_place"])
def test_a_gap_that_is_declared_must_be_refused(check: str) -> None:
    others: dict[str, Any] = {name: None for name, _ in checks(ManifestFormatSuite) if name != check}
    alone = type("Suite", (Suite,), {**others, "unsupported": (FixedType,)})
    assert failures(alone, {"file_format": lambda _: Right()}) == [check]


def test_a_gap_that_is_not_declared_is_rejected() -> None:
    class HasNoUuids(Right):
        def open_writer(self, sink: OutputStream, schema: Schema, **options: Any) -> FormatWriter:
            if any(isinstance(field.field_type, UUIDType) for field in schema.fields):
                raise UnsupportedFeature("no uuids here")
            return super().open_writer(sink, schema, **options)

    check = "test_every_primitive_type_reads_back"
    others: dict[str, Any] = {name: None for name, _ in checks(ManifestFormatSuite) if name != check}
    rejecting = type("Suite", (Suite,), others)
    assert failures(rejecting, {"file_format": lambda _: HasNoUuids()}) == [check]
    declaring = type("Suite", (Suite,), {**others, "unsupported": (UUIDType,)})
    assert failures(declaring, {"file_format": lambda _: HasNoUuids()}) == []


def test_every_check_states_what_to_look_at_when_it_fails() -> None:
    for name, check in checks(ManifestFormatSuite):
        assert "If this fails" in (check.__doc__ or ""), name
