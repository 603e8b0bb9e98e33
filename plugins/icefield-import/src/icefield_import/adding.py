"""``add_files`` of tables and transactions: files that were written elsewhere, added where they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from types import MethodType
from typing import Any

from icefield import FileIO, Table
from icefield.abc import OperationProgress
from icefield.engine import NAME_MAPPING_DEFAULT
from icefield.errors import InvalidArgument
from icefield.manifest import DataFile
from icefield.metadata import MAIN_BRANCH
from icefield.storage import given_location
from icefield.toolkit import map_ahead
from icefield.transaction import AppendFiles, Transaction, UpdateProperties, WriteResult

from icefield_import.checks import FILES_AT_ONCE
from icefield_import.describer import FileDescriber
from icefield_import.folders import real_files
from icefield_import.hive_folders import column_values
from icefield_import.shared_folders import refuse_shared_files

_NO_STRINGS: Mapping[str, str] = {}
_NO_VALUES: Mapping[str, Mapping[str, Any]] = {}


def add_files(
    self: Table | Transaction[Any],
    file_paths: Iterable[str | PathLike[str]] | str | PathLike[str],
    snapshot_properties: Mapping[str, str] = _NO_STRINGS,
    check_duplicate_files: bool = True,
    branch: str | None = MAIN_BRANCH,
    partition_values: Mapping[str, Mapping[str, Any]] = _NO_VALUES,
    file_format: str | None = None,
    hive_partitioning: bool = False,
) -> WriteResult:
    """Add files that were written elsewhere to the table, as they are.

    The format is ``file_format``, or else the format that a suffix or first bytes show. Each file must be in one
    partition. If a file has no field ids and the table no name mapping, a mapping is stored. ``partition_values``
    are values of columns that files lack, by location and column name; ``hive_partitioning`` takes the other values
    from folders such as ``day=2024-01-01``, whose names are percent-decoded. The table must have identity partition
    fields of these columns. ``check_duplicate_files`` makes sure on commit that no file is in the table already,
    however its location is spelled. A file outside of the table's own folders stays when the table no longer needs it.
    A file in a folder of data that tables may share is refused, as it could not be told from the table's own files.
    Raises ``InvalidArgument``, ``InvalidFile`` for columns that cannot be read as the table's and for nulls in required
    columns, ``FileMissing``.
    """
    if isinstance(self, Table):
        with self.transaction() as tx:
            return add_files(
                tx,
                file_paths,
                snapshot_properties,
                check_duplicate_files,
                branch,
                partition_values,
                file_format,
                hive_partitioning,
            )
    self.expect_branch(branch)
    describer = FileDescriber(self.shape, self.io)
    locations = distinct_locations(self.io, self.shape.location, file_paths)
    refuse_shared_files(self.io, self.shape, locations)
    stated = {given_location(location): values for location, values in partition_values.items()}
    if unknown := stated.keys() - set(locations):
        raise InvalidArgument(f"partition_values names {min(unknown)}, which is none of the files that are added")
    schema = self.shape.schema()

    def described(location: str) -> DataFile:
        named = column_values(schema, location) if hive_partitioning else {}
        return describer.describe(location, {**named, **stated.get(location, {})}, file_format=file_format)

    reading = map_ahead(locations, described, FILES_AT_ONCE)
    event = OperationProgress(self.context.name, "add-files", "files", 0, len(locations))
    files = list(self.io.listeners.counting(reading, event))
    if describer.needs_mapping and NAME_MAPPING_DEFAULT.name not in self.shape.properties:
        UpdateProperties(self.stage).set({NAME_MAPPING_DEFAULT.name: describer.mapping.to_string()}).commit()
    action = AppendFiles(self.stage, branch=branch, snapshot_properties=snapshot_properties)
    (action.append_file(*files) if check_duplicate_files else action.append_fresh(files)).commit()
    return action.write_result


def adding_files(changed: Table | Transaction[Any]) -> MethodType:
    """``add_files`` of a table or a transaction."""
    return MethodType(add_files, changed)


def distinct_locations(
    io: FileIO, place: str, locations: Iterable[str | PathLike[str]] | str | PathLike[str]
) -> list[str]:
    """The locations as a list, for a table at ``place``. Raises ``InvalidArgument`` if two are the same file."""
    found = [given_location(each) for each in ([locations] if isinstance(locations, str | PathLike) else locations)]
    seen: dict[str, str] = {}
    for location, file in zip(found, real_files(io, place, found), strict=True):
        if (other := seen.setdefault(file, location)) is not location:
            too = "" if other == location else f", as {other} too"
            raise InvalidArgument(f"data file {location} is added twice{too}", location=location)
    return found
