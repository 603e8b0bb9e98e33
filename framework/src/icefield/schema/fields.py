"""Functions over nested fields: finding them by name, pruning them, renumbering them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from icefield.errors import InvalidArgument, InvalidSchema
from icefield.types import IcebergType, ListType, MapType, NestedField, StructType
from icefield.types.nested import nested_type
from icefield.types.reserved import MAX_USER_FIELD_ID
from icefield.types.values import to_internal

_LEFT_OUT: Final = ("element", "value")
"""Steps into a list or map that a name may do without."""

_FEW: Final = 8
"""Below this number, fields are searched one by one."""


class _Ids:
    """The ids of names; a name with a single id needs no set."""

    __slots__ = ("_first", "_several")

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._several: dict[str, set[int]] = {}

    def add(self, name: str, id_: int) -> None:
        first = self._first.setdefault(name, id_)
        if first != id_:
            self._several.setdefault(name, {first}).add(id_)

    def find(self, name: str) -> set[int]:
        first = self._first.get(name)
        return set() if first is None else self._several.get(name) or {first}

    def folded(self) -> _Ids:
        """The same for names in lower case."""
        made = _Ids()
        for name, id_ in self._first.items():
            made.add(name.lower(), id_)
        for name, ids in self._several.items():
            for id_ in ids:
                made.add(name.lower(), id_)
        return made


class FieldNames:
    """The field ids of each full name.

    Full names take precedence over short names, which lack ``element`` and ``value``.
    """

    def __init__(self, struct: StructType) -> None:
        self._full, self._short = _Ids(), _Ids()
        for field in struct.fields:
            self._enter(field, field.name, field.name)
        self._folded: tuple[_Ids, _Ids] | None = None
        self._wide: dict[tuple[int, bool], dict[str, list[NestedField]]] = {}

    def _enter(self, field: NestedField, full: str, short: str) -> None:
        self._full.add(full, field.field_id)
        if short != full:
            self._short.add(short, field.field_id)
        for child in field.field_type.children:
            left_out = child.name in _LEFT_OUT and not isinstance(field.field_type, StructType)
            if left_out and isinstance(child.field_type, StructType):
                # An element or value has only its full name; the fields of its struct also have short names without it.
                self._full.add(f"{full}.{child.name}", child.field_id)
                for grandchild in child.field_type.fields:
                    self._enter(grandchild, f"{full}.{child.name}.{grandchild.name}", f"{short}.{grandchild.name}")
            else:
                self._enter(child, f"{full}.{child.name}", f"{short}.{child.name}")

    def find(self, name: str, case_sensitive: bool) -> set[int]:
        if case_sensitive:
            return self._full.find(name) or self._short.find(name)
        if self._folded is None:
            self._folded = self._full.folded(), self._short.folded()
        full, short = self._folded
        return full.find(name.lower()) or short.find(name.lower())

    def follow(self, container: IcebergType, path: tuple[str, ...], case_sensitive: bool) -> set[int]:
        """The ids of the fields at the end of a path."""
        if not path:
            return set()
        found: set[int] = set()
        rest = path[1:]
        for child in self._named(container, path[0], case_sensitive):
            found |= self.follow(child.field_type, rest, case_sensitive) if rest else {child.field_id}
        if not found and isinstance(container, (ListType, MapType)):
            inner = container.element_type if isinstance(container, ListType) else container.value_type
            return self.follow(inner, path, case_sensitive) if isinstance(inner, StructType) else set()
        return found

    def _named(self, container: IcebergType, name: str, case_sensitive: bool) -> Sequence[NestedField]:
        children = container.children
        wanted = name if case_sensitive else name.lower()
        if len(children) < _FEW:
            return [child for child in children if wanted == (child.name if case_sensitive else child.name.lower())]
        # The first child identifies its container: ids are unique in a schema.
        key = (children[0].field_id, case_sensitive)
        if key not in self._wide:
            named: dict[str, list[NestedField]] = {}
            for child in children:
                named.setdefault(child.name if case_sensitive else child.name.lower(), []).append(child)
            self._wide[key] = named
        return self._wide[key].get(wanted, ())


def ids_in(field: NestedField) -> Iterator[int]:
    """The id of a field and the ids of all its nested fields."""
    yield field.field_id
    for child in field.field_type.children:
        yield from ids_in(child)


def prune(field: NestedField, wanted: frozenset[int]) -> NestedField | None:
    """The field with only the wanted fields in it, or None; a wanted field is kept whole.

    A map with wanted fields in its values keeps its keys whole.
    """
    if field.field_id in wanted or not field.field_type.is_nested:
        return field if field.field_id in wanted else None
    kind = field.field_type
    if isinstance(kind, MapType):
        value = prune(kind.value, wanted)
        if value is None:
            return field if prune(kind.key, wanted) else None
        return replace(field, field_type=nested_type(MapType, (kind.key, value)))
    kept = []
    for child in kind.children:
        pruned = prune(child, wanted)
        if pruned is not None:
            kept.append(pruned)
    return replace(field, field_type=nested_type(type(kind), kept)) if kept else None


def fresh_fields(
    fields: Iterable[NestedField], next_id: Callable[[], int], mapping: dict[int, int]
) -> list[NestedField]:
    """Fields and their nested fields with new ids; ``mapping`` receives the new id of each old one."""
    fields = list(fields)
    ids = [next_id() for _ in fields]
    fresh = []
    for field, id_ in zip(fields, ids, strict=True):
        if id_ > MAX_USER_FIELD_ID:
            raise InvalidSchema(f"no id is left for field '{field.name}': the highest is {MAX_USER_FIELD_ID}")
        mapping[field.field_id] = id_
        initial, write = (internal_default(field, d) for d in (field.initial_default, field.write_default))
        field_type = fresh_type(field.field_type, next_id, mapping)
        fresh.append(replace(field, field_id=id_, field_type=field_type, initial_default=initial, write_default=write))
    return fresh


def fresh_type(iceberg_type: IcebergType, next_id: Callable[[], int], mapping: dict[int, int]) -> IcebergType:
    """The same type with new ids for its nested fields."""
    if not iceberg_type.is_nested:
        return iceberg_type
    return nested_type(type(iceberg_type), fresh_fields(iceberg_type.children, next_id, mapping))


def internal_default(field: NestedField, default: Any) -> Any:
    """A default as an internal value. An empty struct, ``()`` or ``{}``, stands for the defaults of its fields.

    Raises ``InvalidArgument`` for a value that is not of the field's type.
    """
    if default is None:
        return None
    if isinstance(field.field_type, StructType) and default in ((), {}):
        return ()
    try:
        return to_internal(field.field_type, default)
    except InvalidArgument as error:
        raise InvalidArgument(f"default of field '{field.name}': {error.message}", field_id=field.field_id) from None
