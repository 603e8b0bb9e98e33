"""Changes of a schema: pure, without a table.

Columns are added, deleted, renamed, moved inside their struct, promoted and given defaults. All changes that would
alter the meaning of old files are refused. Spec: Schema Evolution, Default Values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Self

import pyarrow as pa

from icefield.errors import IcefieldError, InvalidArgument, InvalidSchema, UnsupportedFeature
from icefield.schema.arrow import as_schema
from icefield.schema.editable import FieldNode
from icefield.schema.fields import fresh_fields, fresh_type, internal_default
from icefield.schema.schema import FieldName, Schema, check_schema, is_path
from icefield.types import (
    DateType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    UnknownType,
    promotion_allowed,
)
from icefield.types.arrow.types import GivenType, as_type
from icefield.types.values import promote


class SchemaUpdate:
    """A list of successive changes to a schema; ``result`` returns the resulting schema.

    Each call names a field by its name at that point of the update, or by its name before the update. Every method
    returns the update itself and changes nothing when it raises. It raises ``InvalidSchema`` if the format forbids the
    change, or ``UnsupportedFeature`` if the format version lacks the feature.

    ``last_column_id`` is the table's: new ids begin above it. ``partition_source_ids`` and ``sort_source_ids`` are
    the columns that the current partition spec and sort order use: they cannot be deleted.
    ``all_partition_source_ids`` are the source columns of all stored specs. ``history`` are the table's other schemas.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        last_column_id: int,
        format_version: int,
        partition_source_ids: Iterable[int] = (),
        sort_source_ids: Iterable[int] = (),
        all_partition_source_ids: Iterable[int] = (),
        history: Iterable[Schema] = (),
        case_sensitive: bool = True,
        allow_incompatible_changes: bool = False,
    ) -> None:
        self._schema = schema
        self._format_version = format_version
        self._last_column_id = max(last_column_id, schema.highest_field_id)
        self._uses = {"partition spec": frozenset(partition_source_ids), "sort order": frozenset(sort_source_ids)}
        self._partition_ids = self._uses["partition spec"] | frozenset(all_partition_source_ids)
        self._history = tuple(history)
        self._case_sensitive = case_sensitive
        self._allow_incompatible = allow_incompatible_changes
        self._identifiers = schema.identifier_field_ids
        self._root = FieldNode(NestedField(0, "", schema.as_struct(), True), None)
        self._nodes = {node.id: node for child in self._root.children for node in child.walk()}

    @property
    def last_column_id(self) -> int:
        """The highest id assigned so far, in this update or in the table before."""
        return self._last_column_id

    def allow_incompatible_changes(self) -> Self:
        """Let optional columns become required, and required ones be added without a default.

        For a caller who knows that no row of the table holds null there. All other checks remain.
        """
        self._allow_incompatible = True
        return self

    def add_column(
        self,
        path: FieldName,
        field_type: GivenType,
        doc: str | None = None,
        required: bool = False,
        default_value: Any = None,
    ) -> Self:
        """Add a column, or with a tuple a field of a struct (also of a struct in a list or in a map's values).

        The column and its nested fields get new ids. ``default_value`` (format version 3) is the initial default, which
        older rows show, and the write default, for writers that give no value. A required column needs it.
        """
        names = self._names(path)
        parent = self._struct_at(names[:-1])
        self._check_free(parent, names[-1])
        new_type = as_type(field_type)
        if required and default_value is None and not (parent.added or self._allow_incompatible):
            raise InvalidSchema(f"cannot add required column '{'.'.join(names)}' without a default: older rows lack it")
        if default_value is not None:
            self._check_defaults_exist(".".join(names))
        field = NestedField(0, names[-1], new_type, required, doc)
        default = _checked_default(field, default_value)
        field = NestedField(0, names[-1], new_type, required, doc, default, default)
        self._insert(parent, self._numbered(field))
        return self

    def delete_column(self, path: FieldName) -> Self:
        """Delete a column, or a field of a struct. Its id is never used again."""
        node = self._find(path)
        parent = self._parent_struct(node, "delete")
        for name, ids in self._uses.items():
            used = next((inner for inner in node.walk() if inner.id in ids), None)
            if used is not None:
                raise InvalidSchema(
                    f"cannot delete '{node.path}': the {name} uses '{used.path}'; change the {name} first",
                    field_id=used.id,
                )
        parent.remove(node)
        return self

    def rename_column(self, path_from: FieldName, new_name: str) -> Self:
        """Rename a column; everything else stays, including its id and files."""
        node = self._find(path_from)
        parent = self._parent_struct(node, "rename")
        _check_name(new_name)
        if parent.child(new_name, self._case_sensitive) is not node:
            self._check_free(parent, new_name)
        parent.rename(node, new_name)
        return self

    def update_column(
        self,
        path: FieldName,
        field_type: GivenType | None = None,
        required: bool | None = None,
        doc: str | None = None,
    ) -> Self:
        """Promote a column's type, change whether it is required, or its doc; None leaves a part unchanged."""
        node = self._find(path)
        self._refuse_in_key(node, "change")
        new_type = None if field_type is None else as_type(field_type)
        has_value = node.required or self._allow_incompatible or (node.added and node.initial is not None)
        if required and not has_value:
            raise InvalidSchema(
                f"cannot make optional column '{node.path}' required: rows may hold null there", field_id=node.id
            )
        if new_type is not None and new_type != node.freeze_type():
            self._promote(node, new_type)
        node.required = node.required if required is None else required
        node.doc = node.doc if doc is None else doc
        return self

    def make_column_optional(self, path: FieldName) -> Self:
        """Let a required column hold null."""
        return self.update_column(path, required=False)

    def set_default_value(self, path: FieldName, default_value: Any) -> Self:
        """Change the write default of a column. The initial default of an existing column never changes."""
        node = self._find(path)
        self._parent_struct(node, "give a default to")
        if default_value is not None:
            self._check_defaults_exist(node.path)
        elif node.added and node.required and not self._allow_incompatible:
            raise InvalidSchema(f"required column '{node.path}' is new and needs a default", field_id=node.id)
        node.write = _checked_default(node.freeze(), default_value)
        if node.added:
            node.initial = node.write
        return self

    def move_first(self, path: FieldName) -> Self:
        """Move a column to the front of its struct."""
        node = self._find(path)
        parent = self._parent_struct(node, "move")
        parent.remove(node)
        parent.insert(node, None)
        return self

    def move_before(self, path: FieldName, before_path: FieldName) -> Self:
        """Move a column to just before another one of the same struct."""
        return self._move(path, before_path, is_before=True)

    def move_after(self, path: FieldName, after_name: FieldName) -> Self:
        """Move a column to just after another one of the same struct."""
        return self._move(path, after_name, is_before=False)

    def set_identifier_fields(self, *fields: FieldName) -> Self:
        """Make these the fields that identify a row; none takes the identifier away."""
        self._identifiers = tuple(dict.fromkeys(self._find(field).id for field in fields))
        return self

    def union_by_name(self, new_schema: Schema | pa.Schema) -> Self:
        """Merge another schema by name: add its columns (optional unless they have a default), wider types and docs.

        A column that is optional in the other schema becomes optional. Ids of the other schema do not matter. A
        narrower type in the other schema changes nothing; any other difference is refused.
        """
        fields, last_column_id = as_schema(new_schema).fields, self._last_column_id
        undo: list[Callable[[], None]] = []
        try:
            self._unite(self._root, fields, undo)
        except Exception:
            for step in reversed(undo):
                step()
            self._last_column_id = last_column_id
            raise
        return self

    def undelete_column(self, path: FieldName) -> Self:
        """Bring a deleted field back under its old id, in its form in the newest schema of ``history`` that has it.

        The field must be optional, since rows written after the delete lack it, unless no row was written since.
        """
        old, field = self._deleted(path)
        parent_id = old.parent_of(field.field_id)
        parent = self._root if parent_id is None else self._node(parent_id)
        if parent is None or parent.kind is not StructType:
            raise InvalidSchema(f"cannot bring back '{field.name}': what it lay in is gone", field_id=field.field_id)
        self._check_free(parent, field.name)
        if field.required and not self._is_unwritten(path):
            raise InvalidSchema(
                f"cannot bring back required column '{field.name}': rows written since lack it", field_id=field.field_id
            )
        self._insert(parent, field)
        return self

    def result(self) -> Schema:
        """The schema after all changes; the original schema if the changes amount to nothing.

        Its id is that of an equal schema in ``history``, else one more than the highest there is. Raises
        ``InvalidSchema`` for changes that do not go together, such as a deleted identifier field.
        """
        known = (self._schema, *self._history)
        alive = {node.id for node in self._root.walk()}
        for id_ in self._identifiers:
            if id_ not in alive:
                name = self._schema.find_column_name(id_)
                raise InvalidSchema(
                    f"cannot delete '{name}': it is an identifier field; set other identifier fields first",
                    field_id=id_,
                )
        result = Schema(*self._current().fields, identifier_field_ids=self._identifiers)
        check_schema(result, self._format_version, known=known)
        same = next((schema for schema in known if schema == result), None)
        return same or result.with_schema_id(max(schema.schema_id for schema in known) + 1)

    # Helpers of the changes.

    def _is_unwritten(self, path: FieldName) -> bool:
        """Whether no row was written since a field was deleted, which only a table knows."""
        return False

    def _names(self, path: FieldName) -> tuple[str, ...]:
        if isinstance(path, str):
            if "." in path:
                parts = tuple(path.split("."))
                raise InvalidArgument(
                    f"'{path}' could be a field inside another or a name with a dot: give {parts!r} or {(path,)!r}"
                )
            path = (path,)
        if not isinstance(path, tuple) or not path:
            raise InvalidArgument(f"a column is named by a string or a tuple of strings, not {path!r:.80}")
        for name in path:
            _check_name(name)
        return path

    def _current(self) -> Schema:
        return Schema(*(child.freeze() for child in self._root.children))

    def _node(self, id_: int) -> FieldNode | None:
        node = self._nodes.get(id_)
        return node if node is not None and node.is_inside(self._root) else None

    def _find(self, path: FieldName) -> FieldNode:
        found = self._root.find(path, self._case_sensitive) if is_path(path) else []
        if len(found) == 1:
            return found[0]
        if not found and self._schema.has_field(path, self._case_sensitive):
            node = self._node(self._schema.find_field(path, self._case_sensitive).field_id)
            if node is not None:
                return node
        return self._nodes[self._current().find_field(path, self._case_sensitive).field_id]

    def _struct_at(self, path: tuple[str, ...]) -> FieldNode:
        node = self._find(path) if path else self._root
        if node.kind in (ListType, MapType):
            assert node.last is not None
            node = node.last
        if node.kind is not StructType:
            raise InvalidSchema(f"cannot add to '{node.path}': it is of type {node.freeze_type()}", field_id=node.id)
        self._refuse_in_key(node, "add to")
        return node

    def _parent_struct(self, node: FieldNode, verb: str) -> FieldNode:
        self._refuse_in_key(node, verb)
        assert node.parent is not None
        if node.parent.kind is not StructType:
            kind = "list" if node.parent.kind is ListType else "map"
            raise InvalidSchema(f"cannot {verb} '{node.path}': it is part of a {kind}")
        return node.parent

    def _refuse_in_key(self, node: FieldNode, verb: str) -> None:
        step = node
        while step.parent is not None:
            if step.parent.kind is MapType and step is step.parent.first:
                raise InvalidSchema(f"cannot {verb} '{node.path}': a map's keys never change", field_id=node.id)
            step = step.parent

    def _check_free(self, parent: FieldNode, name: str) -> None:
        full = f"{parent.path}.{name}" if parent.parent is not None else name
        taken = parent.child(name, self._case_sensitive) is not None
        if taken or ("." in full and self._root.find(full, self._case_sensitive)):
            raise InvalidSchema(f"column '{full}' exists already")

    def _take_id(self) -> int:
        self._last_column_id += 1
        return self._last_column_id

    def _numbered(self, field: NestedField) -> NestedField:
        """The field and its nested fields with new ids."""
        before = self._last_column_id
        try:
            (fresh,) = fresh_fields((field,), self._take_id, {})
        except IcefieldError:
            self._last_column_id = before
            raise
        return fresh

    def _insert(self, parent: FieldNode, field: NestedField) -> FieldNode:
        node = FieldNode(field, None, added=field.field_id not in self._schema.id_to_field)
        parent.insert(node, parent.last)
        self._nodes.update((inner.id, inner) for inner in node.walk())
        return node

    def _check_defaults_exist(self, name: str) -> None:
        if self._format_version < 3:
            raise UnsupportedFeature(
                f"column '{name}' cannot have a default: that needs format version 3, the table has "
                f"{self._format_version}"
            )

    def _promote(self, node: FieldNode, new: IcebergType) -> None:
        old = node.freeze_type()
        if not promotion_allowed(old, new, self._format_version):
            raise InvalidSchema(f"cannot change '{node.path}' from {old} to {new}", field_id=node.id)
        if isinstance(old, DateType) and node.id in self._partition_ids:
            raise InvalidSchema(
                f"cannot change '{node.path}' from {old} to {new}: a partition spec uses it", field_id=node.id
            )
        if isinstance(old, UnknownType):
            new = fresh_type(new, self._take_id, {})
        initial, write = (promote(old, new, default) for default in (node.initial, node.write))
        node.initial, node.write = initial, write
        node.take_type(new)

    def _move(self, path: FieldName, reference: FieldName, *, is_before: bool) -> Self:
        node, neighbour = self._find(path), self._find(reference)
        parent = self._parent_struct(node, "move")
        if neighbour.parent is not parent:
            raise InvalidSchema(
                f"cannot move '{node.path}' next to '{neighbour.path}': they are in different structs", field_id=node.id
            )
        if node is neighbour:
            raise InvalidSchema(f"cannot move '{node.path}' next to itself", field_id=node.id)
        parent.remove(node)
        parent.insert(node, neighbour.before if is_before else neighbour)
        return self

    def _unite(self, parent: FieldNode, fields: Sequence[NestedField], undo: list[Callable[[], None]]) -> None:
        there = [parent.named(field.name, self._case_sensitive) for field in fields]
        for field, nodes in zip(fields, there, strict=True):
            # The last one counts if several names differ by case alone.
            node = nodes[-1] if nodes else None
            if node is None:
                added = self._unite_new(parent, field)
                undo.append(partial(parent.remove, added))
                continue
            undo.append(partial(_restore, node, node.leaf, node.required, node.doc, node.initial, node.write))
            self._unite_types(node, field.field_type, undo)
            node.required = node.required and field.required
            node.doc = node.doc if field.doc is None else field.doc
            if field.write_default is not None and self._format_version >= 3 and parent.kind is StructType:
                self._unite_write_default(node, field)

    def _unite_new(self, parent: FieldNode, field: NestedField) -> FieldNode:
        _check_name(field.name)
        if self._format_version < 3:
            optional = NestedField(0, field.name, field.field_type, False, field.doc)
            return self._insert(parent, self._numbered(optional))
        default = _checked_default(
            field, field.write_default if field.initial_default is None else field.initial_default
        )
        write = _checked_default(field, default if field.write_default is None else field.write_default)
        required = field.required and default is not None
        added = NestedField(0, field.name, field.field_type, required, field.doc, default, write)
        return self._insert(parent, self._numbered(added))

    def _unite_types(self, node: FieldNode, other: IcebergType, undo: list[Callable[[], None]]) -> None:
        if node.kind is type(other) and other.is_nested:
            if isinstance(other, MapType) and node.first and _shape(node.first.freeze_type()) != _shape(other.key_type):
                raise InvalidSchema(f"cannot change '{node.path}': a map's keys never change", field_id=node.id)
            self._unite(node, other.children[-1:] if node.kind is MapType else other.children, undo)
            return
        own = node.freeze_type()
        if own == other or isinstance(other, UnknownType) or promotion_allowed(other, own, 3):
            return
        self._promote(node, other)

    def _unite_write_default(self, node: FieldNode, field: NestedField) -> None:
        """Set the write default for new rows; the values of older rows stay unchanged."""
        own = node.freeze()
        default = field.write_default
        if not own.field_type.is_nested and own.field_type != field.field_type:
            default = promote(field.field_type, own.field_type, default)
        node.write = _checked_default(own, default)

    def _deleted(self, path: FieldName) -> tuple[Schema, NestedField]:
        known = sorted((self._schema, *self._history), key=lambda schema: schema.schema_id, reverse=True)
        for schema in known:
            if schema.has_field(path, self._case_sensitive):
                field = schema.find_field(path, self._case_sensitive)
                if self._node(field.field_id) is None:
                    return schema, field
        raise InvalidArgument(f"no deleted column is named {path!r}")


def _restore(node: FieldNode, leaf: IcebergType, required: bool, doc: str | None, initial: Any, write: Any) -> None:
    if node.leaf is not leaf:
        node.take_type(leaf)
    node.required, node.doc, node.initial, node.write = required, doc, initial, write


def _checked_default(field: NestedField, default: Any) -> Any:
    internal = internal_default(field, default)
    if isinstance(field.field_type, StructType) and internal not in (None, ()):
        raise InvalidSchema(
            f"default of struct '{field.name}' is not null or empty: give its fields their own defaults"
        )
    return NestedField(0, field.name, field.field_type, initial_default=internal).initial_default


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidArgument(f"the name of a column is a string, not {name!r:.80}")


def _shape(iceberg_type: IcebergType) -> tuple[Any, ...]:
    """A type without its ids, for comparing."""
    if not iceberg_type.is_nested:
        return (str(iceberg_type),)
    inner = tuple((child.name, child.required, _shape(child.field_type)) for child in iceberg_type.children)
    return (type(iceberg_type).__name__, inner)
