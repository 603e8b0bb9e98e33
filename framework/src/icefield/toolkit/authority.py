r"""The target of a location: one strict grammar for every store, and the authorities that the configuration names.

A location comes from a table, and a table is not trusted. If two parsers split one string differently, a location can
bypass every check between them. So there is one parser, and it refuses every ambiguous string::

    location  = scheme ":" [ "//" authority ] [ "/" path ]  |  "/" path
    authority = any of A-Z a-z 0-9 - . _ ~ $ @ : [ ]
    host      = name [ ":" port ]  |  "[" IPv6 address "]" [ ":" port ]
    name      = labels of A-Z a-z 0-9 - _, separated by single dots

An authority has no ``#``, ``?``, ``%``, ``\``, white space, control character or letter beyond ASCII; each store
decides whether ``@`` and ``:`` are allowed. A path is taken literally. The path segments ``.`` and ``..`` are refused
everywhere but on local disks. Object stores take them as ordinary names, but clients and proxies on the way do not, so
that the request could differ from the checked location. Zero bytes and lone surrogates are refused: no store has them
in a name.

Credentials are sent only to the authorities that the configuration names: see ``authorities_named``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import AddressValueError, IPv6Address
from typing import Final, NamedTuple

from icefield.base.secrets import has_password
from icefield.errors import InvalidArgument, LocationRefused

CREDENTIALS_FOR: Final = "location.credentials-for"
"""A comma-separated list of locations that may receive credentials, besides the locations in other properties."""

_LISTS: Final = (CREDENTIALS_FOR, "location.allowed-roots")
_MAP: Final = "location.map."
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_AUTHORITY: Final = re.compile(r"[A-Za-z0-9._~$@:\[\]-]*")
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.))*(?<![.])")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_DOTS: Final = re.compile(r"(?:^|[/\\])\.{1,2}(?=$|[/\\])")
_ENDPOINT: Final = re.compile(r"(https?)://([^/]*)((?:/[A-Za-z0-9._~-]+)*)/?", re.IGNORECASE)
_MOST_OF_A_NAME: Final = 255


class LocationParts(NamedTuple):
    """The parts of a location: scheme in lower case, authority and path unchanged.

    The scheme is empty for a bare path. The path begins after the slash that follows the authority.
    """

    scheme: str
    authority: str
    path: str


class Host(NamedTuple):
    """A host in lower case, without brackets, and its port, or None without a port."""

    name: str
    port: int | None

    def __str__(self) -> str:
        shown = f"[{self.name}]" if ":" in self.name else self.name
        return shown if self.port is None else f"{shown}:{self.port}"


class Endpoint(NamedTuple):
    """The address of a service, as a property names it: ``https://host:port/path``."""

    secure: bool
    host: Host
    path: str

    def __str__(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.host}{self.path}"


def scheme_of(location: str, *, default: str = "file") -> str:
    """The scheme of a location in lower case; ``default`` when it has none."""
    found = _SCHEME.match(location)
    return found[1].lower() if found else default


def split_location(location: str) -> LocationParts:
    """Split a location. Raises ``LocationRefused`` for a location that other software could split differently."""
    scheme = scheme_of(location, default="")
    rest = location[len(scheme) + 1 :] if scheme else location
    authority = ""
    if scheme and rest.startswith("//"):
        authority, _, path = rest[2:].partition("/")
    elif rest.startswith("/"):
        path = rest[1:]
    else:
        said = "a location is scheme://authority/path, or an absolute path"
        raise LocationRefused(f"{shown(location)} is no location: {said}", location=location)
    if _AUTHORITY.fullmatch(authority) is None:
        raise LocationRefused(
            f"{shown(location)} is refused: what is between its first slashes holds a character that no name of a "
            "host, a bucket or an account has",
            location=location,
        )
    if scheme not in ("", "file"):
        _check_path(location, path)
    return LocationParts(scheme, authority, path)


def has_dot_segments(path: str) -> bool:
    """Whether a path has a segment ``.`` or ``..``. Backslashes separate segments, too: some servers read them so."""
    return "." in path and _DOTS.search(path) is not None


