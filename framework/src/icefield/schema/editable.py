"""Fields that can still change: the tree on which a schema is edited."""

from __future__ import annotations

from collections.abc import Iterator

from icefield.types import IcebergType, ListType, MapType, NestedField, StructType
from icefield.types.nested import nested_type


class FieldNode:
    """A field that can still change. ``leaf`` is its type unless it is nested; then it has children.

    Siblings are linked to one another and found by name, so that no edit walks over all of them.
    """

    def __init__(self, field: NestedField, parent: FieldNode | None, *, added: bool = False) -> None:
        self.id = field.field_id
        self.name = field.name
        self.required = field.required
        self.doc = field.doc
        self.initial = field.initial_default
        self.write = field.write_default
        self.parent = parent
        self.before: FieldNode | None = None
        self.behind: FieldNode | None = None
        self.added = added
        self.take_type(field.field_type)

    def take_type(self, field_type: IcebergType) -> None:
        self.kind: type[IcebergType] = type(field_type)
        self.leaf = field_type
        self.first: FieldNode | None = None
        self.last: FieldNode | None = None
        # Both dictionaries are made on demand: most fields have no children, and few updates ignore case.
        self._named: dict[str, FieldNode] | None = None
        self._folded: dict[str, dict[int, FieldNode]] | None = None
        for child in field_type.children:
            self.insert(FieldNode(child, None, added=self.added), self.last)

    @property
    def children(self) -> Iterator[FieldNode]:
        """The fields directly inside, in order."""
        child = self.first
        while child is not None:
            yield child
            child = child.behind

    def insert(self, child: FieldNode, after: FieldNode | None) -> None:
        """Insert a child behind another child, or at the front if ``after`` is None."""
        child.parent, child.before = self, after
        child.behind = self.first if after is None else after.behind
        if after is None:
            self.first = child
        else:
            after.behind = child
        if child.behind is None:
            self.last = child
        else:
            child.behind.before = child
        self._enter(child)

    def remove(self, child: FieldNode) -> None:
        """Take a field out."""
        self._leave(child)
        if child.before is None:
            self.first = child.behind
        else:
            child.before.behind = child.behind
        if child.behind is None:
            self.last = child.before
        else:
            child.behind.before = child.before
        child.parent = child.before = child.behind = None

    def rename(self, child: FieldNode, name: str) -> None:
        """Rename a field inside this one."""
        self._leave(child)
        child.name = name
        self._enter(child)

    def _enter(self, child: FieldNode) -> None:
        if self._named is None:
            self._named = {}
        self._named[child.name] = child
        if self._folded is not None:
            self._folded.setdefault(child.name.lower(), {})[child.id] = child

    def _leave(self, child: FieldNode) -> None:
        if self._named is not None:
            del self._named[child.name]
        if self._folded is not None:
            del self._folded[child.name.lower()][child.id]

    def freeze(self) -> NestedField:
        return NestedField(self.id, self.name, self.freeze_type(), self.required, self.doc, self.initial, self.write)

    def freeze_type(self) -> IcebergType:
        return nested_type(self.kind, [child.freeze() for child in self.children]) if self.leaf.is_nested else self.leaf

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

    def is_inside(self, other: FieldNode) -> bool:
        """Whether the field is somewhere in another one."""
        node = self.parent
        while node is not None and node is not other:
            node = node.parent
        return node is not None

    def named(self, name: str, case_sensitive: bool) -> list[FieldNode]:
        """The direct children of that name; there can be several only if case does not matter."""
        if self._named is None:
            return []
        if case_sensitive:
            return [self._named[name]] if name in self._named else []
        if self._folded is None:
            self._folded = {}
            for child in self._named.values():
                self._folded.setdefault(child.name.lower(), {})[child.id] = child
        return [*self._folded.get(name.lower(), {}).values()]

    def child(self, name: str, case_sensitive: bool) -> FieldNode | None:
        return next(iter(self.named(name, case_sensitive)), None)

    def find(self, name: str | tuple[str, ...], case_sensitive: bool) -> list[FieldNode]:
        """The fields that ``Schema.find_field`` of a schema with the same columns would choose from."""
        if isinstance(name, tuple):
            return self._follow(name, case_sensitive)
        full = list(self._full(name, case_sensitive))
        return full or [node for node, was_short in self._short(name, False, case_sensitive) if was_short]

    def _follow(self, path: tuple[str, ...], case_sensitive: bool) -> list[FieldNode]:
        if not path:
            return []
        found = self.named(path[0], case_sensitive)
        if len(path) > 1:
            found = [node for child in found for node in child._follow(path[1:], case_sensitive)]
        if not found and self.last is not None and self.kind in (ListType, MapType):
            return self.last._follow(path, case_sensitive) if self.last.kind is StructType else []
        return found

    def _full(self, name: str, case_sensitive: bool) -> Iterator[FieldNode]:
        """The fields with this full name; a dot separates two names or belongs to a name."""
        for part, rest in _parts(name):
            for child in self.named(part, case_sensitive):
                yield from [child] if rest is None else child._full(rest, case_sensitive)

    def _short(self, name: str, was_short: bool, case_sensitive: bool) -> Iterator[tuple[FieldNode, bool]]:
        """Like ``_full``, but a name may omit an ``element`` or ``value`` that is a struct; True if it does."""
        last = self.last
        if last is not None and self.kind in (ListType, MapType) and last.kind is StructType:
            yield from last._short(name, True, case_sensitive)
        else:
            last = None
        for part, rest in _parts(name):
            for child in self.named(part, case_sensitive):
                if child is last:
                    continue
                if rest is None:
                    yield child, was_short
                else:
                    yield from child._short(rest, was_short, case_sensitive)


def _parts(name: str) -> Iterator[tuple[str, str | None]]:
    """The possible first parts of a name, each with the rest: for ``a.b``, ``a`` with ``b``, and ``a.b`` alone."""
    at = name.find(".")
    while at >= 0:
        yield name[:at], name[at + 1 :]
        at = name.find(".", at + 1)
    yield name, None
