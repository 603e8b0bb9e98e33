"""PyIceberg and DuckDB compared with a model: the rows that they read, and the named gaps that are not compared.

Each comparison and each gap is counted, so that a test can say that most were compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from engines import DuckDBEngine
from icefield.catalog import Table
from icefield.types import IcebergType, ListType, MapType, NestedField, StructType
from peers import altered, as_pyiceberg_reads, duckdb_rows, sorted_rows


def formats_of(table: Table) -> set[str]:
    """The file formats of the current snapshot's data files."""
    return {str(name).lower() for name in table.inspect.data_files()["file_format"].to_pylist()}


def delete_formats_of(table: Table) -> set[str]:
    """The file formats of the current snapshot's delete files."""
    return {str(name).lower() for name in table.inspect.delete_files()["file_format"].to_pylist()}


def history_of(table: Table) -> list[NestedField]:
    """The fields of every schema that the table ever had."""
    return [found for schema in table.schemas().values() for found in schema.id_to_field.values()]


def gap_of_pyiceberg(table: Table, wanted: pa.Table) -> str | None:
    """Why PyIceberg 0.12 cannot read a table, or None."""
    history = history_of(table)
    if any(str(found.field_type) == "variant" for found in history):
        return "refuses metadata with variants"
    if any(found.has_default and str(found.field_type).endswith("_ns") for found in history):
        return "refuses metadata with defaults of nanoseconds"
    if "avro" in formats_of(table):
        return "reads no Avro"
    kinds = {str(found.field_type).partition("[")[0] for found in table.schema().id_to_field.values()}
    if "orc" in formats_of(table) and kinds & {"uuid", "fixed", "time", "timestamp", "timestamptz"}:
        return "takes no UUID, fixed and time from ORC, and timestamps from no map or list of it"
    if "orc" in formats_of(table) and any(_repeats_required(found.field_type) for found in table.schema().fields):
        return "takes no null struct from lists and maps of ORC where a part of it is required"
    if _has_renamed_in_nested_repetitions(table):
        return "reads null for a renamed field of structs in a list or map right within another, in its own tables too"
    if "uuid" in kinds and not wanted.num_rows:
        return "makes no empty table with UUIDs"
    return None


def _repeats_required(kind: IcebergType, *, repeated: bool = False) -> bool:
    """Whether a list or map holds structs that have required fields."""
    match kind:
        case StructType():
            inner = any(_repeats_required(child.field_type, repeated=repeated) for child in kind.fields)
            return inner or (repeated and any(child.required for child in kind.fields))
        case ListType():
            return _repeats_required(kind.element_type, repeated=True)
        case MapType():
            return _repeats_required(kind.value_type, repeated=True)
    return False


def _has_renamed_in_nested_repetitions(table: Table) -> bool:
    """Whether a renamed field lies in a list or map that is directly inside another list or map."""
    names: dict[int, set[str]] = {}
    for found in history_of(table):
        names.setdefault(found.field_id, set()).add(found.name)
    repeated = (ListType, MapType)
    outer = [
        found.field_type for found in table.schema().id_to_field.values() if isinstance(found.field_type, repeated)
    ]
    inner = [child.field_type for kind in outer for child in kind.children if isinstance(child.field_type, repeated)]
    return any(len(names[number]) > 1 for kind in inner for number in _ids_below(kind))


def _ids_below(kind: IcebergType) -> Iterator[int]:
    for child in kind.children if isinstance(kind, (StructType, ListType, MapType)) else ():
        yield child.field_id
        yield from _ids_below(child.field_type)


def _has_required_parts(table: Table) -> bool:
    """Whether some struct of the table has a required field."""
    kinds = [found.field_type for found in table.schema().id_to_field.values()]
    return any(isinstance(kind, StructType) and any(child.required for child in kind.fields) for kind in kinds)


def _promotes_dates(table: Table) -> bool:
    """Whether a column that was a date is a timestamp."""
    history = history_of(table)
    dates = {found.field_id for found in history if str(found.field_type) == "date"}
    return any(found.field_id in dates and str(found.field_type).startswith("timestamp") for found in history)


def _divides_by_fixed(table: Table) -> bool:
    """Whether a partition tuple has two values of one fixed or decimal type: Avro gives the second type by its name."""
    kinds = {found.field_id: str(found.field_type) for found in history_of(table)}
    sources = (
        [kinds[field.source_id] for field in spec.fields if field.source_id in kinds] for spec in table.specs().values()
    )
    named = ([kind for kind in found if kind.startswith(("fixed", "decimal"))] for found in sources)
    return any(len(set(found)) < len(found) for found in named)


def _was_version_1(table: Table) -> bool:
    """Whether a table of a later version has snapshots from version 1."""
    return table.format_version > 1 and any(not snapshot.sequence_number for snapshot in table.snapshots())


