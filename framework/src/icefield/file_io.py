"""Where a location leads: to a file system by its scheme, past the configuration's maps and allow-lists.

Properties (of a catalog):

- ``location.map.<prefix>`` = ``<prefix>``: a table that was moved is read from where it lies now; the longest wins.
- ``location.allowed-schemes``: a comma-separated list; any other scheme is refused.
- ``location.allowed-roots``: a comma-separated list of locations; whatever lies below none of them is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from icefield.abc import CommitStrategy, FileFormat, FileInfo, FileSystem, InputFile, OutputStream, PutMode
from icefield.errors import FileMissing, InvalidArgument, InvalidFile, LocationRefused, StorageError, UnsafeCommit
from icefield.plugins import Plugins

_MAP = "location.map."
_ALLOWED_SCHEMES, _ALLOWED_ROOTS = "location.allowed-schemes", "location.allowed-roots"
_MAX_LOCATION = 32_768


class FileIO:
    """Opens and writes files by location, through the file systems of the plugins. Picklable by properties.

    ``base`` is a table's location: a location without a scheme takes its scheme and authority (versions 1 to 3 of the
    format hold absolute paths only).
    """

    def __init__(self, plugins: Plugins, properties: Mapping[str, str] | None = None, base: str | None = None) -> None:
        self.plugins = plugins
        self.properties: dict[str, str] = dict(properties or {})
        self.base = base
        self._maps = sorted(
            ((key[len(_MAP) :], value) for key, value in self.properties.items() if key.startswith(_MAP)),
            key=lambda pair: -len(pair[0]),
        )
        _check_limits(self.properties)
        self._schemes = _listed(self.properties.get(_ALLOWED_SCHEMES))
        self._roots = [_canonical(root) for root in _listed(self.properties.get(_ALLOWED_ROOTS))]
        self._systems: dict[type[FileSystem], FileSystem] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.plugins, self.properties, self.base)

    def __repr__(self) -> str:  # properties may hold credentials
        return f"FileIO(base={self.base!r})"

    def relative_to(self, base: str) -> FileIO:
        """The same file IO for a table at ``base``; connections are shared."""
        other = FileIO(self.plugins, self.properties, base)
        other._systems = self._systems
        return other

    def resolve(self, location: str) -> str:
        """The location to open: mapped, completed and allowed. Raises ``LocationRefused``."""
        if not location or len(location) > _MAX_LOCATION or "\0" in location:
            raise LocationRefused(f"no usable location: {location[:200]!r}", location=location[:200])
        mapped = self._complete(self._mapped(location))
        scheme = scheme_of(mapped)
        if self._schemes and scheme not in self._schemes:
            raise LocationRefused(
                f"{location} lies on the scheme '{scheme}', which location.allowed-schemes does not list",
                location=location,
            )
        if self._roots and not any(_below(_canonical(mapped), root) for root in self._roots):
            raise LocationRefused(f"{location} lies below no root of location.allowed-roots", location=location)
        return mapped

    def unmapped(self, location: str, place: str) -> str:
        """The location below ``place``, as metadata has it, that opens the file which lies at ``location``.

        ``location`` itself where it lies elsewhere. For whoever records where a strategy has put a version.
        """
        lies = self._mapped(place)
        return place + location[len(lies) :] if lies != place and location.startswith(f"{lies}/") else location

    def file_system(self, location: str) -> FileSystem:
        """The file system that serves a location."""
        kind = self.plugins.file_system(scheme_of(self.resolve(location)))
        system = self._systems.get(kind)
        if system is None:
            system = self._systems.setdefault(kind, kind(self.properties))
        return system

    def storage(self, location: str) -> FileSystem:
        """The file system that serves a location, with the maps and allow-lists of this file IO before it.

        For whoever writes at locations as a table's metadata has them: the strategy of a metastore.
        """
        return _Storage(self, location)

    def file_format(self, name: str) -> FileFormat:
        """The file format of that name in a manifest."""
        return self.plugins.file_format(name)

    def commit_strategy(self, name: str, table: tuple[str, ...], location: str) -> CommitStrategy:
        """The named strategy for a table at a location.

        Raises ``UnsafeCommit`` where the storage lacks what the strategy needs, and names what would be safe there.
        """
        kind = self.plugins.commit_strategy(name)
        resolved = self.resolve(location)
        system = self.file_system(location)
        if kind.needs and not system.abilities.intersection(kind.needs):
            raise self._unsafe(name, kind, system, scheme_of(resolved))
        return kind(table, resolved, system, self.properties)

    def open_input(self, location: str) -> InputFile:
        """Open a file for seekable reading."""
        return self.file_system(location).open_input(self.resolve(location))

    def read(self, location: str, *, limit: int | None = None) -> bytes:
        """Read a whole file. Raises ``InvalidFile`` when it has more than ``limit`` bytes."""
        source = self.open_input(location)
        try:
            # Asked for by size: a read of "at most so much" would reserve all of that.
            if limit is not None and source.seek(0, os.SEEK_END) > limit:
                raise InvalidFile(f"{location} has more than {limit} bytes", location=location)
            source.seek(0)
            return source.read()
        finally:
            source.close()

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        """Write a whole small file in one step."""
        self.file_system(location).put(self.resolve(location), data, mode)

    def open_output(self, location: str) -> OutputStream:
        """Open a stream to a new file."""
        return self.file_system(location).open_output(self.resolve(location))

    def stat(self, location: str) -> FileInfo:
        """Size and time of a file."""
        return self.file_system(location).stat(self.resolve(location))

    def exists(self, location: str) -> bool:
        """Whether a file is there."""
        try:
            self.stat(location)
        except FileMissing:
            return False
        return True

    def list(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        """Every file below a folder."""
        return self.file_system(prefix).list(self.resolve(prefix), shallow=shallow)

    def delete_many(self, locations: Iterable[str]) -> None:
        """Delete files, wherever each lies; one that is not there is no error."""
        groups: dict[int, tuple[FileSystem, list[str]]] = {}
        for location in locations:
            system = self.file_system(location)
            groups.setdefault(id(system), (system, []))[1].append(self.resolve(location))
        for system, found in groups.values():
            system.delete_many(found)

    def _mapped(self, location: str) -> str:
        for prefix, target in self._maps:
            if location == prefix or location.startswith(prefix if prefix.endswith("/") else prefix + "/"):
                return target + location[len(prefix) :]
            if location + "/" == prefix:  # the folder itself, of a map that is written with a slash at the end
                return target.rstrip("/")
        return location

    def _complete(self, location: str) -> str:
        if scheme_of(location, default=""):
            return location
        if location.startswith("/"):
            return location if self.base is None else _prefix_of(self.base) + location
        raise LocationRefused(
            f"{location!r} is a relative location: write an absolute one, such as file:///folder/file. (Before format "
            "version 4 metadata has no others; where it does, the property location.map.<prefix> tells where they lie)",
            location=location,
        )

    def _unsafe(self, name: str, kind: type[CommitStrategy], system: FileSystem, scheme: str) -> UnsafeCommit:
        others = []
        for other in self.plugins.names("commit-strategies"):
            needs = self.plugins.commit_strategy(other).needs
            if not needs or system.abilities.intersection(needs):
                others.append(f"commit='{other}'")
        others.append("a metastore catalog (type='sql')")
        needed = " or ".join(ability.name for ability in kind.needs)
        return UnsafeCommit(
            f"commit strategy '{name}' would lose updates on '{scheme}': it needs {needed}, which "
            f"{type(system).__name__} does not give; safe there: {', '.join(others)}",
            strategy=name,
            scheme=scheme,
        )


class _Storage(FileSystem):
    """The file systems behind a file IO as one: each location is resolved before it is used."""

    def __init__(self, io: FileIO, location: str) -> None:
        super().__init__(io.properties)
        self._io, self._location = io, location
        self.abilities = io.file_system(location).abilities  # type: ignore[misc]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._io, self._location)

    def open_input(self, location: str) -> InputFile:
        return self._io.open_input(location)

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        self._io.put(location, data, mode)

    def open_output(self, location: str) -> OutputStream:
        return self._io.open_output(location)

    def stat(self, location: str) -> FileInfo:
        return self._io.stat(location)

    def list(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        return self._io.list(prefix, shallow=shallow)

    def delete_many(self, locations: Iterable[str]) -> None:
        self._io.delete_many(locations)

    def rename(self, source: str, target: str) -> None:
        self._io.file_system(target).rename(self._io.resolve(source), self._io.resolve(target))


def scheme_of(location: str, *, default: str = "file") -> str:
    """The scheme of a location in lower case; ``default`` when it has none."""
    head, separator, _ = location.partition(":")
    if separator and head and head[0].isalpha() and all(c.isalnum() or c in "+.-" for c in head):
        return head.lower()
    return default


def local_path(location: str) -> str:
    """The path that ``file:///path``, ``file:/path`` or ``/path`` names on this machine; nothing is decoded.

    Raises ``LocationRefused`` for another scheme, another machine and a relative path.
    """
    scheme = scheme_of(location, default="")
    if scheme not in ("", "file"):
        raise LocationRefused(
            f"{location} does not lie on local disks: its scheme is '{scheme}', whose own file system opens it",
            location=location,
        )
    path = location[5:] if scheme else location
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
    return path


def _prefix_of(base: str) -> str:
    """Scheme and authority of a location: ``hdfs://nn:8020``, ``hdfs:``, or nothing for a bare path."""
    scheme = scheme_of(base, default="")
    if not scheme:
        return ""
    rest = base[len(scheme) + 1 :]
    return (
        f"{base[: len(scheme)]}://{rest[2:].partition('/')[0]}" if rest.startswith("//") else f"{base[: len(scheme)]}:"
    )


