"""A format by rows: the kit rejects a fault between large blocks, and accepts a right format that works otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from icefield.abc import FileFormat, FormatAbility, WrittenFile
from icefield.toolkit import Block, bounded, conform
from icefield_testing import FileFormatSuite
from icefield_testing.formats import PositionChecks, ReadingChecks
from icefield_testing.formats.base import FormatChecks
from json_lines import BLOCK_ROWS, JsonLinesReader, JsonLinesWriter
from kit_checks import checks, rejections
from mutants.formats.by_rows import (
    LARGE,
    Batches,
    Right,
)
from mutants.formats.large import LARGE_CHECKS


def suite(check: str, small_blocks: Mapping[str, str]) -> type[FileFormatSuite]:
    """The suite with one check alone."""
    others: dict[str, Any] = {name: None for name, _ in checks(FileFormatSuite) if name != check}
    return type("Suite", (FileFormatSuite,), {**others, "small_blocks": small_blocks})


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "check"), LARGE_CHECKS.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_what_is_wrong_between_large_blocks_is_found_where_nothing_makes_small_ones(
    kind: type[FileFormat], check: str
) -> None:
    large = type("Large", (kind,), {"block_rows": LARGE})
    assert rejections(suite(check, {}), {"file_format": lambda _: large()}).keys() == {check}


class ReadsWholeFiles(Right):
    """Decodes all columns instead of the requested ones, in batches of its own size."""

    class reader(JsonLinesReader):
        def read_block(self, number: int, columns: pa.Schema) -> Batches:
            for batch in super().read_block(number, self.schema):
                assert conform(batch, columns).num_rows == batch.num_rows
                yield from bounded([batch], 333)


class HasOneBlock(Right):
    """Does not say that its files can be divided."""

    abilities = frozenset({FormatAbility.FILTERS})
    block_rows = 1 << 40


class HasVirtualOffsets(Right):
    """Blocks whose stated offsets are not the offsets of their bytes."""

    class reader(JsonLinesReader):
        @property
        def blocks(self) -> Sequence[Block]:
            return [Block(offset, block.rows) for offset, block in enumerate(super().blocks)]

    class writer(JsonLinesWriter):
        def close(self) -> WrittenFile:
            written = super().close()
            return replace(written, split_offsets=[*range(len(written.split_offsets or ()))] or None)


RIGHT = {ReadsWholeFiles: ReadingChecks, HasOneBlock: PositionChecks, HasVirtualOffsets: PositionChecks}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "group"), RIGHT.items(), ids=lambda value: value.__name__)
def test_a_right_format_by_rows_passes(kind: type[FileFormat], group: type[FormatChecks]) -> None:
    reading = type("Suite", (group,), {"small_blocks": {BLOCK_ROWS: "100"}})
    assert rejections(reading, {"file_format": lambda _: kind()}) == {}
