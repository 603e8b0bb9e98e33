"""Schemas: fields by id and by name, their JSON and Arrow forms, evolution and name mappings."""

from icefield.base.lazy_names import public_names
from icefield.schema.arrow import as_schema as as_schema
from icefield.schema.arrow import schema_from_arrow as schema_from_arrow
from icefield.schema.arrow import schema_to_arrow as schema_to_arrow
from icefield.schema.json import schema_from_json as schema_from_json
from icefield.schema.json import schema_to_json as schema_to_json
from icefield.schema.name_mapping import MappedField as MappedField
from icefield.schema.name_mapping import NameMapping as NameMapping
from icefield.schema.name_mapping import create_name_mapping as create_name_mapping
from icefield.schema.name_mapping import parse_name_mapping as parse_name_mapping
from icefield.schema.schema import Schema as Schema
from icefield.schema.schema import assign_fresh_ids as assign_fresh_ids
from icefield.schema.schema import check_schema as check_schema

__all__ = public_names(__name__)
