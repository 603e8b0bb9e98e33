"""The table properties of the Hive Metastore."""

# ruff: noqa: E501 -- the table reads best with one property a line
from __future__ import annotations

from typing import Final

from icefield.metadata import Property

# fmt: off
HIVE_ENABLED: Final = Property("engine.hive.enabled", bool, False, "Whether the table is made readable through Hive's storage handler.")
HIVE_LOCK_ENABLED: Final = Property("engine.hive.lock-enabled", bool, True, "Whether commits of Java through the Hive Metastore take its lock; those of Icefield always do.", unread=True)
# fmt: on

PROPERTIES: Final = tuple(each for each in tuple(globals().values()) if isinstance(each, Property))
"""Every property above."""
