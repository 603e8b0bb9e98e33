"""Scans as the types that inputs of assets are annotated with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
from dagster import DagsterInvalidDefinitionError
from icefield import Table
from icefield.scan import TableScan


def rows_as(kind: Any, scan: TableScan) -> Any:
    """The rows of a scan as an object of a type; as a table of Arrow where no type is stated.

    The types of Polars and pandas need icefield-frames.
    """
    made = _KINDS.get(f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}") if isinstance(kind, type) else None
    if kind is Any or kind is object:
        return scan.to_arrow()
    if made is None:
        raise DagsterInvalidDefinitionError(
            f"an input of the type {kind} cannot be loaded; annotate it as one of {', '.join(_KINDS)}"
        )
    return made(scan)


def is_table(kind: Any) -> bool:
    """Whether an input is to be the table itself."""
    return isinstance(kind, type) and issubclass(kind, Table)


_KINDS: dict[str, Callable[[Any], Any]] = {
    f"pyarrow.{pa.Table.__qualname__}": lambda scan: scan.to_arrow(),
    f"pyarrow.{pa.RecordBatchReader.__qualname__}": lambda scan: scan.to_arrow_batch_reader(),
    f"pyarrow.{pads.Dataset.__qualname__}": lambda scan: scan.to_dataset(),
    "polars.DataFrame": lambda scan: scan.to_polars(),
    "polars.LazyFrame": lambda scan: scan.lazy(),
    "pandas.DataFrame": lambda scan: scan.to_pandas(),
}
