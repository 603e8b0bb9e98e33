"""A plugin of a third author, which extends the plugin of the second: auditors may look at every table."""

from __future__ import annotations

from authors.house.hookspecs import Grant
from icefield import hookimpl


@hookimpl(optionalhook=True)
def icefield_grants() -> list[Grant]:
    return [Grant("audit", operation, ()) for operation in ("getConfig", "loadTable", "listTables")]
