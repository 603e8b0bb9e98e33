"""The suites for the broken formats: their properties make small blocks."""

from __future__ import annotations

from typing import ClassVar

from icefield.abc import FileFormat
from icefield_testing import FileFormatSuite, ManifestFormatSuite
from json_lines import BLOCK_ROWS, JsonLinesFormat


class OverAvro(ManifestFormatSuite):
    small_blocks: ClassVar = {"write.avro.block-size-bytes": "4096"}


class ByRows(FileFormatSuite):
    small_blocks: ClassVar = {BLOCK_ROWS: "100"}


def suite_of(kind: type[FileFormat]) -> type[FileFormatSuite]:
    return ByRows if issubclass(kind, JsonLinesFormat) else OverAvro
