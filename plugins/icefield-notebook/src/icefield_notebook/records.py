"""Pages about scans, and about the results of writes and of maintenance: a line for each field that says something."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

from icefield_notebook.parts import MOST_ROWS, Figure, facts, folded, grid, page
from icefield_notebook.texts import count, size


def record_page(shown: object) -> str | None:
    """A dataclass as HTML; None for anything else. Fields with their default values are left out."""
    if not is_dataclass(shown) or isinstance(shown, type):
        return None
    known: dict[str, Any] = dict(_values(shown))
    name = ".".join(map(str, known.pop("identifier", ())))
    lists = {key: value for key, value in known.items() if isinstance(value, tuple) and _is_long(value)}
    lines = [(_words(key), _value(key, value)) for key, value in known.items() if key not in lists]
    parts = [folded(f"{_words(key)} ({count(len(value))})", _list(key, value)) for key, value in lists.items()]
    empty = "" if lines or parts or name else "<p><small>no changes</small></p>"
    return page(type(shown).__name__, facts(lines), *parts, empty, about=[name] if name else [])


def _values(shown: Any) -> Iterator[tuple[str, object]]:
    """The fields that differ from their defaults, and what a result computes from them."""
    for field in fields(shown):
        value = getattr(shown, field.name)
        if field.repr and not field.name.startswith("_") and value != _default(field):
            yield field.name, value
    if type(shown).__name__.endswith("Result"):
        for name, computed in vars(type(shown)).items():
            if isinstance(computed, property) and not name.startswith("_") and not hasattr(shown, f"{name}s"):
                yield name, getattr(shown, name)


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _is_long(value: tuple[object, ...]) -> bool:
    return len(value) > 3 or any(map(is_dataclass, value))


def _value(key: str, value: object) -> object:
    if value is None:
        return "not counted"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return size(value) if "bytes" in key else value if key.endswith("id") else f"{value:,}"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={given}" for name, given in list(value.items())[:MOST_ROWS])
    return value


def _list(key: str, values: tuple[Any, ...]) -> str:
    first = values[:MOST_ROWS]
    if not is_dataclass(first[0]):
        return grid((_words(key),), ((each,) for each in first), len(values))
    names = [field.name for field in fields(first[0]) if field.repr]
    rows = ([_figure(name, getattr(each, name)) for name in names] for each in first)
    return grid([_words(name) for name in names], rows, len(values))


def _figure(key: str, value: object) -> object:
    known = _value(key, value)
    return Figure(known) if isinstance(value, int) and not isinstance(value, bool) else known


def _words(key: str) -> str:
    return key.replace("_", " ")
