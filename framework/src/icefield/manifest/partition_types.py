"""The partition tuples that manifests of a spec hold."""

from __future__ import annotations

from collections.abc import Iterable

from icefield.partitioning import PartitionSpec
from icefield.schema import Schema
from icefield.types import NestedField, StructType, UnknownType


def stored_partition_type(spec: PartitionSpec, schema: Schema, older: Iterable[Schema] = ()) -> StructType:
    """The type to read the partition tuples of a spec with.

    Under a transform that this version does not know, any type may have been stored: the field is ``unknown``, and
    its values are taken as the manifest has them. Sources that ``schema`` no longer has are looked up in ``older``.
    """
    typed = spec.partition_type(schema, older)
    return StructType(
        *(
            one if field.is_known else NestedField(one.field_id, one.name, UnknownType())
            for field, one in zip(spec.fields, typed.fields, strict=True)
        )
    )
