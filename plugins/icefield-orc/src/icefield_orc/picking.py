"""Which part of an ORC file a request needs: the types that it names, and the paths to ask pyarrow for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from icefield.errors import InvalidArgument
from icefield.toolkit import child_fields, field_id

from icefield_orc.schema import Node, TypeKind


@dataclass(frozen=True, slots=True)
class Pick:
    """A type and its projected children.

    ``parts`` are the projected children in projection order. Each child has its position among the children that
    pyarrow reads, which come in the file's order.
    """

    node: Node
    parts: tuple[tuple[int, Pick], ...] = ()

    def leaves(self) -> Iterable[Node]:
        """The types without children that are read."""
        if self.node.opaque or not self.parts:
            yield from (node for node in self.node.below() if not node.children)
        for _, part in self.parts:
            yield from part.leaves()


@dataclass(frozen=True, slots=True)
class PickedColumns:
    """The picks of a request's columns. ``paths`` are the paths for pyarrow to read, None for everything."""

    root: Pick
    paths: tuple[str, ...] | None


def select(root: Node, columns: pa.Schema) -> PickedColumns:
    """Find the columns of a request, a part of the file's schema; raises ``InvalidArgument`` for any other.

    pyarrow takes dotted paths. Where such a path could mean two columns, all columns are read instead.
    """
    paths: list[str] = []
    wanted = list(columns)
    pick = _pick_fields(root, wanted, paths)
    known = Counter(child.path for node in root.below() if node.kind == TypeKind.STRUCT for child in node.children)
    if all(known[path] == 1 for path in paths):
        return PickedColumns(pick, tuple(paths))
    return PickedColumns(_pick_fields(root, wanted, None), None)


def decoded(root: Node, selection: PickedColumns) -> list[Node]:
    """Return the types that pyarrow decodes for a selection: at its paths, below them, and above them."""
    nodes = list(root.below())
    if selection.paths is None:
        return nodes
    paths = frozenset(selection.paths)
    # A list comes before its element, which has the same path. The types below a type have the numbers right after its
    # own.
    tops: list[Node] = []
    for node in nodes[1:]:
        if node.path in paths and not (tops and node.column <= tops[-1].last):
            tops.append(node)
    columns = {root.column, *(column for top in tops for column in range(top.column, top.last + 1))}
    firsts = [top.column for top in tops]
    above = (node for node in nodes if bisect_left(firsts, node.column) < bisect_right(firsts, node.last))
    columns.update(node.column for node in above)
    return [node for node in nodes if node.column in columns]


def whole(root: Node, field: pa.Field) -> Pick:
    """The pick of one column that is read with all its children."""
    return _pick_fields(root, [field], None).parts[0][1]


def _pick(node: Node, wanted: pa.DataType, paths: list[str] | None) -> Pick:
    """Pick a type. ``paths`` collects the paths to read, and is None below a type that is read as a whole."""
    if node.kind == TypeKind.STRUCT and not node.opaque:
        asked = child_fields(wanted)
        partial = paths is not None and len(asked) < len(node.children) and len(asked) > 0
        if paths is not None and not partial:
            partial = any(_is_nested(field.type) for field in asked)
        if partial:
            return _pick_fields(node, asked, paths)
        _include(node, paths)
        return _pick_fields(node, asked, None)
    if node.kind == TypeKind.LIST:
        element, want = node.children[0], wanted.value_type
        if paths is not None and element.kind == TypeKind.STRUCT and not element.opaque:
            return Pick(node, ((0, _pick(element, want, paths)),))
        _include(node, paths)
        return Pick(node, ((0, _pick(element, want, None)),))
    _include(node, paths)
    if node.kind == TypeKind.MAP:
        sides = zip(node.children, (wanted.key_type, wanted.item_type), strict=True)
        return Pick(node, tuple((at, _pick(child, want, None)) for at, (child, want) in enumerate(sides)))
    return Pick(node)


def _pick_fields(node: Node, asked: Sequence[pa.Field], paths: list[str] | None) -> Pick:
    named: dict[str, list[int]] = {}
    for at, child in enumerate(node.children):
        named.setdefault(child.name, []).append(at)
    found = [_match(node.children, named.get(field.name, []), field) for field in asked]
    picks = [_pick(node.children[at], field.type, paths) for at, field in zip(found, asked, strict=True)]
    held = sorted(set(found)) if paths is not None else range(len(node.children))
    ranks = {at: rank for rank, at in enumerate(held)}
    return Pick(node, tuple((ranks[at], pick) for at, pick in zip(found, picks, strict=True)))


def _include(node: Node, paths: list[str] | None) -> None:
    if paths is not None:
        paths.append(node.path)


def _is_nested(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_nested(data_type))


def _match(siblings: Sequence[Node], same: list[int], wanted: pa.Field) -> int:
    """Choose among siblings with the same name."""
    if not same:
        raise InvalidArgument(f"the file has no column '{wanted.name}'")
    if len(same) > 1:
        wanted_id = field_id(wanted)
        same = [at for at in same if siblings[at].field_id == wanted_id] or same
    return same[0]
