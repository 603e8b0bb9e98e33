"""The tasks of a scan, and the context for reading them. Both are immutable and can be pickled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from icefield.base.secrets import without_userinfo
from icefield.expressions import AlwaysTrue, BooleanExpression
from icefield.manifest import DataFile
from icefield.partitioning import PartitionSpec
from icefield.schema import NameMapping, Schema
from icefield.storage import FileIO
from icefield.types import NestedField


@dataclass(frozen=True, slots=True)
class ScanContext:
    """The context that all tasks of a scan share. It is pickled with the tasks, so it only has data for reading them.

    ``schema``: the table's columns at the snapshot to read; residuals refer to them. ``case_sensitive``: how the names
    in an unbound residual are matched. ``projection``: the result columns, in order, metadata columns (``_file``,
    ``_pos``, ...) included. ``specs``: all partition specs of the table, by id. ``dropped``: the fields of other
    schemas of the table, by id, each with its enclosing structs; equality deletes may name them. ``name_mapping``: for
    files without field ids. ``dictionaries``: ids of columns to return as Arrow dictionaries. ``scan_id``: calls in one
    process with the same id share the deletes that they read; with None they are shared within a call only.
    """

    schema: Schema
    projection: Schema
    io: FileIO
    case_sensitive: bool = True
    specs: Mapping[int, PartitionSpec] = field(default_factory=dict)
    dropped: Mapping[int, NestedField] = field(default_factory=dict)
    name_mapping: NameMapping | None = None
    dictionaries: frozenset[int] = frozenset()
    scan_id: str | None = None


class TaskRows(ABC):
    """Planned files; each task is one row."""

    __slots__ = ()

    @abstractmethod
    def file(self, row: int) -> DataFile:
        """The data file."""

    @abstractmethod
    def residual(self, row: int) -> BooleanExpression:
        """The residual filter of the file, by its partition."""

    @abstractmethod
    def delete_files(self, row: int) -> tuple[DataFile, ...]:
        """The delete files that apply to the file."""

    def data_sequence_number(self, row: int) -> int | None:
        """The data sequence number of the file; None if the plan does not state it."""
        return None

    def file_sequence_number(self, row: int) -> int | None:
        """The sequence number of the commit that added the file; None if the plan does not state it."""
        return None


class FileScanTask:
    """A data file to read, or a byte range of it.

    A planned task is a row number in its plan's columns: its objects are created on first use, and when the task is
    pickled.
    """

    __slots__ = ("_range", "_row", "_rows")
    _rows: TaskRows
    _row: int
    _range: tuple[int, int] | None

    def __init__(
        self,
        file: DataFile,
        residual: BooleanExpression | None = None,
        start: int = 0,
        length: int | None = None,
        delete_files: tuple[DataFile, ...] = (),
        data_sequence_number: int | None = None,
        file_sequence_number: int | None = None,
    ) -> None:
        residual = AlwaysTrue() if residual is None else residual
        self._rows = _OneFile(file, residual, tuple(delete_files), data_sequence_number, file_sequence_number)
        self._row = 0
        rest = file.file_size_in_bytes - start if length is None else length
        self._range = None if start == 0 and length is None else (start, rest)

    @property
    def file(self) -> DataFile:
        """The data file; with statistics only if the plan includes them."""
        return self._rows.file(self._row)

    @property
    def residual(self) -> BooleanExpression:
        """The residual filter for the file's rows; ``AlwaysTrue`` if its partition proves the filter."""
        return self._rows.residual(self._row)

    @property
    def spec_id(self) -> int:
        """The partition spec of the file."""
        return self.file.spec_id

    @property
    def start(self) -> int:
        """The first byte of the range to read."""
        return 0 if self._range is None else self._range[0]

    @property
    def length(self) -> int:
        """The bytes to read from ``start``."""
        return self.file.file_size_in_bytes if self._range is None else self._range[1]

    @property
    def is_whole_file(self) -> bool:
        """Whether the task covers the file from end to end."""
        return self._range is None or self._range == (0, self.file.file_size_in_bytes)

    @property
    def delete_files(self) -> tuple[DataFile, ...]:
        """The delete files that apply to the file, by the rules of the format (spec: "Scan Planning")."""
        return self._rows.delete_files(self._row)

    @property
    def data_sequence_number(self) -> int | None:
        """The data sequence number of the file, by which deletes apply."""
        return self._rows.data_sequence_number(self._row)

    @property
    def file_sequence_number(self) -> int | None:
        """The sequence number of the commit that added the file."""
        return self._rows.file_sequence_number(self._row)

    def part(self, start: int, length: int) -> FileScanTask:
        """A task for a byte range of the same file."""
        task = PlannedTask(self._rows, self._row)
        task._range = (start, length)
        return task

    def _whole(self) -> tuple[Any, ...]:
        start, length = (0, None) if self._range is None else self._range
        numbers = (self.data_sequence_number, self.file_sequence_number)
        return (self.file, self.residual, start, length, self.delete_files, *numbers)

    def __reduce__(self) -> tuple[Any, ...]:
        return FileScanTask, self._whole()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileScanTask) and self._whole() == other._whole()

    def __hash__(self) -> int:
        return hash((self.file.file_path, self.start))

    def __repr__(self) -> str:
        path = without_userinfo(self.file.file_path)
        return f"FileScanTask({path!r}, start={self.start}, length={self.length})"


class PlannedTask(FileScanTask):
    """A task that is one row of a plan's columns."""

    __slots__ = ()

    def __init__(self, rows: TaskRows, row: int) -> None:
        self._rows = rows
        self._row = row
        self._range = None


@dataclass(frozen=True, slots=True)
class _OneFile(TaskRows):
    """The single row of a task that was built from a data file, or unpickled."""

    _file: DataFile
    _residual: BooleanExpression
    _delete_files: tuple[DataFile, ...]
    _data_sequence_number: int | None
    _file_sequence_number: int | None

    def file(self, row: int) -> DataFile:
        return self._file

    def residual(self, row: int) -> BooleanExpression:
        return self._residual

    def delete_files(self, row: int) -> tuple[DataFile, ...]:
        return self._delete_files

    def data_sequence_number(self, row: int) -> int | None:
        return self._data_sequence_number

    def file_sequence_number(self, row: int) -> int | None:
        return self._file_sequence_number
