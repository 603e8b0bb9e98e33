"""The rules for additions to a table: locations, partition specs, sort orders and how they fit the schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from uuid import UUID

from icefield.errors import InvalidArgument, InvalidSchema
from icefield.metadata.properties import ENCRYPTION_KEY_ID
from icefield.metadata.table_metadata import TableMetadata
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.partitioning.spec import PARTITION_FIELD_ID_START, takes_name_of_column, validate_spec
from icefield.partitioning.transforms import Transform, VoidTransform
from icefield.schema import Schema

_ABSOLUTE = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?/|[A-Za-z][A-Za-z0-9+.-]+:[^/]")


def check_location(location: str) -> str:
    """The location without slashes at its end. Raises ``InvalidArgument`` unless it is absolute.

    Relative locations do not exist in format versions 1 to 3.
    """
    if not isinstance(location, str) or not _ABSOLUTE.match(location):
        raise InvalidArgument(
            f"a table's location must be a URI such as 'file:///path' or an absolute path, not {location!r}"
        )
    return location.rstrip("/") or location


def parsed_uuid(given: str) -> str:
    """A uuid in its canonical form. Raises ``InvalidArgument`` for any other value."""
    try:
        return str(UUID(given))
    except (ValueError, AttributeError, TypeError):
        raise InvalidArgument(f"{given!r:.80} is no uuid") from None


def check_spec(spec: PartitionSpec, schema: Schema, format_version: int) -> None:
    """Raise ``InvalidSchema`` or ``UnsupportedFeature`` for a spec that must not be added to a table."""
    validate_spec(spec, schema)
    if format_version > 1:
        return
    expected = range(PARTITION_FIELD_ID_START, PARTITION_FIELD_ID_START + len(spec.fields))
    if [field.field_id for field in spec.fields] != list(expected):
        # Readers of v1 assign the ids by position and ignore the written ids.
        raise InvalidSchema("in format version 1 the ids of partition fields must be 1000, 1001, ... in order")


def check_defaults_fit(before: TableMetadata, after: TableMetadata) -> None:
    """Raise ``InvalidSchema`` when a change leaves the default spec or sort order without a column it needs.

    A column that was missing before may stay missing: the tables of other writers must remain changeable.
    """
    if _shape(before) == _shape(after):
        return
    schema, former = after.schema(), before.schema()
    lost_before = {source for source, _, _ in _sources(before) if source not in former.id_to_field}
    for source, transform, what in _sources(after):
        field = schema.id_to_field.get(source)
        if field is None and source not in lost_before:
            raise InvalidSchema(
                f"{what} needs column {source}, which the schema does not have; change the partition spec or the sort "
                "order first",
                field_id=source,
            )
        if field is not None and not transform.can_transform(field.field_type):
            raise InvalidSchema(
                f"{what}: transform {transform} does not apply to '{field.name}' of type {field.field_type}",
                field_id=source,
            )


def check_names_differ(metadata: TableMetadata, before: TableMetadata | None = None) -> None:
    """Raise ``InvalidSchema`` if a partition field of any spec, current or former, has the name of a column.

    The name of its own source is allowed, and so is every such name in ``before``: the tables of other writers must
    remain changeable.
    """
    if before is not None:
        same_specs = before.partition_specs is metadata.partition_specs
        if same_specs and before.current_schema_id == metadata.current_schema_id:
            return
    known = set() if before is None else {(spec_id, field.name) for spec_id, field in _misnamed(before)}
    for spec_id, field in _misnamed(metadata):
        if (spec_id, field.name) in known:
            continue
        former = "" if spec_id == metadata.default_spec_id else f" of the former partition spec {spec_id}"
        source = metadata.schema().find_column_name(field.source_id)
        raise InvalidSchema(
            f"column '{field.name}' has the name of a partition field{former}, whose source is "
            + (f"'{source}'" if source else f"column {field.source_id}, which was deleted and could be brought back")
            + ": Iceberg's Java library would refuse the table; choose another name",
            field_id=field.field_id,
            spec_id=spec_id,
        )


def _misnamed(metadata: TableMetadata) -> Iterator[tuple[int, PartitionField]]:
    schema = metadata.schema()
    for spec in metadata.partition_specs:
        yield from ((spec.spec_id, field) for field in spec.fields if takes_name_of_column(field, schema))


def _shape(metadata: TableMetadata) -> tuple[int, int, int]:
    return metadata.current_schema_id, metadata.default_spec_id, metadata.default_sort_order_id


def _sources(metadata: TableMetadata) -> Iterator[tuple[int, Transform, str]]:
    """The columns that the default spec and sort order need."""
    for field in metadata.spec().fields:
        if field.is_known and not isinstance(field.transform, VoidTransform):
            yield field.source_id, field.transform, f"partition field '{field.name}'"
    for position, order in enumerate(metadata.sort_order().fields):
        if order.transform.is_known:
            yield order.source_id, order.transform, f"sort field {position}"


def check_encryption(properties: Mapping[str, str], format_version: int) -> None:
    """Raise ``InvalidArgument`` for the master key of a table whose format version has no encryption keys."""
    if ENCRYPTION_KEY_ID.name in properties and format_version < 3:
        raise InvalidArgument(
            f"the property {ENCRYPTION_KEY_ID.name} needs format version 3, and the table has {format_version}; set "
            "format-version to 3 with it",
            property=ENCRYPTION_KEY_ID.name,
        )
