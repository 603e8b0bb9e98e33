"""Checks of the metadata file: ids, versions, snapshots, logs and statistics."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import msgspec
from icefield.engine import takes_name_of_column
from icefield.errors import IcefieldError
from icefield.metadata import Operation, inflated
from icefield.toolkit import parse_transform

from icefield_maintenance.doctor.tables import rules
from icefield_maintenance.doctor.tables.groups import RuleGroup
from icefield_maintenance.doctor.tables.ledger import Ledger
from icefield_maintenance.doctor.tables.subject import Subject

_V3: Final = 3
_OPERATIONS: Final = frozenset(each.value for each in Operation)


def examine_metadata(subject: Subject, ledger: Ledger) -> None:
    """Check the metadata file, and the files that only the metadata file names."""
    _last_ids(subject, ledger)
    _later_features(subject, ledger)
    _partition_fields(subject, ledger)
    _sort_fields(subject, ledger)
    _snapshots(subject, ledger)
    _operations(subject, ledger)
    _logs(subject, ledger)
    _statistics(subject, ledger)


def _last_ids(subject: Subject, ledger: Ledger) -> None:
    """Check the last ids in the raw file, since decoding raises ids that are too low."""
    metadata, where = subject.metadata, subject.metadata_location
    raw: dict[str, Any] = msgspec.json.decode(inflated(subject.io.read_metadata(where), where))
    ledger.look_at(rules.LAST_COLUMN_ID)
    highest = max(schema.highest_field_id for schema in metadata.schemas)
    stated = raw.get("last-column-id")
    if isinstance(stated, int) and stated < highest:
        ledger.breach(rules.LAST_COLUMN_ID, where, f"last-column-id is {stated}, and a column has id {highest}")
    ledger.look_at(rules.LAST_PARTITION_ID)
    numbers = [field.field_id for spec in metadata.partition_specs for field in spec.fields]
    stated = raw.get("last-partition-id")
    if isinstance(stated, int) and numbers and stated < max(numbers):
        found = f"last-partition-id is {stated}, and a partition field has id {max(numbers)}"
        ledger.breach(rules.LAST_PARTITION_ID, where, found)


def _later_features(subject: Subject, ledger: Ledger) -> None:
    metadata, where = subject.metadata, subject.metadata_location
    version = metadata.format_version
    columns = [
        (schema.find_column_name(field.field_id), field)
        for schema in (metadata.schemas if version < _V3 else ())
        for field in schema.id_to_field.values()
    ]
    ledger.look_at(rules.LATER_DEFAULTS)
    for name, field in columns:
        if field.has_default:
            ledger.breach(rules.LATER_DEFAULTS, where, f"column '{name}' has a default in format version {version}")
    ledger.look_at(rules.LATER_TYPES)
    for name, field in columns:
        needed = 1 if field.field_type.is_nested else field.field_type.min_format_version
        if needed > version:
            found = f"column '{name}' is {field.field_type}, which needs format version {needed}, not {version}"
            ledger.breach(rules.LATER_TYPES, where, found)


def _partition_fields(subject: Subject, ledger: Ledger) -> None:
    metadata, where = subject.metadata, subject.metadata_location
    for spec in metadata.partition_specs:
        for partition in spec.fields:
            what = f"partition field '{partition.name}' of spec {spec.spec_id}"
            gone = _in_no_schema(subject, partition.source_ids)
            # An older spec may outlive its columns, and the schemas that had them; a void field needs none.
            is_used = spec.spec_id == metadata.default_spec_id and partition.transform != parse_transform("void")
            ledger.look_at(rules.PARTITION_SOURCES)
            if gone and is_used:
                ledger.breach(rules.PARTITION_SOURCES, where, f"{what} is of {_named(gone)}")
                continue
            ledger.look_at(rules.PARTITION_NAMES)
            if takes_name_of_column(partition, metadata.schema()):
                has = f"the name of a column, and is of {_named(gone)}" if gone else "the name of another column"
                ledger.breach(rules.PARTITION_NAMES, where, f"{what} has {has}")


def _sort_fields(subject: Subject, ledger: Ledger) -> None:
    """Check the default sort order only: an older order may outlive its columns."""
    ledger.look_at(rules.ORDER_SOURCES)
    order = subject.metadata.sort_order()
    for position, field in enumerate(order.fields, 1):
        if gone := _in_no_schema(subject, field.source_ids):
            found = f"field {position} of sort order {order.order_id}, the default, is of {_named(gone)}"
            ledger.breach(rules.ORDER_SOURCES, subject.metadata_location, found)


def _in_no_schema(subject: Subject, columns: tuple[int, ...]) -> list[int]:
    return [each for each in columns if not any(each in schema.id_to_field for schema in subject.metadata.schemas)]


def _named(columns: list[int]) -> str:
    return f"column {', '.join(map(str, columns))}, which no schema of the table has"


def _snapshots(subject: Subject, ledger: Ledger) -> None:
    metadata, where = subject.metadata, subject.metadata_location
    ledger.look_at(rules.SNAPSHOT_SCHEMAS)
    schemas = {schema.schema_id for schema in metadata.schemas}
    for snapshot in metadata.snapshots:
        if snapshot.schema_id is not None and snapshot.schema_id not in schemas:
            found = f"snapshot {snapshot.snapshot_id} has schema {snapshot.schema_id}, which the table does not have"
            ledger.breach(rules.SNAPSHOT_SCHEMAS, where, found)
    ledger.look_at(rules.SNAPSHOT_NUMBERS)
    numbers: Counter[int] = Counter()
    for snapshot in metadata.snapshots:
        number = snapshot.sequence_number or 0
        parent = metadata.snapshot_by_id(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id else None
        if number and parent is not None and (parent.sequence_number or 0) >= number:
            found = f"snapshot {snapshot.snapshot_id} has number {number}, and its parent {parent.sequence_number}"
            ledger.breach(rules.SNAPSHOT_NUMBERS, where, found)
        numbers[number] += bool(number)
    for number, count in numbers.items():
        if count > 1:
            ledger.breach(rules.SNAPSHOT_NUMBERS, where, f"{count} snapshots have the sequence number {number}")


def _operations(subject: Subject, ledger: Ledger) -> None:
    """Check the operation of each snapshot. Snapshots of version 1 (number 0) need none, even after an upgrade."""
    ledger.look_at(rules.SNAPSHOT_OPERATIONS)
    for snapshot in subject.metadata.snapshots:
        stated = snapshot.summary.get("operation")
        if not snapshot.sequence_number or stated in _OPERATIONS:
            continue
        if not snapshot.summary:
            found = "no summary"
        else:
            found = "a summary without operation" if stated is None else f"the operation {stated!r}, which is none"
        found = f"snapshot {snapshot.snapshot_id} has {found}"
        ledger.breach(rules.SNAPSHOT_OPERATIONS, subject.metadata_location, found)


def _logs(subject: Subject, ledger: Ledger) -> None:
    metadata, where = subject.metadata, subject.metadata_location
    ledger.look_at(rules.LOGGED_SNAPSHOTS)
    for entry in metadata.snapshot_log:
        if metadata.snapshot_by_id(entry.snapshot_id) is None:
            found = f"the log says that snapshot {entry.snapshot_id} was current, and the table does not have it"
            ledger.breach(rules.LOGGED_SNAPSHOTS, where, found)
    ledger.look_at(rules.LOGGED_METADATA)
    for logged in metadata.metadata_log:
        if not _is_there(subject, logged.metadata_file):
            ledger.breach(rules.LOGGED_METADATA, logged.metadata_file, "the log names it, and it is gone")


def _statistics(subject: Subject, ledger: Ledger) -> None:
    for entry in subject.metadata.statistics_files:
        ledger.look_at(rules.STATISTICS_OF_NOTHING)
        if subject.metadata.snapshot_by_id(entry.snapshot_id) is None:
            found = f"statistics of snapshot {entry.snapshot_id}, which the table does not have"
            ledger.breach(rules.STATISTICS_OF_NOTHING, entry.statistics_path, found)
            continue
        ledger.look_at(rules.STATISTICS_FILES)
        try:
            size = subject.io.stat(entry.statistics_path).size
        except IcefieldError as error:
            ledger.breach(rules.STATISTICS_FILES, entry.statistics_path, str(error))
            continue
        if size != entry.file_size_in_bytes:
            found = f"it has {size:,} bytes, and the metadata says {entry.file_size_in_bytes:,}"
            ledger.breach(rules.STATISTICS_FILES, entry.statistics_path, found)


def _is_there(subject: Subject, location: str) -> bool:
    try:
        return subject.io.exists(location)
    except IcefieldError:
        return False


RULES: Final = RuleGroup(
    (
        rules.LAST_COLUMN_ID,
        rules.LAST_PARTITION_ID,
        rules.LATER_DEFAULTS,
        rules.LATER_TYPES,
        rules.PARTITION_NAMES,
        rules.PARTITION_SOURCES,
        rules.ORDER_SOURCES,
        rules.SNAPSHOT_NUMBERS,
        rules.SNAPSHOT_SCHEMAS,
        rules.SNAPSHOT_OPERATIONS,
        rules.LOGGED_SNAPSHOTS,
        rules.LOGGED_METADATA,
        rules.STATISTICS_OF_NOTHING,
        rules.STATISTICS_FILES,
    ),
    examine_metadata,
)
