"""The path of a location on the disks of this machine."""

from __future__ import annotations

import os

from icefield.errors import LocationRefused
from icefield.toolkit.authority import scheme_of, shown


def local_path(location: str) -> str:
    """The path that ``file:///path``, ``file:/path`` or ``/path`` names on this machine; nothing is decoded.

    Raises ``LocationRefused`` for another scheme, another machine and a relative path.
    """
    scheme = scheme_of(location, default="")
    if scheme not in ("", "file"):
        raise LocationRefused(
            f"{location} is not on local disks: its scheme is '{scheme}', whose own file system opens it",
            location=location,
        )
    path = location[5:] if scheme else location
    if "\0" in path:
        raise LocationRefused(f"{shown(location)} is refused: no file can have that name", location=location)
    if scheme and path.startswith("//"):
        host, slash, below = path[2:].partition("/")
        path = slash + below
        if host not in ("", "localhost"):
            raise LocationRefused(
                f"{location} names the machine '{host}', and local disks are of this one; write file:///{host}{path} "
                f"if '{host}' is a folder",
                location=location,
            )
    if not path.startswith("/"):
        raise LocationRefused(
            f"{location!r} is a relative path, which means another place in each working directory; write the "
            f"absolute one, such as file://{os.path.abspath(path)}",
            location=location,
        )
    if not path.isascii():
        try:
            os.fsencode(path)
            path.encode()  # a lone surrogate stands for a byte that is no text
        except UnicodeEncodeError:
            said = f"{shown(location)} is refused: no file can have that name"
            raise LocationRefused(said, location=location) from None
    return path
