"""Maps of locations, which lead to the present location of a moved table."""

from __future__ import annotations

import os
from typing import Final

from icefield.errors import InvalidArgument, LocationRefused
from icefield.toolkit.authority import has_dot_segments, scheme_of, shown, split_location

MAP: Final = "location.map."
"""The prefix of the properties that map locations."""


def joined(target: str, below: str, prefix: str, location: str) -> str:
    """The location of a path below the target of a map.

    Raises ``LocationRefused`` where it would leave the target.
    """
    joined = target + below
    whole_scheme = prefix.endswith((":", "://")) and target.endswith((":", "://"))
    leaves = has_dot_segments(below)
    if not leaves and not whole_scheme and scheme_of(target) != "file":
        leaves = split_location(joined)[:2] != split_location(f"{target}/")[:2]
    if leaves:
        raise LocationRefused(
            f"{shown(location)} is refused: it could leave the folder that location.map.{prefix} leads to",
            location=location,
        )
    return joined


def completed(path: str, base: str) -> str:
    """A location without a scheme, completed by the scheme and authority of a table's location."""
    scheme = scheme_of(base, default="")
    if not scheme:
        return path
    if path.startswith("//"):  # after a scheme it would name an authority
        raise LocationRefused(f"{shown(path)} is refused: it has two slashes before its first name", location=path)
    rest = base[len(scheme) + 1 :]
    authority = f"//{rest[2:].partition('/')[0]}" if rest.startswith("//") else ""
    return f"{base[: len(scheme)]}:{authority}{path}"


def map_of(key: str, target: str) -> tuple[str, str]:
    """A map's prefix and target, both with a slash at the end or both without one.

    The target comes from the user, never from a table: without a scheme it is a path of this machine, even if the
    prefix has another scheme. It gets its scheme here, so that resolving a resolved location does not change it.
    """
    prefix = key[len(MAP) :]
    if not scheme_of(target, default=""):
        if not target.startswith("/"):
            raise InvalidArgument(
                f"{key} leads to {target!r}, which is no absolute location: write one, such as "
                f"{os.path.abspath(target)} or scheme://bucket/folder"
            )
        target = f"file://{target}"
    if prefix.endswith("/"):
        return prefix, target if target.endswith("/") else f"{target}/"
    return prefix, target if target.endswith("://") else target.rstrip("/")
