"""Scans as data sets of pyarrow, which other libraries query with columns and filters of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs
from icefield.errors import UnsupportedFeature
from icefield.expressions import And, BooleanExpression
from icefield.scan import FileScanTask, ScanContext, read_tasks
from icefield.schema import Schema

from icefield_frames.arrow_filters import columns_of, translated, with_greatest_nan
from icefield_frames.filters import ALL, UNKNOWN, Translated, Translator
from icefield_frames.libraries import method_of
from icefield_frames.selection import Selection, arrow_schema, is_of_files, narrowed, translator_of, with_columns

Columns: TypeAlias = list[str] | tuple[str, ...] | dict[str, pc.Expression] | None

_PARALLEL_PARTS: Final = 64
"""The minimum number of parts of a data set, as long as each has 16 MiB."""


@dataclass(frozen=True)
class PushedFilters:
    """How the filters of a library become filters of a scan."""

    columns: Schema
    translator: Translator | None
    nan_is_greatest: bool

    def of(self, expression: pc.Expression | None) -> Translated:
        """The filter for an expression, as far as there is one."""
        if expression is None:
            return ALL
        return UNKNOWN if self.translator is None else translated(expression, self.translator)

    def scanner(
        self,
        schema: pa.Schema,
        columns: Columns,
        expression: pc.Expression | None,
        read: Callable[[tuple[str, ...] | None, BooleanExpression | None], Iterator[pa.RecordBatch]],
        batch_size: int | None,
        use_threads: bool,
    ) -> ds.Scanner:
        """A scanner of what ``read`` gives for columns and a filter. Arrow applies what no filter stands for."""
        found = self.of(expression)
        rest = None if found.is_exact else expression
        if rest is not None and self.nan_is_greatest:
            rest = with_greatest_nan(rest, self.columns)
        names = _needed(schema, columns)
        if rest is not None and names is not None:
            used = columns_of(rest)
            names = None if used is None else with_columns(names, used, schema.names)
        held = schema if names is None else pa.schema([schema.field(name) for name in names])
        reader = pa.RecordBatchReader.from_batches(held, read(names, found.row_filter))
        given = {} if batch_size is None else {"batch_size": batch_size}
        return ds.Scanner.from_batches(reader, columns=columns, filter=rest, use_threads=use_threads, **given)


class ScanDataset(ds.FileSystemDataset):  # type: ignore[misc]  # pyarrow has no types
    """A scan as a data set: each query plans the files anew, with the columns and the filter that it asks for.

    Deletes, evolved schemas and partitions are applied, as by the scan itself. ``nan_is_greatest``: filters compare NaN
    and nulls as SQL engines do, not as Arrow does. A function of Arrow that goes around ``scanner`` and would open the
    data files itself raises ``UnsupportedFeature``.
    """

    def __init__(self, scan: Any, *, nan_is_greatest: bool = False) -> None:
        self._scan = scan
        self._pushed = PushedFilters(
            scan.projection, translator_of(scan, nan_is_greatest=nan_is_greatest), nan_is_greatest
        )
        self._filter: pc.Expression | None = None
        # In C++ it is a data set of one file that cannot be opened.
        store, form = fs.PyFileSystem(_RefusingFiles()), ds.IpcFileFormat()
        super().__init__([form.make_fragment("rows", store)], arrow_schema(scan), form, store)

    def __reduce__(self) -> Any:
        return _dataset, (self._scan, self._pushed.nan_is_greatest, self._filter)

    def scanner(
        self,
        columns: Columns = None,
        filter: pc.Expression | None = None,
        batch_size: int | None = None,
        use_threads: bool = True,
        **options: Any,
    ) -> ds.Scanner:
        """A scanner, to be read once: of columns, names or named expressions, and of the rows that match a filter."""
        return self._pushed.scanner(
            self.schema,
            columns,
            self._both(filter),
            lambda names, row_filter: Selection(self._scan, names, row_filter).read(),
            batch_size,
            use_threads,
        )

    def filter(self, expression: pc.Expression) -> ScanDataset:
        """The rows that also match another filter."""
        return _dataset(self._scan, self._pushed.nan_is_greatest, self._both(expression))

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[WholeFragment | ScanFragment]:
        """Parts of the data set to be read side by side. ``filter`` leaves out files that hold no matching rows."""
        scan = self._scan
        if not is_of_files(scan) or scan.limit is not None:
            yield WholeFragment(self)
            return
        selection = Selection(scan, None, self._pushed.of(self._both(filter)).row_filter)
        rows = SharedRows(self._pushed, self.schema, scan.context, scan.expression, self._filter)
        # At least one: engines plan no data set without parts.
        yield from (ScanFragment(rows, tasks) for tasks in selection.tasks(_PARALLEL_PARTS) or [()])

    @property
    def files(self) -> list[str]:
        """The locations of the data files that the scan reads."""
        return [task.file.file_path for task in self._scan.plan_files()]

    def count_rows(self, filter: pc.Expression | None = None, **options: Any) -> int:
        """The number of rows that match. Files that match as a whole are not read."""
        both = self._both(filter)
        found = self._pushed.of(both)
        if found.is_exact:
            return Selection(self._scan, None, found.row_filter).count()
        return int(self.scanner(columns=[], filter=filter).count_rows())

    def sort_by(self, sorting: str | list[tuple[str, str]], **options: Any) -> ds.InMemoryDataset:
        """The rows in an order, in memory."""
        return self._in_memory().sort_by(sorting, **options)

    def join(self, right_dataset: Any, *keys: Any, **options: Any) -> ds.InMemoryDataset:
        """The rows joined with another data set, in memory; the arguments are those of ``pyarrow.dataset``."""
        return self._in_memory().join(_loaded(right_dataset), *keys, **options)

    def join_asof(self, right_dataset: Any, *keys: Any, **options: Any) -> ds.InMemoryDataset:
        """The rows joined with the nearest of another data set, in memory; see ``pyarrow.dataset``."""
        return self._in_memory().join_asof(_loaded(right_dataset), *keys, **options)

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Not for a scan, which states its own schema. Raises ``UnsupportedFeature``."""
        raise UnsupportedFeature("the schema of a scan is that of the table; select columns, or cast the rows")

    def _both(self, other: pc.Expression | None) -> pc.Expression | None:
        return _both(self._filter, other)

    def _in_memory(self) -> ds.InMemoryDataset:
        return ds.dataset(self.to_table())


