"""The hooks of this plugin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from icefield import hookimpl

from icefield_progress.listener import hear

if TYPE_CHECKING:
    from icefield.abc import Event


@hookimpl
def icefield_events(event: Event, properties: Mapping[str, str]) -> None:
    """Show the progress of operations."""
    hear(event, properties)
