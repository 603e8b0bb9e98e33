"""What a shell completes: names of namespaces and tables, level by level."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

import click
from click.shell_completion import CompletionItem

from icefield_cli.context import Context

if TYPE_CHECKING:
    from icefield import Catalog

_MOST: Final = 1_000
"""The maximum number of names that a shell is given."""

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def of(argument: str) -> Complete | None:
    """The completion of an argument, by its name; None without one."""
    return {"table": _tables, "namespace": _namespaces, "parent": _namespaces}.get(argument)


def _tables(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return _completed(context, begun, tables=True)


def _namespaces(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return _completed(context, begun, tables=False)


def _completed(context: click.Context, begun: str, *, tables: bool) -> list[CompletionItem]:
    try:
        names = _names(context.ensure_object(Context).catalog, begun, tables=tables)
        return [CompletionItem(name, type="plain") for name, _ in zip(names, range(_MOST), strict=False)]
    except Exception:  # a catalog that does not answer: the shell shows nothing, and the command will say why
        return []


def _names(catalog: Catalog, begun: str, *, tables: bool) -> Iterator[str]:
    """The namespaces and tables whose names begin with the written part."""
    parent = tuple(begun.split(".")[:-1])
    for namespace in catalog.list_namespaces(parent):
        name = ".".join(namespace)
        if name.startswith(begun):
            # More follows the name of a namespace where a table is meant.
            yield f"{name}." if tables else name
    if tables and parent:
        yield from (name for each in catalog.list_tables(parent) if (name := ".".join(each)).startswith(begun))