def _check_limits(properties: Mapping[str, str]) -> None:
    """Refuse a misspelt or an empty limit, which would allow everything."""
    for key in properties:
        if key.startswith("location.") and not key.startswith(_MAP) and key not in (_ALLOWED_SCHEMES, _ALLOWED_ROOTS):
            raise InvalidArgument(
                f"no property '{key}': there are {_MAP}<prefix>, {_ALLOWED_SCHEMES}, {_ALLOWED_ROOTS}"
            )
    for key in (_ALLOWED_SCHEMES, _ALLOWED_ROOTS):
        if key in properties and not _listed(properties[key]):
            raise InvalidArgument(f"{key} lists nothing, so that nothing could be opened; remove it to allow all")


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _canonical(location: str) -> tuple[str, str, str]:
    """Scheme, authority and path of a location, with ``..`` and (on local disks) links followed."""
    scheme = scheme_of(location)
    try:
        parts = urlsplit(location if scheme_of(location, default="") else f"file:{location}")
    except ValueError as error:
        raise StorageError(f"{location} is no location: {error}", location=location) from error
    path = location.split(":", 1)[1] if scheme_of(location, default="") else location
    if path.startswith("//"):
        path = "/" + path[2:].partition("/")[2]
    path = os.path.realpath(path) if scheme == "file" else os.path.normpath("/" + path.lstrip("/"))
    return scheme, "" if scheme == "file" else parts.netloc, path


def _below(place: tuple[str, str, str], root: tuple[str, str, str]) -> bool:
    return place[:2] == root[:2] and (place[2] == root[2] or place[2].startswith(root[2].rstrip("/") + "/"))
