"""Fields that can still change: the tree on which a schema is edited."""

from __future__ import annotations

from collections.abc import Iterator

from icefield.schema.fields import children_of
from icefield.types import IcebergType, ListType, MapType, NestedField, StructType


class FieldNode:
    """A field that can still change. ``leaf`` is its type unless it is nested; then it has ``children``."""

    __slots__ = ("added", "children", "doc", "id", "initial", "kind", "leaf", "name", "parent", "required", "write")

    def __init__(self, field: NestedField, parent: FieldNode | None, *, added: bool = False) -> None:
        self.id = field.field_id
        self.name = field.name
        self.required = field.required
        self.doc = field.doc
        self.initial = field.initial_default
        self.write = field.write_default
        self.parent = parent
        self.added = added
        self.take_type(field.field_type)

    def take_type(self, field_type: IcebergType) -> None:
        self.kind: type[IcebergType] = type(field_type)
        self.leaf = field_type
        self.children = [FieldNode(child, self, added=self.added) for child in children_of(field_type)]

    def copy(self, parent: FieldNode | None) -> FieldNode:
        """The same field and all in it, to be changed apart from this one."""
        twin = object.__new__(FieldNode)
        for name in FieldNode.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.parent = parent
        twin.children = [child.copy(twin) for child in self.children]
        return twin

    def freeze(self) -> NestedField:
        return NestedField(self.id, self.name, self.freeze_type(), self.required, self.doc, self.initial, self.write)

    def freeze_type(self) -> IcebergType:
        if self.kind is StructType:
            return StructType(*(child.freeze() for child in self.children))
        inner = [child.freeze() for child in self.children]
        if self.kind is ListType:
            return ListType(inner[0].field_id, inner[0].field_type, inner[0].required)
        if self.kind is MapType:
            key, value = inner
            return MapType(key.field_id, key.field_type, value.field_id, value.field_type, value.required)
        return self.leaf

    def walk(self) -> Iterator[FieldNode]:
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def path(self) -> str:
        names = []
        node: FieldNode | None = self
        while node is not None and node.parent is not None:
            names.append(node.name)
            node = node.parent
        return ".".join(reversed(names))

    def child(self, name: str, case_sensitive: bool) -> FieldNode | None:
        if case_sensitive:
            return next((child for child in self.children if child.name == name), None)
        return next((child for child in self.children if child.name.lower() == name.lower()), None)
