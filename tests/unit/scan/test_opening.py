"""The number of rows that a file may return, according to its manifest, if its format does not state the number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pyarrow as pa
import pytest
from icefield.abc import FormatReader, ReadRequest, Split
from icefield.errors import InvalidFile
from icefield.expressions import AlwaysTrue
from icefield.manifest import DataFile
from icefield.scan.opening import counted

COLUMNS = pa.schema([("n", pa.int64())])
PART: dict[str, Any] = {"split": Split(0, 10)}


class Rows:
    """A reader that gives these rows, and their positions on request."""

    record_count = None

    def __init__(self, *batches: list[int]) -> None:
        self.batches = batches

    def read(self, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            columns = {"n": batch, "_pos": batch} if request.positions else {"n": batch}
            yield pa.RecordBatch.from_pydict({name: pa.array(held, pa.int64()) for name, held in columns.items()})


def read(reader: Rows, count: int, **more: Any) -> int:
    file = DataFile(file_path="/f.avro", file_format="avro", record_count=count, file_size_in_bytes=100)
    return sum(batch.num_rows for batch in counted(file, cast(FormatReader, reader), ReadRequest(COLUMNS, **more)))


@pytest.mark.parametrize("more", [PART, {"row_filter": AlwaysTrue()}, {}])
def test_a_part_with_more_rows_than_the_whole_file_is_a_contradiction(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidFile, match="holds at least 4 rows, and its manifest says 3"):
        read(Rows([0, 1], [2, 3]), 3, **more)


@pytest.mark.parametrize("more", [PART, {"row_filter": AlwaysTrue()}])
def test_a_row_behind_the_end_is_a_contradiction(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidFile, match="holds at least 8 rows, and its manifest says 7"):
        read(Rows([4, 5], [], [6, 7]), 7, positions=True, **more)
    assert read(Rows([4, 5], [], [6, 7]), 8, positions=True, **more) == 4


@pytest.mark.parametrize("count", [-1, 4, 9])
def test_a_part_with_fewer_rows_proves_nothing(count: int) -> None:
    assert read(Rows([0, 1], [2, 3]), count, **PART) == 4


def said_of(reader: Rows, count: int, **more: Any) -> str:
    with pytest.raises(InvalidFile) as raised:
        read(reader, count, **more)
    return str(raised.value)


def test_the_error_says_how_many_rows_were_given_out_before_it() -> None:
    assert said_of(Rows([0, 1], [2, 3]), 3).endswith("; 2 of its rows were given out before this was seen")
    assert said_of(Rows([0, 1], [2, 3]), 5).endswith("; 4 of its rows were given out before this was seen")
    assert said_of(Rows([4, 5]), 5, positions=True, **PART).endswith("; none of its rows is given out")
    assert said_of(Rows([0, 1]), 1).endswith("; none of its rows is given out")
    known = Rows([0, 1])
    known.record_count = 2  # type: ignore[assignment]
    assert said_of(known, 1).endswith("; none of its rows is given out")
