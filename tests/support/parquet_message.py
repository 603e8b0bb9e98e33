"""Parquet schemas as strings, in the notation of the format's own documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from parquet_footer import PHYSICAL, REPETITION


@dataclass
class Node:
    """One element of a schema."""

    name: str
    repetition: int
    physical: int | None = None
    length: int = 0
    annotations: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    field_id: int | None = None
    children: list[Node] = field(default_factory=list)


def parse_message(text: str) -> list[Node]:
    """The fields of ``optional group a (LIST) = 1 { ... } required int32 b;`` and the like."""
    tokens = re.findall(r"[\w.@-]+|[{}();,=\[\]]", text)
    nodes, position = _parse_fields(tokens, 0)
    assert position == len(tokens), f"left over: {tokens[position:]}"
    return nodes


def _parse_fields(tokens: list[str], position: int) -> tuple[list[Node], int]:
    nodes: list[Node] = []
    while position < len(tokens) and tokens[position] != "}":
        node, position = _parse_field(tokens, position)
        nodes.append(node)
    return nodes, position


def _parse_field(tokens: list[str], position: int) -> tuple[Node, int]:
    node = Node("", REPETITION.index(tokens[position]))
    kind = tokens[position + 1]
    position += 2
    if kind != "group":
        node.physical = PHYSICAL.index(kind)
        if tokens[position] == "(":
            node.length = int(tokens[position + 1])
            position += 3
    node.name = tokens[position]
    position += 1
    while position < len(tokens) and tokens[position] == "(":
        end = _closing(tokens, position)
        arguments = tuple(token for token in tokens[position + 2 : end] if token not in "(),")
        node.annotations.append((tokens[position + 1], arguments))
        position = end + 1
    if position < len(tokens) and tokens[position] == "=":
        node.field_id = int(tokens[position + 1])
        position += 2
    if kind == "group":
        node.children, position = _parse_fields(tokens, position + 1)
    return node, position + 1


def _closing(tokens: list[str], position: int) -> int:
    depth = 0
    for at in range(position, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[at], 0)
        if depth == 0:
            return at
    raise ValueError("unbalanced parentheses")


def walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from walk(child)
