"""Only the needed columns are read: the selected columns, and the columns that the filter needs in a file."""

from __future__ import annotations

import io
from random import Random

import pyarrow as pa
import pytest
from icefield.abc import ReadRequest
from icefield.builtin.memory import MemoryFileSystem
from icefield.catalog import Table
from icefield.scan import reading
from tables import new_table

ROWS = 2_000
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("kind", pa.string()),
        ("big", pa.binary()),
        ("place", pa.struct([("x", pa.float64()), ("big", pa.binary())])),
    ]
)


@pytest.fixture(params=["parquet", "avro", "orc"])
def table(request: pytest.FixtureRequest) -> Table:
    made = new_table(["kind"], schema=SCHEMA, **{"write.format.default": request.param})
    noise = Random(7)
    rows = [
        {"id": n, "kind": "a", "big": noise.randbytes(2_000), "place": {"x": n / 2, "big": b"y" * 100}}
        for n in range(ROWS)
    ]
    made.append(pa.Table.from_pylist(rows, schema=SCHEMA))
    return made


def paths(columns: pa.Schema | pa.StructType, prefix: str = "") -> set[str]:
    found: set[str] = set()
    for field in columns:
        inner = paths(field.type, f"{prefix}{field.name}.") if pa.types.is_struct(field.type) else set()
        found |= inner or {prefix + field.name}
    return found


@pytest.mark.spec("SCAN-41")
@pytest.mark.parametrize(
    ("selected", "row_filter", "read"),
    [
        (("id",), "true", {"id"}),
        (("id",), "id > 10", {"id"}),
        (("id",), "place.x < 5", {"id", "place.x"}),
        (("id",), "kind = 'a'", {"id"}),  # the partition proves it
        (("id",), "kind = 'a' and place.x < 5", {"id", "place.x"}),
        (("place.x",), "id = 1", {"id", "place.x"}),
        (("place.x", "_pos", "_file"), "true", {"place.x"}),
        (("*",), "true", {"id", "kind", "big", "place.x", "place.big"}),
    ],
)
def test_columns_that_nobody_needs_are_not_asked_for(
    table: Table, selected: tuple[str, ...], row_filter: str, read: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[ReadRequest] = []

    def noted(*args: object, **kwargs: object) -> ReadRequest:
        asked.append(ReadRequest(*args, **kwargs))  # type: ignore[arg-type]
        return asked[-1]

    monkeypatch.setattr(reading, "ReadRequest", noted)
    found = table.scan(row_filter, selected).to_arrow()
    assert found.num_rows
    assert [paths(request.columns) for request in asked] == [read]
    assert [request.positions for request in asked] == ["_pos" in selected]


@pytest.mark.spec("SCAN-41")
def test_bytes_of_columns_that_nobody_needs_stay_where_they_are(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    if table.properties["write.format.default"] == "avro":
        pytest.skip("rows of Avro are together: a column is passed over, and not left in place")
    (task,) = table.scan().plan_files()
    taken: list[int] = []

    class Counting(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            taken.append(len(data))
            return data

        def readinto(self, buffer: object, /) -> int:
            count = super().readinto(buffer)  # type: ignore[arg-type]
            taken.append(count)
            return count

    monkeypatch.setattr(MemoryFileSystem, "open_input", lambda self, location: Counting(self._get(location)[0]))
    assert table.scan("place.x < 500", ("id",)).to_arrow().num_rows == 1_000
    narrow = sum(taken)
    taken.clear()
    table.scan().to_arrow()
    assert sum(taken) > 0.9 * task.file.file_size_in_bytes
    assert narrow < 0.5 * sum(taken)
