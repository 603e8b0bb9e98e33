"""The base class of all scans: the selection of rows and columns, and the output formats."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa

from icefield.base.concurrency import lazy
from icefield.base.notebooks import html_of, short_repr
from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysTrue, BooleanExpression, Filter, bind
from icefield.metadata import TableMetadata
from icefield.metadata.properties import NAME_MAPPING_DEFAULT, find_value
from icefield.plugins import Extensible
from icefield.scan.deletes.key_columns import dropped_fields
from icefield.scan.partitions.united import UnitedPartition
from icefield.scan.tasks import ScanContext
from icefield.schema import Schema, parse_name_mapping
from icefield.storage import FileIO
from icefield.types import BinaryType, NestedField, StringType
from icefield.types.reserved import CHANGELOG_IDS, METADATA_COLUMNS, PARTITION, partition_field

if TYPE_CHECKING:  # services of icefield-frames
    from icefield_frames import ScanMethods as _Services
else:
    _Services = object


@dataclass(frozen=True, repr=False)
class BaseScan(Extensible, _Services):
    """Rows and columns of a table. Immutable: methods that change the selection return a new scan.

    ``row_filter`` is an expression, its string, or an expression of Polars or ``pyarrow.compute``. ``selected_fields``
    are names of columns (``"a.b"`` for nested ones; ``"*"`` is all) and of metadata columns (``_file``, ``_pos``, ...).
    ``limit`` is the maximum number of rows. Commits after the creation of the scan do not affect it.
    """

    services: ClassVar[str] = "scan-services"

    metadata: TableMetadata = field(repr=False)
    io: FileIO = field(repr=False)
    _: KW_ONLY
    row_filter: Filter = field(default_factory=AlwaysTrue)
    selected_fields: tuple[str, ...] = ("*",)
    case_sensitive: bool = True
    limit: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    dictionary_columns: tuple[str, ...] = ()
    identifier: tuple[str, ...] = ()

    __repr__ = short_repr
    _repr_html_ = html_of

    def __post_init__(self) -> None:
        if isinstance(self.limit, bool) or not isinstance(self.limit, Integral | None):
            raise InvalidArgument(f"limit is a whole number of rows, not {self.limit!r}")
        if self.limit is not None and self.limit < 0:
            raise InvalidArgument(f"limit must not be negative: {self.limit}")
        for names in ("selected_fields", "dictionary_columns"):
            given = getattr(self, names)
            if not isinstance(given, Iterable):
                raise InvalidArgument(f"{names} are names of columns, such as ['id'], not {given!r}")
            object.__setattr__(self, names, (given,) if isinstance(given, str) else tuple(given))
        object.__setattr__(self, "row_filter", self._expression_of(self.row_filter))

    def filter(self, row_filter: Filter) -> Self:
        """The rows that also match another filter."""
        return replace(self, row_filter=self.expression & self._expression_of(row_filter))

    def select(self, *names: str) -> Self:
        """Only these columns, replacing the previous selection."""
        return replace(self, selected_fields=names)

    def with_case_sensitive(self, case_sensitive: bool = True) -> Self:
        """Match column names with or without regard to case."""
        return replace(self, case_sensitive=case_sensitive)

    @lazy
    def schema(self) -> Schema:
        """The schema for the names in the filter and the selection: the table's current schema."""
        return self.metadata.schema()

    @lazy
    def projection(self) -> Schema:
        """The columns of the scan's result: table columns in table order, then metadata columns as selected.

        Raises ``InvalidArgument`` for an unknown name.
        """
        return self._rows_projection

    @lazy
    def context(self) -> ScanContext:
        """The context for reading the tasks of this scan, here or on another machine."""
        metadata = self.metadata
        mapping = find_value(metadata.properties, NAME_MAPPING_DEFAULT)
        return ScanContext(
            schema=self.schema,
            projection=self._rows_projection,
            io=self.io,
            case_sensitive=self.case_sensitive,
            specs={spec.spec_id: spec for spec in metadata.partition_specs},
            dropped=dropped_fields(self.schema, metadata.schemas),
            name_mapping=None if mapping is None else parse_name_mapping(mapping),
            dictionaries=self._dictionaries,
        )

    @abstractmethod
    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of batches, read ahead of the consumer in bounded memory."""

    def to_arrow(self) -> pa.Table:
        """The rows as one table."""
        return self.to_arrow_batch_reader().read_all().unify_dictionaries()

    def head(self, rows: int = 5) -> pa.Table:
        """The first rows that the scan finds, for a look at them. They come in no certain order."""
        return replace(self, limit=rows if self.limit is None else min(rows, self.limit)).to_arrow()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows for another library, by Arrow's stream interface; the library pulls the batches."""
        return self.to_arrow_batch_reader().__arrow_c_stream__(requested_schema)

    @lazy
    def _rows_projection(self) -> Schema:
        """The result columns that are read from rows."""
        return self._projected(tuple(dict.fromkeys(self.selected_fields)))

    def _projected(self, names: tuple[str, ...]) -> Schema:
        of_table, others = [], []
        for name in names:
            column = METADATA_COLUMNS.get(name)
            if column is None or self.schema.has_field(name):
                of_table.append(name)
            else:
                others.append(self._metadata_column(column))
        selected = self.schema.select(*of_table, case_sensitive=self.case_sensitive)
        return selected if not others else Schema(*selected.fields, *others, schema_id=selected.schema_id)

    @lazy
    def _dictionaries(self) -> frozenset[int]:
        found, top = set(), {column.field_id for column in self.schema.fields}
        for name in self.dictionary_columns:
            column = self.schema.find_field(name, self.case_sensitive)
            if column.field_id not in top or not isinstance(column.field_type, StringType | BinaryType):
                raise InvalidArgument(
                    f"column '{name}' cannot come as a dictionary: only columns of type string and binary that are not "
                    f"inside others can, and it is of type {column.field_type}",
                    column=name,
                )
            found.add(column.field_id)
        return frozenset(found)

    @property
    def _called(self) -> str:
        """The table's name for errors: its name in the catalog, or its location."""
        return ".".join(self.identifier) or self.metadata.location

    @property
    def expression(self) -> BooleanExpression:
        """The filter as an expression."""
        return self._expression_of(self.row_filter)

    def _expression_of(self, given: Filter) -> BooleanExpression:
        return self.io.plugins.expression_of(given, lambda: self.schema)

    @lazy
    def _bound_filter(self) -> BooleanExpression:
        return bind(self.schema, self.expression, self.case_sensitive)

    @lazy
    def _united_partition(self) -> UnitedPartition:
        return UnitedPartition.of(self.metadata, self.schema)

    def _metadata_column(self, column: NestedField) -> NestedField:
        if column.field_id == PARTITION.field_id:
            return partition_field(self._united_partition.type)
        if column.field_id in CHANGELOG_IDS:
            raise InvalidArgument(
                f"column '{column.name}' states changes from snapshot to snapshot, and this scan gives rows; "
                "table.incremental_changelog_scan() gives changes",
                column=column.name,
            )
        return column
