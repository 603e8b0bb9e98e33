"""Formats by rows that are broken between large blocks, where no property makes small ones."""

from __future__ import annotations

from icefield.abc import FileFormat

from mutants.formats.by_rows import (
    CountsPositionsFromTheSplit,
    CountsPositionsOfWhatAFilterLeaves,
    LosesTheFirstRowOfASplit,
    ReadsBlocksThatASplitTouches,
    RestartsPositionsWithEachBlock,
    TakesAFilterForExclusive,
)

LARGE_CHECKS: dict[type[FileFormat], str] = {
    RestartsPositionsWithEachBlock: "test_positions_go_on_through_a_large_file",
    CountsPositionsFromTheSplit: "test_splits_of_a_large_file_read_every_row_once",
    ReadsBlocksThatASplitTouches: "test_splits_of_a_large_file_read_every_row_once",
    LosesTheFirstRowOfASplit: "test_splits_of_a_large_file_read_every_row_once",
    TakesAFilterForExclusive: "test_a_filter_on_a_large_file_leaves_no_matching_row_out",
    CountsPositionsOfWhatAFilterLeaves: "test_a_filter_on_a_large_file_leaves_no_matching_row_out",
}
