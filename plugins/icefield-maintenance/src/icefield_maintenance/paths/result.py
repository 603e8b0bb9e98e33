"""The result of a rewrite of a table's locations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from icefield.toolkit import html_of, short_repr

SCHEMA: Final = pa.schema([pa.field("source", pa.string(), False), pa.field("target", pa.string(), False)])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RewriteTablePathResult:
    """The files that make up the copy of a table, once each ``source`` of ``files`` is copied to its ``target``.

    ``file_list_location`` is the location of the list as CSV without a header; None if no list was requested.
    """

    latest_version: str
    """The file name of the newest metadata file of the copy."""

    staging_location: str
    files: pa.Table = field(repr=False)
    file_list_location: str | None = None
    rewritten_manifests: int = 0
    rewritten_delete_files: int = 0

    __repr__ = short_repr
    _repr_html_ = html_of
