"""Moving locations from below one folder to below another."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from icefield.errors import InvalidArgument
from icefield.toolkit import without_userinfo


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Two folders, without a slash at the end.

    Raises ``InvalidArgument`` for an empty folder, and for equal folders.
    """

    source: str
    target: str

    @classmethod
    def of(cls, source: str, target: str) -> Prefixes:
        """The folders as given, with or without a slash at the end."""
        found = cls(source.rstrip("/"), target.rstrip("/"))
        for name, prefix in (("source_prefix", found.source), ("target_prefix", found.target)):
            if not prefix:
                raise InvalidArgument(f"{name} is the beginning of locations, and may not be empty", name=name)
        if found.source == found.target:
            raise InvalidArgument(f"source_prefix and target_prefix are the same: {without_userinfo(found.source)}")
        return found

    def has(self, location: str) -> bool:
        """Whether a location is the source folder or below it."""
        return location == self.source or location.startswith(f"{self.source}/")

    def moved(self, location: str, what: str) -> str:
        """The location below the target. Raises ``InvalidArgument`` for a location outside of the source."""
        if not self.has(location):
            raise self._elsewhere(location, what)
        return self.target + location[len(self.source) :]

    def below(self, location: str, what: str) -> str:
        """The part of a location after the source, with a leading slash."""
        return self.moved(location, what)[len(self.target) :]

    def moved_all(self, locations: pa.Array, what: str) -> pa.Array:
        """As ``moved``, for a column of locations with nulls."""
        found = pc.starts_with(locations, f"{self.source}/")
        if not pc.all(found, min_count=0).as_py():
            raise self._elsewhere(locations.filter(pc.invert(found))[0].as_py(), what)
        rest = pc.utf8_slice_codeunits(locations, len(self.source))
        return pc.binary_join_element_wise(self.target, rest, "")

    def _elsewhere(self, location: str, what: str) -> InvalidArgument:
        return InvalidArgument(
            f"{what} {without_userinfo(location)} is not below {without_userinfo(self.source)}: give a source_prefix "
            "that all files of the table have in common, as its metadata spells them",
            location=location,
        )