class WholeFragment:
    """A data set that has one part. It has the methods of ``pyarrow.dataset.Fragment`` that read."""

    def __init__(self, dataset: ScanDataset) -> None:
        self._dataset = dataset

    @property
    def physical_schema(self) -> pa.Schema:
        """The schema of the data set."""
        return self._dataset.schema

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Columns = None,
        filter: pc.Expression | None = None,
        batch_size: int | None = None,
        use_threads: bool = True,
        **options: Any,
    ) -> ds.Scanner:
        """A scanner of this part, to be read once; see ``ScanDataset.scanner``."""
        return self._dataset.scanner(columns, filter, batch_size, use_threads)

    def to_batches(self, schema: pa.Schema | None = None, **options: Any) -> Iterator[pa.RecordBatch]:
        """The rows in batches; the options are those of ``scanner``."""
        yield from self.scanner(schema, **options).to_batches()

    def to_table(self, schema: pa.Schema | None = None, **options: Any) -> pa.Table:
        """The rows as a table; the options are those of ``scanner``."""
        return self.scanner(schema, **options).to_table()

    def count_rows(self, **options: Any) -> int:
        """The number of rows; the options are those of ``scanner``."""
        return int(self.scanner(columns=[], **options).count_rows())


@dataclass(frozen=True)
class SharedRows:
    """The values that all parts of a data set share: they go to workers without the metadata of the table."""

    pushed: PushedFilters
    schema: pa.Schema
    context: ScanContext
    row_filter: BooleanExpression
    expression: pc.Expression | None


class ScanFragment(WholeFragment):
    """Some files of a data set, to be read in any process: it can be pickled."""

    def __init__(self, rows: SharedRows, tasks: tuple[FileScanTask, ...]) -> None:
        self._rows = rows
        self._tasks = tasks

    @property
    def physical_schema(self) -> pa.Schema:
        """The schema of the data set."""
        return self._rows.schema

    @property
    def size_bytes(self) -> int:
        """The bytes of the files to read."""
        return sum(task.length for task in self._tasks)

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Columns = None,
        filter: pc.Expression | None = None,
        batch_size: int | None = None,
        use_threads: bool = True,
        **options: Any,
    ) -> ds.Scanner:
        """A scanner of these files, to be read once; see ``ScanDataset.scanner``."""
        rows = self._rows
        both = _both(rows.expression, filter)
        return rows.pushed.scanner(rows.schema, columns, both, self._read, batch_size, use_threads)

    def _read(self, names: tuple[str, ...] | None, row_filter: BooleanExpression | None) -> Iterator[pa.RecordBatch]:
        residual = self._rows.row_filter
        if row_filter is not None:
            residual = And(residual, row_filter)
        tasks = [
            FileScanTask(
                task.file,
                residual,
                task.start,
                task.length,
                task.delete_files,
                task.data_sequence_number,
                task.file_sequence_number,
            )
            for task in self._tasks
        ]
        return read_tasks(tasks, narrowed(self._rows.context, names))


class _RefusingFiles(fs.FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """The files of a data set for Arrow's own readers, which get none."""

    def get_type_name(self) -> str:
        return "icefield"

    def _refuse(self, *_: Any) -> NoReturn:
        raise UnsupportedFeature(
            "Arrow alone cannot read the data files of a table: it does not know their deletes. Give the call "
            "scan.to_arrow_batch_reader(), or dataset.scanner(...)"
        )

    get_file_info = get_file_info_selector = normalize_path = _refuse
    open_input_stream = open_input_file = open_output_stream = open_append_stream = _refuse
    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = move = copy_file = _refuse


def _both(first: pc.Expression | None, second: pc.Expression | pa.Scalar | None) -> pc.Expression | None:
    """The conjunction of two filters; DataFusion gives a scalar for a constant."""
    second = pc.scalar(second) if isinstance(second, pa.Scalar) else second
    return (second if first is None else first) if first is None or second is None else first & second


def _dataset(scan: Any, nan_is_greatest: bool, expression: pc.Expression | None) -> ScanDataset:
    made = ScanDataset(scan, nan_is_greatest=nan_is_greatest)
    made._filter = expression
    return made


def _loaded(other: Any) -> Any:
    return other._in_memory() if isinstance(other, ScanDataset) else other


def _needed(schema: pa.Schema, columns: Columns) -> tuple[str, ...] | None:
    """The columns that a projection reads; None for all."""
    if columns is None:
        return None
    if not isinstance(columns, dict):
        return tuple(dict.fromkeys(columns))
    used: set[str] = set()
    for expression in columns.values():
        found = columns_of(expression)
        if found is None:
            return None
        used |= found
    return with_columns((), used, schema.names)


def to_dataset(scan: Any) -> ScanDataset:
    """The rows as a data set of pyarrow. Filters and columns of its queries are pushed into the scan."""
    return ScanDataset(scan)


TO_DATASET = method_of(to_dataset)
"""The service ``scan.to_dataset``."""
