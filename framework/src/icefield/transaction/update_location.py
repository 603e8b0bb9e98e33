"""Changes the location of a table's new files."""

from __future__ import annotations

from collections.abc import Callable

from icefield.base.secrets import has_password
from icefield.errors import InvalidArgument
from icefield.metadata import TableMetadata
from icefield.metadata.updates import SetLocation
from icefield.transaction.action import Action, ActionContext, Changes


class UpdateLocation(Action):
    """Set the table's base location. Files that exist stay where they are; nothing is moved."""

    def __init__(self, stage: Callable[[Action], None], location: str) -> None:
        super().__init__(stage)
        self._location = location.rstrip("/")
        if not self._location:
            raise InvalidArgument("a table's location cannot be empty")
        if has_password(self._location):
            raise InvalidArgument(
                f"the location {self._location} holds a password, and metadata files are no place for one: write it "
                "without, and give the credentials by properties of the catalog"
            )

    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The new location; no change if it is the same."""
        return Changes() if base.location == self._location else Changes((SetLocation(self._location),))
