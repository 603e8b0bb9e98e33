"""Which part of an ORC file a request needs: the types that it names, and the paths to ask pyarrow for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
from icefield.errors import InvalidArgument
from icefield.toolkit import child_fields, field_id

from icefield_orc.schema import Kind, Node


@dataclass(frozen=True, slots=True)
class Pick:
    """A type and what is wanted of it.

    ``parts`` are the wanted children in the order they are wanted in, each with its position among the children that
    are read, which come in the file's order.
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
class Selection:
    """The picks of a request's columns. ``paths`` are what pyarrow is to read, None for everything."""

    root: Pick
    paths: tuple[str, ...] | None


def select(root: Node, columns: pa.Schema) -> Selection:
    """Find the columns of a request, a part of the file's schema; raises ``InvalidArgument`` for any other.

    pyarrow takes dotted paths. Where such a path could mean two columns, all columns are read instead.
    """
    paths: list[str] = []
    wanted = list(columns)
    pick = _pick_fields(root, wanted, "", paths)
    known = Counter(place.path for place in _places(root))
    if all(known[path] == 1 for path in paths):
        return Selection(pick, tuple(paths))
    return Selection(_pick_fields(root, wanted, "", None), None)


def decoded(root: Node, selection: Selection) -> list[Node]:
    """The types that pyarrow decodes for a selection: those at its paths, all below them and all above."""
    if selection.paths is None:
        return list(root.below())
    paths, found = frozenset(selection.paths), {root.column: root}
    for place in _places(root):
        if place.path in paths:
            found.update((node.column, node) for node in (*place.above, *place.node.below()))
    return list(found.values())


def whole(root: Node, field: pa.Field) -> Pick:
    """The pick of one column that is read with all its children."""
    return _pick_fields(root, [field], "", None).parts[0][1]


class _Place(NamedTuple):
    """A type that pyarrow reads by a path of its own, and the types above it without the root."""

    path: str
    above: tuple[Node, ...]
    node: Node


def _places(node: Node, prefix: str = "", above: tuple[Node, ...] = ()) -> Iterator[_Place]:
    """Every path that pyarrow knows: lists and maps add nothing to the paths below them."""
    for child in node.children:
        path = prefix
        if node.kind == Kind.STRUCT:
            yield _Place(prefix + child.name, above, child)
            path = prefix + child.name + "."
        yield from _places(child, path, (*above, child))


def _pick(node: Node, wanted: pa.DataType, path: str, paths: list[str] | None) -> Pick:
    """``paths`` gathers what to read, and is None below what is read as a whole."""
    if node.kind == Kind.STRUCT and not node.opaque:
        asked = child_fields(wanted)
        partial = paths is not None and len(asked) < len(node.children) and len(asked) > 0
        if paths is not None and not partial:
            partial = any(_is_nested(field.type) for field in asked)
        if partial:
            return _pick_fields(node, asked, path + ".", paths)
        _include(path, paths)
        return _pick_fields(node, asked, "", None)
    if node.kind == Kind.LIST:
        element, want = node.children[0], wanted.value_type
        if paths is not None and element.kind == Kind.STRUCT and not element.opaque:
            return Pick(node, ((0, _pick(element, want, path, paths)),))
        _include(path, paths)
        return Pick(node, ((0, _pick(element, want, "", None)),))
    _include(path, paths)
    if node.kind == Kind.MAP:
        sides = zip(node.children, (wanted.key_type, wanted.item_type), strict=True)
        return Pick(node, tuple((at, _pick(child, want, "", None)) for at, (child, want) in enumerate(sides)))
    return Pick(node)


def _pick_fields(node: Node, asked: Sequence[pa.Field], prefix: str, paths: list[str] | None) -> Pick:
    named: dict[str, list[int]] = {}
    for at, child in enumerate(node.children):
        named.setdefault(child.name, []).append(at)
    found = [_match(node.children, named.get(field.name, []), field) for field in asked]
    picks = [
        _pick(node.children[at], field.type, prefix + field.name, paths) for at, field in zip(found, asked, strict=True)
    ]
    held = sorted(set(found)) if paths is not None else range(len(node.children))
    ranks = {at: rank for rank, at in enumerate(held)}
    return Pick(node, tuple((ranks[at], pick) for at, pick in zip(found, picks, strict=True)))


def _include(path: str, paths: list[str] | None) -> None:
    if paths is not None:
        paths.append(path)


def _is_nested(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_nested(data_type))


def _match(siblings: Sequence[Node], same: list[int], wanted: pa.Field) -> int:
    """Which of the siblings of one name is meant."""
    if not same:
        raise InvalidArgument(f"the file has no column '{wanted.name}'")
    if len(same) > 1:
        wanted_id = field_id(wanted)
        same = [at for at in same if siblings[at].field_id == wanted_id] or same
    return same[0]
