"""Frames of pandas, with columns of NumPy, of pandas' own nullable types and of Arrow."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest
from frame_tables import frame_table
from icefield import Table
from icefield.errors import InvalidArgument

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def table() -> Table:
    return frame_table(f"memory://{uuid.uuid4().hex}", files=2)[0]


def test_columns_are_those_of_pyarrow_by_default(table: Table) -> None:
    frame = table.scan("id < 12").to_pandas()
    pd.testing.assert_frame_equal(frame, table.scan("id < 12").to_arrow().to_pandas())
    assert str(frame["i"].dtype) == "float64"


def test_nullable_columns_keep_integers_with_nulls(table: Table) -> None:
    frame = table.scan().to_pandas(dtype_backend="numpy_nullable")
    kinds = {name: str(frame[name].dtype).partition("[")[0] for name in ("id", "new", "f", "d", "name", "b")}
    assert kinds == {"id": "Int64", "new": "Int32", "f": "Float32", "d": "Float64", "name": "string", "b": "boolean"}
    values = table.scan().to_arrow()["i"].to_pylist()
    assert frame["i"].isna().sum() == values.count(None) > 0
    assert [int(value) for value in frame["i"].dropna()] == [value for value in values if value is not None]


def test_arrow_columns_keep_every_type(table: Table) -> None:
    whole = table.scan().to_arrow()
    frame = table.scan().to_pandas(dtype_backend="pyarrow")
    assert {name: frame[name].dtype.pyarrow_dtype for name in frame} == {each.name: each.type for each in whole.schema}
    back = pa.Table.from_pandas(frame, preserve_index=False)
    assert repr(back.to_pylist()) == repr(whole.to_pylist())


def test_a_mapper_of_the_caller_is_asked_first(table: Table) -> None:
    mapper: dict[Any, Any] = {pa.int64(): pd.ArrowDtype(pa.int64())}
    frame = table.scan().to_pandas(dtype_backend="numpy_nullable", types_mapper=mapper.get)
    assert str(frame["id"].dtype) == "int64[pyarrow]"
    assert str(frame["new"].dtype) == "Int32"
    assert str(table.scan().to_pandas(types_mapper=mapper.get)["id"].dtype) == "int64[pyarrow]"


def test_another_backend_is_refused_before_anything_is_read(table: Table) -> None:
    with pytest.raises(InvalidArgument, match="dtype_backend is 'numpy', 'numpy_nullable' or 'pyarrow'"):
        table.scan("no_such = 1").to_pandas(dtype_backend="arrow")  # type: ignore[arg-type]
