"""The forms in which a caller may give a partition spec or a sort order: objects, tuples and strings.

A partition field is ``"region"`` (identity), ``"day(ts)"``, ``"bucket[16](id)"``, ``"bucket(16, id)"``, or a tuple
``("ts", "day")`` or ``("ts", "day", "name of the field")``. A sort field is ``"id"``, ``"day(ts) desc"``,
``"id asc nulls last"``, or a tuple ``("id", "desc")``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from icefield.errors import InvalidArgument
from icefield.partitioning.sort_order import UNSORTED, SortDirection, SortField, SortOrder
from icefield.partitioning.spec import UNPARTITIONED, PartitionSpec
from icefield.partitioning.spec_evolution import build_spec
from icefield.partitioning.transforms import IdentityTransform, Transform, parse_transform
from icefield.schema import Schema

_CALL = re.compile(r"\s*([A-Za-z]+)\s*(\[\s*\d+\s*\])?\s*\((.*)\)\s*", re.DOTALL)
_LEADING_NUMBER = re.compile(r"\s*(\d+)\s*,(.*)", re.DOTALL)
_TRAILING_NUMBER = re.compile(r"(.*),\s*(\d+)\s*", re.DOTALL)
_ORDERING = re.compile(r"(.*?)(?:\s+(asc|desc))?(?:\s+nulls[\s-]+(first|last))?\s*", re.DOTALL | re.IGNORECASE)
_SHORT = {"years": "year", "months": "month", "days": "day", "hours": "hour", "date": "day"}


def partition_spec_of(given: Any, schema: Schema) -> PartitionSpec:
    """The partition spec of a caller's form, with the ids of ``schema``.

    Raises ``InvalidArgument`` for any other form, and ``InvalidSchema`` for a field that does not fit.
    """
    if given is None:
        return UNPARTITIONED
    if isinstance(given, PartitionSpec):
        return given
    return build_spec(schema, [_partition_item(item, schema) for item in _items(given, "partition_spec")])


def sort_order_of(given: Any, schema: Schema) -> SortOrder:
    """The sort order that a caller means, over the ids of ``schema``. Raises as ``partition_spec_of`` does."""
    if given is None:
        return UNSORTED
    if isinstance(given, SortOrder):
        return given
    fields = [_sort_item(item, schema) for item in _items(given, "sort_order")]
    return SortOrder(*fields, order_id=1) if fields else UNSORTED


def transform_of(given: Transform | str) -> Transform:
    """A transform from its string, as the format writes it (``"bucket[16]"``) or as SQL does (``"days"``)."""
    transform = parse_transform(_SHORT.get(given.strip().lower(), given.strip()) if isinstance(given, str) else given)
    if not transform.is_known:
        raise InvalidArgument(
            f"'{transform}' is no transform; known are identity, bucket[n], truncate[w], year, month, day, hour, void"
        )
    return transform


def _items(given: Any, what: str) -> list[Any]:
    if isinstance(given, str):
        return [given]
    if isinstance(given, Iterable):
        return list(given)
    raise InvalidArgument(f"{what} is a list of strings or tuples, not {type(given).__name__}")


def _partition_item(item: Any, schema: Schema) -> tuple[str, Transform] | tuple[str, Transform, str]:
    if isinstance(item, str):
        return _term(item, schema)
    if isinstance(item, tuple | list) and len(item) in (2, 3) and isinstance(item[0], str):
        pair = item[0], transform_of(item[1])
        return pair if len(item) == 2 else (*pair, item[2])
    raise InvalidArgument(
        f"{item!r} is no partition field: write 'region', 'bucket[16](id)', ('ts', 'day') or ('ts', 'day', 'name')"
    )


def _term(string: str, schema: Schema) -> tuple[str, Transform]:
    """Column and transform of ``"day(ts)"``; a column may itself be named so."""
    if schema.has_field(string):
        return string, IdentityTransform()
    found = _CALL.fullmatch(string)
    if found is None:
        return string.strip(), IdentityTransform()
    name, width, arguments = found.groups()
    if width is None:
        for pattern, number, column in ((_LEADING_NUMBER, 1, 2), (_TRAILING_NUMBER, 2, 1)):
            match = pattern.fullmatch(arguments)
            if match is not None:
                width, arguments = f"[{match.group(number)}]", match.group(column)
                break
    return arguments.strip().strip('"`'), transform_of(name.lower() + re.sub(r"\s", "", width or ""))


def _sort_item(item: Any, schema: Schema) -> SortField:
    if isinstance(item, SortField):
        return item
    if isinstance(item, str):
        found = _ORDERING.fullmatch(item)
        assert found is not None  # every string matches: the ordering is optional
        term, direction, nulls = (item, None, None) if schema.has_field(item) else found.groups()
        return _sort_field(*_term(term, schema), direction, nulls, schema)
    if isinstance(item, tuple | list) and 1 < len(item) <= 3 and isinstance(item[0], str):
        direction, nulls = item[1], item[2] if len(item) == 3 else None
        return _sort_field(*_term(item[0], schema), direction, nulls, schema)
    raise InvalidArgument(
        f"{item!r} is no sort field: write 'id', 'day(ts) desc', 'id asc nulls last' or ('id', 'desc')"
    )


def _sort_field(column: str, transform: Transform, direction: Any, nulls: Any, schema: Schema) -> SortField:
    if isinstance(nulls, str):
        nulls = f"nulls-{nulls.lower().removeprefix('nulls').lstrip('- ')}"
    way = SortDirection.ASC if direction is None else direction
    return SortField(schema.find_field(column).field_id, transform, way, nulls)
