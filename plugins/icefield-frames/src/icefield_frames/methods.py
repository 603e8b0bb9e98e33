"""The methods that this plugin adds to scans, for type checkers: a scan finds them by hook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import daft
    import dask.dataframe as dd
    import datafusion
    import duckdb
    import pandas as pd
    import polars as pl
    import ray.data

    from icefield_frames.datasets import ScanDataset
    from icefield_frames.pandas_frames import DtypeBackend


class ScanMethods:
    """The methods of scans. Type checkers take it for a base class of scans; it is none when a program runs."""

    if TYPE_CHECKING:

        def to_pandas(self, *, dtype_backend: DtypeBackend = "numpy", **options: Any) -> pd.DataFrame:
            """The rows as a pandas data frame."""

        def to_polars(self) -> pl.DataFrame:
            """The rows as a Polars data frame."""

        def lazy(self) -> pl.LazyFrame:
            """The rows as a Polars lazy frame, which reads only what a query needs."""

        def to_dataset(self) -> ScanDataset:
            """The rows as a data set of pyarrow."""

        def to_duckdb(self, table_name: str, connection: Any = None) -> duckdb.DuckDBPyConnection:
            """Register the rows as a table of a DuckDB connection, and return the connection."""

        def to_datafusion(self, table_name: str, context: Any = None) -> datafusion.SessionContext:
            """Register the rows as a table of a DataFusion session, and return the session."""

        def to_ray(self, **options: Any) -> ray.data.Dataset:
            """The rows as a Ray dataset, whose tasks read the files."""

        def to_daft(self) -> daft.DataFrame:
            """The rows as a Daft frame, which reads only what a query needs."""

        def to_dask(self, *, dtype_backend: DtypeBackend = "pyarrow") -> dd.DataFrame:
            """The rows as a Dask data frame, with a partition for each group of scan tasks."""