@dataclass(frozen=True)
class Failure:
    """A known failure of a peer: its error, and a predicate for the tables that cause it."""

    peer: str
    error: str
    of: Callable[[Table], bool]
    reason: str


FAILURES = (
    Failure(
        "PyIceberg",
        "nulls in input cannot be viewed as non-nullable",
        _has_required_parts,
        "views no null structs with required parts",
    ),
    Failure("PyIceberg", "object has no attribute 'tz'", _promotes_dates, "promotes no date to a timestamp"),
    Failure("PyIceberg", "Cannot promote date to timestamp", _promotes_dates, "promotes no date to a timestamp"),
    Failure("PyIceberg", "Type not recognized: fixed_", _divides_by_fixed, "knows no Avro type by its name"),
    Failure("PyIceberg", "Type not recognized: decimal_", _divides_by_fixed, "knows no Avro type by its name"),
    Failure(
        "PyIceberg",
        "Delete file format not supported: FileFormat.AVRO",
        lambda table: "avro" in delete_formats_of(table),
        "reads no deletes in Avro",
    ),
    Failure(
        "DuckDB",
        "manifest_entry.sequence_number is only allowed to be NULL for ADDED entries",
        _was_version_1,
        "takes no removed entries of manifests of version 1, which have no sequence numbers, once it is upgraded",
    ),
)


def known_failure(peer: str, table: Table, error: Exception) -> str | None:
    """The known reason why the peer fails on the table; None for any other failure."""
    known = (each for each in FAILURES if each.peer == peer and each.error in str(error) and each.of(table))
    return next((each.reason for each in known), None)


def gap_of_duckdb(table: Table, wanted: pa.Table) -> str | None:
    """Why DuckDB 1.5 cannot read a table, or None."""
    if formats_of(table) - {"parquet"}:
        return "reads Parquet only"
    if any(str(found.field_type) in ("unknown", "timestamptz_ns", "variant") for found in history_of(table)):
        return "refuses metadata with some types of version 3"
    snapshot = table.current_snapshot()
    if table.format_version > 1 and snapshot is not None and not snapshot.sequence_number:
        return "takes no manifest list of before an upgrade from version 1, which has no sequence numbers"
    specs = {table.specs()[number] for number in table.inspect.manifests()["partition_spec_id"].to_pylist()}
    if len({bool(spec.fields) for spec in specs}) > 1:
        return "ends the process where manifests have partitions and others have none"
    return None


@dataclass
class PeerReadings:
    """The peers, and counts of the comparisons and of the gaps."""

    duck: DuckDBEngine
    compared: Counter[str] = field(default_factory=Counter)
    gaps: Counter[str] = field(default_factory=Counter)

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[PeerReadings]:
        """With DuckDB's engine running; skips where a peer is not installed."""
        pytest.importorskip("pyiceberg")
        pytest.importorskip("duckdb_extension_httpfs")
        with DuckDBEngine() as engine:
            yield cls(engine)

    def start(self) -> None:
        """Count from zero."""
        self.compared.clear()
        self.gaps.clear()

    def compare(self, table: Table, wanted: pa.Table) -> None:
        """Check that each peer that can reads these rows of the current snapshot."""
        for name, gap, read, differently in (
            ("PyIceberg", gap_of_pyiceberg, self._pyiceberg, as_pyiceberg_reads),
            ("DuckDB", gap_of_duckdb, self._duckdb, None),
        ):
            reason = gap(table, wanted)
            if reason is not None:
                self.gaps[f"{name} {reason}"] += 1
                continue
            schema = table.schema()
            try:
                theirs = read(table)
            except Exception as error:
                known = known_failure(name, table, error)
                if known is None:
                    raise
                self.gaps[f"{name} {known}"] += 1
                continue
            both = (theirs, wanted)
            if differently is not None:
                # Both sides are changed, because PyIceberg reads a column that a file lacks as null.
                both = tuple(altered(rows, schema, differently) for rows in both)
            found, modelled = (Counter(sorted_rows(rows, schema)) for rows in both)
            assert found == modelled, f"only in {name}: {found - modelled}; only in the model: {modelled - found}"
            self.compared[name] += 1

    def told(self) -> str:
        """The counts."""
        return f"compared {dict(self.compared)}, gaps {dict(self.gaps)}"

    def _pyiceberg(self, table: Table) -> pa.Table:
        from pyiceberg.table import StaticTable

        return StaticTable.from_metadata(table.metadata_location).scan().to_arrow()

    def _duckdb(self, table: Table) -> pa.Table:
        return duckdb_rows(self.duck, table)

    def check(self, file_format: str) -> None:
        """Check that most readings of tables that the peers can read were compared; too few readings are not judged."""
        gaps, compared = sum(self.gaps.values()), sum(self.compared.values())
        if file_format == "parquet" and gaps + compared >= 20:
            assert compared > gaps, self.told()
