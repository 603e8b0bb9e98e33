"""Columns of a data frame that a table lacks, added to the table in the commit of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from icefield import Schema
from icefield.types import IcebergType, ListType, MapType, NestedField, StructType
from pyspark.sql import types as spark

from icefield_spark.arrow import spelt_as
from icefield_spark.types import from_spark_schema


def add_columns(transaction: Any, columns: spark.StructType, case_sensitive: bool) -> None:
    """Add columns and nested fields that the table lacks, all optional. Existing columns stay unchanged."""
    wanted = from_spark_schema(columns, optional=True)
    fields = _fields(transaction.shape.schema().fields, wanted.fields, case_sensitive)
    with transaction.update_schema() as update:
        update.union_by_name(Schema(*fields))


def _fields(
    have: tuple[NestedField, ...], wanted: tuple[NestedField, ...], case_sensitive: bool
) -> Iterator[NestedField]:
    known = {field.name: field for field in have}
    names = spelt_as(known, [field.name for field in wanted], case_sensitive)
    for name, field in zip(names, wanted, strict=True):
        found = known.get(name)
        if found is None:
            yield field
        else:
            yield replace(found, field_id=field.field_id, field_type=_type(found, field, case_sensitive))


def _type(have: NestedField, wanted: NestedField, case_sensitive: bool) -> IcebergType:
    old, new = have.field_type, wanted.field_type
    if isinstance(old, StructType) and isinstance(new, StructType):
        return StructType(*_fields(old.fields, new.fields, case_sensitive))
    if isinstance(old, ListType) and isinstance(new, ListType):
        element = _type(old.element, new.element, case_sensitive)
        return ListType(new.element.field_id, element, old.element.required)
    if isinstance(old, MapType) and isinstance(new, MapType):
        key, value = _type(old.key, new.key, case_sensitive), _type(old.value, new.value, case_sensitive)
        return MapType(new.key.field_id, key, new.value.field_id, value, old.value.required)
    return old
