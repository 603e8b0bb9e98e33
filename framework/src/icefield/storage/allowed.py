"""The limits of the locations that a file IO opens: the properties ``location.*``, checked and compared."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final

from icefield.base.secrets import has_password, without_userinfo
from icefield.errors import InvalidArgument
from icefield.storage.local_paths import local_path
from icefield.storage.maps import MAP
from icefield.toolkit.authority import CREDENTIALS_FOR, scheme_of, split_location

ALLOWED_SCHEMES, ALLOWED_ROOTS = "location.allowed-schemes", "location.allowed-roots"
OWNED_ONLY: Final = "location.owned-only"
_LISTS: Final = (ALLOWED_SCHEMES, ALLOWED_ROOTS, CREDENTIALS_FOR)
_LOCAL: Final = ("", "file")
_HOLDS_A_PLACE = re.compile(r"(?:^|[._-])(?:warehouse|endpoint|host)$")


def check_limits(properties: Mapping[str, str]) -> None:
    """Refuse a misspelt or an empty limit, which would allow everything."""
    for key in properties:
        if key.startswith("location.") and not key.startswith(MAP) and key not in (*_LISTS, OWNED_ONLY):
            raise InvalidArgument(f"no property '{key}': there are {MAP}<prefix>, {', '.join(_LISTS)}")
    for key, value in properties.items():
        is_place = key.startswith("location.") or _HOLDS_A_PLACE.search(key)
        if is_place and (has_password(value) or has_password(f"host://{value}")):
            raise InvalidArgument(
                f"property '{without_userinfo(key)}' holds a password in its URI, which would be shown and stored with "
                "locations: remove it there, and give the credentials by the properties that are meant for them"
            )
    for key in _LISTS:
        if key in properties and not items_of(properties[key]):
            raise InvalidArgument(f"{key} lists nothing, so that nothing could be opened; remove it to allow all")
    for key, value in properties.items():
        if key.startswith(MAP) and scheme_of(value) != "file" and not value.endswith(":"):
            split_location(value)
    for location in items_of(properties.get(CREDENTIALS_FOR)):
        if scheme_of(location, default="") in _LOCAL or not split_location(location).authority:
            raise InvalidArgument(f"{CREDENTIALS_FOR} lists locations with a scheme and an authority, not {location}")


def without_locations(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties without ``location.*``, for which the catalog's values stay in force."""
    return {key: value for key, value in properties.items() if not key.startswith("location.")}


def items_of(string: str | None) -> list[str]:
    """The items of a list that is separated by commas."""
    return [part.strip() for part in (string or "").split(",") if part.strip()]


def canonical(location: str) -> tuple[str, str, str]:
    """Scheme, authority and path of a location, as its store takes them, the path with a slash at its end.

    On local disks ``..`` and links are followed. Other stores know names only: ``a//b`` is not ``a/b`` there, and
    paths with ``.`` or ``..`` between slashes were refused.
    """
    if scheme_of(location) == "file":
        return "file", "", f"{os.path.realpath(local_path(location)).rstrip('/')}/"
    scheme, authority, path = split_location(location)
    return scheme, authority, f"/{path}".rstrip("/") + "/"


def is_below(location: str, roots: Iterable[tuple[str, str, str]]) -> bool:
    """Whether a location is below one of the roots."""
    scheme, authority, path = canonical(location)
    return any((scheme, authority) == root[:2] and path.startswith(root[2]) for root in roots)
