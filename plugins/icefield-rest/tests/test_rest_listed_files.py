"""Files of a table from a service's JSON: their partition values equal the listed values."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from icefield.abc import ScanPlanRequest
from icefield.errors import InvalidMetadata
from icefield.expressions import AlwaysTrue
from icefield.schema import Schema
from icefield.types import NestedField, parse_type
from icefield_rest.listed_files import ListedFile, ListedReader
from planned_tables import PlannedTable, spec

SCHEMA = Schema(
    NestedField(1, "number", parse_type("int"), False),
    NestedField(2, "share", parse_type("double"), False),
    NestedField(3, "name", parse_type("string"), False),
)


def reader() -> ListedReader:
    specs = [spec((1, "identity", "number"), (2, "identity", "share"), (3, "identity", "name"))]
    table = PlannedTable(specs=specs, schema=SCHEMA)
    table.commit()
    metadata = table.metadata
    return ListedReader(ScanPlanRequest(metadata, metadata.schema(), 1, (), AlwaysTrue()))


def listed(*partitions: str, spec_id: int = 0) -> list[ListedFile]:
    found = [
        f'{{"file-path": "memory://t/{number}.parquet", "file-format": "PARQUET", "record-count": 1, '
        f'"file-size-in-bytes": 7, "spec-id": {spec_id}, "partition": {partition}}}'
        for number, partition in enumerate(partitions)
    ]
    return [msgspec.json.decode(each, type=ListedFile) for each in found]


def partitions(*given: str) -> list[tuple[Any, ...]]:
    return [file.partition for file in reader().data_files(listed(*given))]


def test_the_partition_of_each_file_is_its_own():
    assert partitions('[1, 0.5, "a"]', '[2, 0.5, "a"]', '[1, null, "b"]', '{"1002": "c", "1000": 3}') == [
        (1, 0.5, "a"),
        (2, 0.5, "a"),
        (1, None, "b"),
        (3, None, "c"),
    ]


def test_zeros_of_both_signs_stay_apart():
    signs = [math.copysign(1, share) for _, share, _ in partitions("[1, 0.0, null]", "[1, -0.0, null]")]
    assert signs == [1, -1]


@pytest.mark.parametrize(
    "wrong",
    ['[true, 0.5, "a"]', '[1.0, 0.5, "a"]', '["1", 0.5, "a"]', '[[1], 0.5, "a"]', '[1, 0.5, {"a": 1}]', "[1, 0.5]"],
)
def test_a_value_that_equals_another_of_the_right_type_is_refused_with_the_name_of_its_file(wrong: str):
    with pytest.raises(InvalidMetadata, match=r"memory://t/1\.parquet with"):
        partitions('[1, 0.5, "a"]', wrong, '[1, 0.5, "a"]')


def test_files_of_another_kind_are_refused_wherever_they_stand():
    of_rows, of_deletes = (
        msgspec.structs.replace(listed('[1, 0.5, "a"]')[0], content=content) for content in ("data", "equality-deletes")
    )
    assert [file.content.name for file in reader().delete_files([of_deletes])] == ["EQUALITY_DELETES"]
    for read, files in ((reader().data_files, [of_rows, of_deletes]), (reader().delete_files, [of_deletes, of_rows])):
        with pytest.raises(InvalidMetadata, match="the service lists"):
            read(files)
    with pytest.raises(InvalidMetadata, match="'rows'"):
        reader().data_files([of_rows, msgspec.structs.replace(of_rows, content="rows")])
    with pytest.raises(InvalidMetadata, match="-1 bytes"):
        reader().data_files([of_rows, msgspec.structs.replace(of_rows, file_size_in_bytes=-1)])
