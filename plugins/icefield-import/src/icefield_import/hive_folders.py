"""Partition values in the names of folders, as Hive and Spark write them: ``day=2024-01-01/kind=a%3Ab``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

from icefield import Schema
from icefield.errors import InvalidArgument

NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
"""The value of a folder whose rows have null in the column."""


def folder_values(folders: Iterable[str]) -> dict[str, str | None]:
    """The strings in names of folders, by the names of columns: in ``kind=a%3Ab``, ``kind`` is ``a:b``.

    Raises ``InvalidArgument`` for a column that two folders name.
    """
    found: dict[str, str | None] = {}
    for name, sign, value in (folder.partition("=") for folder in folders):
        if sign and (column := _decoded(name)) in found:
            raise InvalidArgument(f"two folders of one path name the column '{column}'")
        if sign:
            found[column] = None if value == NULL_FOLDER else _decoded(value)
    return found


def _decoded(name: str) -> str:
    """A name without its percent codes; unchanged if these are no UTF-8, so that two names stay two."""
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError:
        return name


def column_values(schema: Schema, location: str) -> dict[str, str | None]:
    """The strings that the folders of a file name, by the names of a table's columns.

    Names are compared exactly, else without case, as Hive compares them. Folders that name no column are ignored.
    """
    exact = {field.name: field.name for field in schema.fields}
    folded = {name.casefold(): name for name in exact}
    found = folder_values(location.split("/")[:-1])
    columns = {name: exact.get(name) or folded.get(name.casefold()) for name in found}
    return {column: found[name] for name, column in columns.items() if column is not None}
