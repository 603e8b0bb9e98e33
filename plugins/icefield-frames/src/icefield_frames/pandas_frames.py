"""Scans as data frames of pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa
from icefield.errors import InvalidArgument

from icefield_frames.libraries import library, method_of

if TYPE_CHECKING:
    import pandas as pd

DtypeBackend: TypeAlias = Literal["numpy", "numpy_nullable", "pyarrow"]


def to_pandas(scan: Any, *, dtype_backend: DtypeBackend = "numpy", **options: Any) -> pd.DataFrame:
    """The rows as a pandas data frame.

    ``dtype_backend`` sets the kind of the columns. ``"numpy"``: the default of pyarrow; integers with nulls become
    floats. ``"numpy_nullable"``: pandas' nullable integers, floats, booleans and strings. ``"pyarrow"``: Arrow columns,
    with every type of the table kept. ``options`` go to ``pyarrow.Table.to_pandas``; a ``types_mapper`` among them is
    asked first.

    Raises ``MissingPlugin`` if pandas is not installed, and ``InvalidArgument`` for another backend, before anything
    is read.
    """
    library("pandas", "to_pandas")
    given = options.pop("types_mapper", None)
    if dtype_backend not in ("numpy", "numpy_nullable", "pyarrow"):
        raise InvalidArgument(
            f"dtype_backend is 'numpy', 'numpy_nullable' or 'pyarrow', as in pandas, not {dtype_backend!r}"
        )
    own = types_mapper(dtype_backend)
    mapper = given if own is None else own if given is None else (lambda kind: given(kind) or own(kind))
    return scan.to_arrow().to_pandas(types_mapper=mapper, **options)


def types_mapper(backend: DtypeBackend) -> Any:
    """The function from a type of Arrow to a type of pandas for a backend; None leaves all types to pyarrow."""
    if backend == "numpy":
        return None
    pandas = library("pandas", "to_pandas")
    if backend == "pyarrow":
        return pandas.ArrowDtype
    nullable = {
        pa.int32(): pandas.Int32Dtype(),
        pa.int64(): pandas.Int64Dtype(),
        pa.float32(): pandas.Float32Dtype(),
        pa.float64(): pandas.Float64Dtype(),
        pa.bool_(): pandas.BooleanDtype(),
        pa.string(): pandas.StringDtype(),
        pa.large_string(): pandas.StringDtype(),
    }
    return nullable.get


TO_PANDAS = method_of(to_pandas)
"""The service ``scan.to_pandas``."""
