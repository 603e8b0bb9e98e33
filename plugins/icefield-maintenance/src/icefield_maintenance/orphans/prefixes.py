"""Equal schemes and authorities: locations that differ only in these count as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from icefield.errors import InvalidArgument

_PREFIX: Final = r"^(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*)://(?P<authority>[^/]*)"


class EqualPrefixes:
    """Equal names by the caller: each entry maps one name, or several separated by commas, to an equal name.

    ``Places`` handles the equal names of the installed file systems and location maps.
    """

    def __init__(self, equal_schemes: Mapping[str, str] | None, equal_authorities: Mapping[str, str] | None) -> None:
        self._schemes = _single("equal_schemes", equal_schemes)
        self._authorities = _single("equal_authorities", equal_authorities)

    def equal(self, locations: pa.StringArray) -> pa.StringArray:
        """The locations, with equal names replaced."""
        if not len(locations) or not (self._schemes or self._authorities):
            return locations
        parts = pc.extract_regex(locations, _PREFIX)
        scheme, authority = (parts.field(name) for name in ("scheme", "authority"))
        named = pc.is_valid(parts)
        scheme, authority = _renamed(scheme, self._schemes), _renamed(authority, self._authorities)
        rest = path_of(locations)
        joined = pc.binary_join_element_wise(scheme, "://", authority, rest, "")
        return pc.if_else(named, joined, locations)


def path_of(locations: pa.StringArray) -> pa.StringArray:
    """The locations without scheme and authority."""
    return pc.replace_substring_regex(locations, r"^[^:/]+://[^/]*", "")


def _renamed(column: pa.StringArray, names: Mapping[str, str]) -> pa.StringArray:
    codes = column.dictionary_encode()
    renamed = [names.get(each.lower(), each) for each in codes.dictionary.to_pylist()]
    return pa.array(renamed, pa.string()).take(codes.indices)


def _single(name: str, given: Mapping[str, str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for several, one in (given or {}).items():
        if not isinstance(several, str) or not isinstance(one, str):
            raise InvalidArgument(f"{name} maps strings to strings, not {several!r} to {one!r}")
        found.update({each.strip().lower(): one for each in several.split(",") if each.strip()})
    return found
