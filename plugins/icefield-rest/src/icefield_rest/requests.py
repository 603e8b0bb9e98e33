"""Bodies of requests."""

from __future__ import annotations

from typing import Any, Final

from icefield.abc import NewTable
from icefield.metadata import updates_to_json

# Where an update's value stands in the body that creates a table.
_PLACES: Final = {
    "add-schema": ("schema", "schema"),
    "add-spec": ("spec", "partition-spec"),
    "add-sort-order": ("sort-order", "write-order"),
}


def create_body(new: NewTable, *, staged: bool) -> dict[str, Any]:
    """The creation of a table."""
    body: dict[str, Any] = {"stage-create": staged, "properties": dict(new.properties)}
    if new.location is not None:
        body["location"] = new.location
    for update in updates_to_json(new.updates):
        if place := _PLACES.get(update["action"]):
            body[place[1]] = update[place[0]]
    return body
