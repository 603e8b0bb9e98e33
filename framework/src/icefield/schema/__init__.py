"""Schemas: fields by id and by name, their JSON and Arrow forms, evolution and name mappings."""

from icefield.schema.arrow import as_schema, schema_from_arrow, schema_to_arrow
from icefield.schema.json import schema_from_json, schema_to_json
from icefield.schema.name_mapping import MappedField, NameMapping, create_name_mapping, parse_name_mapping
from icefield.schema.schema import Schema, assign_fresh_ids, check_schema

__all__ = [
    "MappedField",
    "NameMapping",
    "Schema",
    "as_schema",
    "assign_fresh_ids",
    "check_schema",
    "create_name_mapping",
    "parse_name_mapping",
    "schema_from_arrow",
    "schema_from_json",
    "schema_to_arrow",
    "schema_to_json",
]