def check_characters(location: str) -> None:
    """Raise ``LocationRefused`` for characters that no store has in a file name: a zero byte, a lone surrogate."""
    if "\0" in location:
        raise LocationRefused(
            f"{shown(location)} is refused: a name ends at a zero byte for some clients", location=location
        )
    if not location.isascii():
        try:
            location.encode()
        except UnicodeEncodeError:
            raise LocationRefused(f"{shown(location)} is refused: it is no Unicode", location=location) from None


def _check_path(location: str, path: str) -> None:
    if has_dot_segments(path):
        raise LocationRefused(
            f"{shown(location)} is refused: '.' and '..' in a path lead elsewhere for some clients and stores, and are "
            "names for others; write the location without them",
            location=location,
        )
    check_characters(location)


def split_host(authority: str, location: str) -> Host:
    """Split ``host`` or ``host:port``. Raises ``LocationRefused`` for anything else, user names included."""
    if authority.startswith("["):
        name, bracket, rest = authority[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        fits = bool(bracket) and _is_ipv6(name)
    else:
        name, colon, port = authority.partition(":")
        fits = _NAME.fullmatch(name) is not None and len(name) <= _MOST_OF_A_NAME
    if colon:
        fits = fits and colon == ":" and _PORT.fullmatch(port) is not None and 0 < int(port) < 65_536
    if not fits:
        raise LocationRefused(f"{shown(location)} names no host and port: '{authority}' is none", location=location)
    return Host(name.lower(), int(port) if colon else None)


def endpoint_of(string: str, name: str) -> Endpoint:
    """The address that a property holds; without a scheme it is of HTTPS. Raises ``InvalidArgument``, naming it."""
    found = _ENDPOINT.fullmatch(string if "://" in string else f"https://{string}")
    try:
        if found is None:
            raise LocationRefused("", location=string)
        return Endpoint(found[1].lower() == "https", split_host(found[2], string), found[3])
    except LocationRefused:  # the value is not shown: it may hold a password
        raise InvalidArgument(
            f"{name} is no address of a service: write https://host, or http://host:port; credentials have properties "
            "of their own"
        ) from None


def authorities_named(properties: Mapping[str, str], schemes: frozenset[str]) -> Iterator[LocationParts]:
    """The locations of these schemes that the configuration itself names.

    They are the ``warehouse``, ``location.allowed-roots``, the targets of ``location.map.<prefix>`` and
    ``location.credentials-for``. The plugin of a store knows which further properties name locations.
    """
    named = [properties.get("warehouse", "")]
    for name in _LISTS:
        named += [location.strip() for location in properties.get(name, "").split(",")]
    named += [value for name, value in properties.items() if name.startswith(_MAP)]
    for location in named:
        if scheme_of(location, default="") in schemes:
            yield split_location(location)


def add_named(properties: Mapping[str, str], location: str) -> dict[str, str]:
    """The properties, with one more location that the user has named and so vouches for."""
    scheme = scheme_of(location)
    # A location with a password is refused when it is opened.
    if scheme == "file" or has_password(location) or not (authority := split_location(location).authority):
        return dict(properties)
    before = properties.get(CREDENTIALS_FOR)
    place = f"{scheme}://{authority}"
    return {**properties, CREDENTIALS_FOR: f"{before}, {place}" if before else place}


def credentials_refused(location: str, what: str, named: str) -> LocationRefused:
    """The error for a location with an authority that receives no credentials.

    ``what`` is the host, account or bucket; ``named`` is the property of the plugin that would name it.
    """
    return LocationRefused(
        f"{shown(location)} is at {what}, which the configuration does not name, so that the credentials are not "
        f"sent there and nothing is asked; if it is yours, name it by {named}, or list its locations in "
        f"{CREDENTIALS_FOR}",
        location=location,
    )


def shown(location: str) -> str:
    """The form of a location in an error: unchanged, or escaped and cut if it could deceive a reader."""
    return location if location.isprintable() and len(location) <= 1_000 else ascii(location[:1_000])


def _is_ipv6(string: str) -> bool:
    try:
        IPv6Address(string)
    except AddressValueError:
        return False
    return "%" not in string
