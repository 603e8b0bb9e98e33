"""The plugin's hooks. Listing plugins imports this module, so it imports nothing heavy."""

from __future__ import annotations

from icefield import Provider, hookimpl
from icefield.metadata import Property

from icefield_lance.properties import BLOCK_ROWS


@hookimpl
def icefield_file_formats() -> list[Provider]:
    return [Provider(("lance",), "icefield_lance.lance_format:LanceFormat", contract=(2, 2))]


@hookimpl
def icefield_table_properties() -> list[Property]:
    return [BLOCK_ROWS]
