"""Scans as frames of Polars, and lazy frames as rows for tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from icefield_frames.filters import UNKNOWN
from icefield_frames.libraries import lazy_polars, library, method_of
from icefield_frames.polars_files import native_frame
from icefield_frames.polars_filters import translated
from icefield_frames.selection import Selection, arrow_schema, translator_of

if TYPE_CHECKING:
    import polars as pl

_BATCH_ROWS = 131_072
"""The maximum number of rows in a frame that Polars hands over."""


def to_polars(scan: Any) -> pl.DataFrame:
    """The rows as a Polars data frame. Raises ``MissingPlugin`` if Polars is not installed."""
    frame: pl.DataFrame = library("polars", "to_polars").from_arrow(scan.to_arrow())
    return frame


def lazy(scan: Any) -> pl.LazyFrame:
    """The rows as a Polars lazy frame, which reads only what a query needs.

    Polars hands on the columns, the filter and the number of rows of a query. The filter prunes manifests, files and
    row groups as far as Iceberg can state it; Polars applies the rest of it to the rows, and reads local Parquet files
    without deletes itself. Each ``collect`` reads the version of the scan again. Raises ``MissingPlugin`` if Polars 2.0
    or later is not installed.
    """
    polars = lazy_polars()
    schema = polars.from_arrow(arrow_schema(scan).empty_table()).schema
    register = library("polars", "lazy", "io.plugins").register_io_source
    frame: pl.LazyFrame = register(PolarsSource(scan), schema=schema, is_pure=True)
    return frame


class PolarsSource:
    """The function that Polars calls to read a lazy frame. It can be pickled with its scan."""

    def __init__(self, scan: Any) -> None:
        self._scan = scan

    def __call__(
        self, names: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        """The chosen columns of the rows that match, in frames.

        ``n_rows``: the maximum number of rows before the filter. ``batch_size``: the maximum rows of a frame.
        """
        polars = library("polars", "lazy")
        known = None if names is None else tuple(names)
        translator = (
            None if predicate is None or n_rows is not None else translator_of(self._scan, nan_is_greatest=True)
        )
        found = UNKNOWN if translator is None else translated(predicate, translator)
        used = known
        if known is not None and predicate is not None:
            used = tuple(dict.fromkeys((*known, *predicate.meta.root_names())))
        native = None if known == () else native_frame(polars, Selection(self._scan, used, found.row_filter), n_rows)
        if native is not None:
            asked = native if n_rows is None else native.head(n_rows)
            asked = asked if predicate is None else asked.filter(predicate)
            yield from _computed(asked if known is None else asked.select(known), batch_size)
            return
        if predicate is None or found.is_exact:
            yield from self._frames(Selection(self._scan, known, found.row_filter, n_rows), None, batch_size, polars)
            return
        for frame in self._frames(Selection(self._scan, used, found.row_filter, n_rows), predicate, batch_size, polars):
            yield frame if known is None else _chosen(frame, known)

    def _frames(
        self, selection: Selection, predicate: Any, batch_size: int | None, polars: Any
    ) -> Iterator[pl.DataFrame]:
        batches = selection.read()
        first = next(batches, None)
        if first is None:
            schema = arrow_schema(self._scan)
            names = schema.names if selection.columns is None else selection.columns
            yield polars.from_arrow(pa.schema([schema.field(name) for name in names]).empty_table())
            return
        yield from _framed(first, predicate, batch_size, polars)
        for batch in batches:
            yield from _framed(batch, predicate, batch_size, polars)


def _chosen(frame: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    """The columns of a frame. Without columns it keeps its number of rows, which a selection forgets."""
    return frame.select(names) if names else frame.drop(frame.columns)


def _computed(frame: pl.LazyFrame, batch_size: int | None) -> Iterator[pl.DataFrame]:
    rows = batch_size or _BATCH_ROWS
    yield from frame.collect_batches(chunk_size=rows, maintain_order=True, lazy=True, engine="streaming")


def _framed(batch: pa.RecordBatch, predicate: Any, batch_size: int | None, polars: Any) -> Iterator[pl.DataFrame]:
    frame = polars.from_arrow(batch) if batch.num_columns else polars.DataFrame(height=batch.num_rows)
    if predicate is not None:
        frame = frame.filter(predicate)
    yield from (frame,) if batch_size is None or frame.height <= batch_size else frame.iter_slices(batch_size)


TO_POLARS = method_of(to_polars)
"""The service ``scan.to_polars``."""

LAZY = method_of(lazy)
"""The service ``scan.lazy``."""
