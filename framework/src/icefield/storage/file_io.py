"""Resolves locations: to a file system by their scheme, after the configuration's maps and allow-lists.

Properties (of a catalog):

- ``location.map.<prefix>`` = ``<prefix>``: opens a moved table at its present location; the longest prefix wins.
  A target without a scheme is a path of this machine. A location is mapped once, when a file is opened, listed or
  deleted; all other code names files by the locations of the metadata, so two locations may be swapped.
- ``location.allowed-schemes``, ``location.allowed-roots``: comma-separated lists; other locations are refused.
- ``io.threads``: the number of threads that read and write the files of one operation, at most 256.
- ``location.credentials-for``: see ``icefield.toolkit.authority``. ``location.owned-only``: see ``neighbours``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from icefield.abc import (
    CommitStrategy,
    FileAccess,
    FileFormat,
    FileInfo,
    FileSystem,
    FileSystemAbility,
    InputFile,
    ManifestFormat,
    OutputStream,
    PutMode,
    TableEncryption,
)
from icefield.base.concurrency import worker_count
from icefield.base.limits import MAX_LOCATION_LENGTH, MAX_METADATA_BYTES
from icefield.base.secrets import has_password, without_userinfo
from icefield.errors import (
    BrokenPlugin,
    FileMissing,
    IcefieldError,
    InvalidArgument,
    InvalidFile,
    InvalidMetadata,
    LocationRefused,
    UnsafeCommit,
    UnsupportedFeature,
)
from icefield.metadata import TableMetadata
from icefield.plugins import Listeners, Plugins
from icefield.storage.allowed import (
    ALLOWED_ROOTS,
    ALLOWED_SCHEMES,
    canonical,
    check_limits,
    is_below,
    items_of,
    without_locations,
)
from icefield.storage.encrypted_files import NewFile, created, is_encrypted, key_length, key_service, opened
from icefield.storage.maps import MAP, completed, joined, map_of
from icefield.toolkit.authority import scheme_of, shown, split_location
from icefield.toolkit.input_files import as_input_file, read_bounded
from icefield.toolkit.options import thread_count

Deletable = Callable[[Sequence[str]], Sequence[str]]
"""A function that returns the given locations without the files that must not be deleted."""


class FileIO:
    """Opens and writes files by location, through the file systems of the plugins. Picklable, without connections.

    ``base`` is a table's location: a location without a scheme takes its scheme and authority (versions 1 to 3 of the
    format hold absolute paths only). ``access`` opens the files below some prefixes with properties of its own.
    ``catalog``: the name of the files' catalog, for its ``listeners``.
    """

    def __init__(
        self,
        plugins: Plugins,
        properties: Mapping[str, str] | None = None,
        base: str | None = None,
        access: Sequence[FileAccess] = (),
        catalog: str | None = None,
    ) -> None:
        self.plugins = plugins
        self.properties: dict[str, str] = dict(properties or {})
        self.base, self.catalog = base, catalog
        self.listeners = Listeners(plugins, self.properties, catalog)
        self.access = tuple(sorted(access, key=lambda each: -len(each.prefix)))
        self.key_length: int | None = None
        """The length of the keys of new files, in bytes; None for plain files. See ``encrypting``."""
        self._encryption: TableEncryption | None = None
        self._origin: FileIO = self
        self._of_the_table: Mapping[str, str] = {}
        self._judge: Callable[[str], bool] | None = None
        self._deletable: Deletable | None = None
        self._maps = sorted(
            (map_of(key, value) for key, value in self.properties.items() if key.startswith(MAP)),
            key=lambda pair: -len(pair[0]),
        )
        check_limits(self.properties)
        self._threads = thread_count(self.properties)
        self._schemes = items_of(self.properties.get(ALLOWED_SCHEMES))
        self._roots = [canonical(root) for root in items_of(self.properties.get(ALLOWED_ROOTS))]
        self._systems: dict[tuple[type[FileSystem], FileAccess | None], FileSystem] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        if self._judge is not None or self._deletable is not None:
            raise TypeError("a FileIO that opens or deletes only some files stays in its process")
        given = self.plugins, self.properties, self.base, self.access, self.catalog
        return (type(self), given) if self.key_length is None else (_encrypting, (given, self.key_length))

    def __repr__(self) -> str:  # properties may hold credentials
        return without_userinfo(f"FileIO(base={self.base!r})")

    def for_workers(self, planning: re.Pattern[str]) -> FileIO:
        """The same access to files, without the properties for ``planning`` and committing alone."""
        kept = {name: value for name, value in self.properties.items() if not planning.match(name)}
        other = FileIO(self.plugins, kept, self.base, self.access, self.catalog)
        other.key_length = self.key_length
        return other

    def relative_to(self, base: str | None) -> FileIO:
        """The same file IO for a table at ``base``; connections are shared."""
        other = FileIO(self.plugins, self.properties, base, self.access, self.catalog)
        other._systems, other._origin, other._of_the_table = self._systems, self._origin, self._of_the_table
        other.listeners, other.key_length = self.listeners, self.key_length
        other._judge, other._deletable = self._judge, self._deletable
        return other

    def encrypting(self, metadata: TableMetadata) -> FileIO:
        """This file IO for a table: new files of an encrypted table are encrypted, and plain ones are refused."""
        length = key_length(metadata)
        if length == self.key_length:
            return self
        other = self.relative_to(self.base)
        other.key_length = length
        return other

    @property
    def encryption(self) -> TableEncryption:
        """The encryption of tables. Only the catalog's own properties choose its key service."""
        origin = self._origin
        if origin._encryption is None:
            made = self.plugins.encryption()
            origin._encryption = made(partial(key_service, self.plugins, origin.properties))
        return origin._encryption

    def opening_only(self, judge: Callable[[str], bool]) -> FileIO:
        """The same file IO, which opens and deletes only the files that ``judge`` allows by their resolved location.

        A service uses it to read the files that metadata names, since a client may have written this metadata.
        """
        other = self.relative_to(self.base)
        other._judge = judge
        return other

    def deleting_only(self, deletable: Deletable) -> FileIO:
        """The same file IO, which deletes only the files that ``deletable`` returns of given locations.

        A service uses it to delete the files that metadata names, since a client may have written this metadata. Other
        files stay.
        """
        other = self.relative_to(self.base)
        other._deletable = deletable
        return other

    def deletable(self, locations: Sequence[str]) -> Sequence[str]:
        """The locations of the files that may be deleted: all, unless ``deleting_only`` limits them."""
        return locations if self._deletable is None else self._deletable(locations)

    @property
    def has_roots(self) -> bool:
        """Whether only files below some locations may be opened."""
        return bool(self._roots)

    def limit_to(self, roots: Sequence[str]) -> None:
        """Open only files below some locations, mapped, from now on. Copies that were made before do not change.

        Raises ``InvalidArgument`` for a location that cannot be an item of ``location.allowed-roots``.
        """
        opened = [self._mapped(root) for root in roots]
        listed = ",".join(opened)
        if not opened or items_of(listed) != opened:
            raise InvalidArgument(f"{ALLOWED_ROOTS} cannot list {', '.join(map(repr, roots)) or 'nothing'}")
        self.properties[ALLOWED_ROOTS] = listed
        self._roots = [canonical(root) for root in opened]

    def workers(self, threads: int | None = None, *, waiting: bool = False) -> int:
        """The number of threads for one operation: ``threads``, else ``io.threads``, else by the number of processors.

        ``waiting``: the threads wait for storage most of the time, so that the default is higher.
        """
        return worker_count(self._threads if threads is None else max(1, threads), waiting=waiting)

    def for_table(self, base: str | None, properties: Mapping[str, str], access: Sequence[FileAccess] = ()) -> FileIO:
        """The file IO of one table, at ``base`` if it is known, with properties of its own.

        ``properties`` replace the properties of an earlier call and override the catalog's. The limits and the maps,
        ``location.*``, stay the catalog's. Connections are shared where the properties are the same.
        """
        wanted = without_locations(properties)
        if wanted == self._of_the_table and set(access) == set(self.access):
            return self if base in (None, self.base) else self.relative_to(base)
        whole = {**self._origin.properties, **wanted}
        other = FileIO(self.plugins, whole, base if base is not None else self.base, access, self.catalog)
        other._origin, other._of_the_table, other.listeners = self._origin, wanted, self.listeners
        other._judge, other._deletable, other.key_length = self._judge, self._deletable, self.key_length
        return other

    def opened_by(self, access: Sequence[FileAccess]) -> FileIO:
        """The same file IO with the storage access that a scan plan states for its files."""
        return self.for_table(self.base, self._of_the_table, access)

    def resolve(self, location: str) -> str:
        """The location to open: mapped, completed, validated, and allowed by the allow-lists.

        Raises ``LocationRefused``.
        """
        return self._resolved(location)[1]

    def _resolved(self, location: str) -> tuple[str, str]:
        """The scheme of a location to open, and the location; raises as ``resolve`` does."""
        if not location or len(location) > MAX_LOCATION_LENGTH or "\0" in location:
            raise LocationRefused(f"no usable location: {location[:200]!r}", location=location[:200])
        scheme, mapped = self._complete(self._mapped(location))
        if has_password(mapped):  # it would be written into metadata, and shown by every SDK
            raise LocationRefused(
                f"{location} holds a password, and locations are shown and stored: write it without, and give the "
                "credentials by properties of the catalog; location.map.<prefix> reads a table that has such locations",
                location=location,
            )
        if scheme != "file":
            split_location(mapped)
        if self._schemes and scheme not in self._schemes:
            raise LocationRefused(
                f"{shown(location)} is on the scheme '{scheme}', which location.allowed-schemes does not list",
                location=location,
            )
        if self._roots and not is_below(mapped, self._roots):
            said = f"{shown(location)} is below no root of location.allowed-roots"
            raise LocationRefused(said, location=location)
        if self._judge is not None and not self._judge(mapped):
            raise LocationRefused("the metadata names a file that is not of this table's own folders")  # not named
        return scheme, mapped

    def unmapped(self, location: str, place: str) -> str:
        """The location below ``place`` that opens the same file as ``location``, or ``location`` if there is none.

        For the metadata log of a table at ``place``, which records the replaced metadata file.
        """
        opened, root = self._mapped(location), self._mapped(place)
        return place + opened[len(root) :] if opened.startswith(f"{root}/") else location

    def file_system(self, location: str) -> FileSystem:
        """The file system that serves a location."""
        return self._found(location)[0]

    def _found(self, location: str) -> tuple[FileSystem, str]:
        """The file system that serves a location, and the location to open there."""
        scheme, resolved = self._resolved(location)
        kind = self.plugins.file_system(scheme)
        access = next((each for each in self.access if resolved.startswith(each.prefix)), None) if self.access else None
        system = self._systems.get((kind, access))
        if system is None:
            own = {} if access is None else access.properties()
            system = kind({**self.properties, **without_locations(own)})
            if access is not None:
                system.access = access
            system = self._systems.setdefault((kind, access), system)
        return system, resolved

    def storage(self, location: str | None = None) -> FileSystem:
        """The file system that serves a location, with the maps and allow-lists of this file IO before it.

        For code that writes at locations as a table's metadata states them, such as a metastore's strategy. Without a
        location it serves any location and declares no abilities; only a request then refuses a forbidden location.
        """
        if location is not None:
            self.resolve(location)  # a forbidden location is refused here, and not by the first request
        return _Storage(self, location)

    def file_format(self, name: str) -> FileFormat:
        """The file format of that name in a manifest."""
        return self.plugins.file_format(name)

    def manifest_format(self) -> ManifestFormat:
        """The file format of manifests and manifest lists."""
        found = self.file_format("avro")
        if not isinstance(found, ManifestFormat):
            raise BrokenPlugin(
                f"{type(found).__module__}.{type(found).__qualname__}, which is provided as file format 'avro', cannot "
                "hold manifests: it is no subclass of icefield.abc.ManifestFormat"
            )
        return found

    def commit_strategy(self, name: str, table: tuple[str, ...], location: str) -> CommitStrategy:
        """The named strategy for a table. It uses ``location`` as given, and each request maps its location once.

        Raises ``UnsafeCommit``, which names safe strategies, if the storage lacks an ability that the strategy needs.
        """
        kind = self.plugins.commit_strategy(name)
        system, resolved = self._found(location)
        if kind.needs and not system.abilities.intersection(kind.needs):
            raise self._unsafe(name, kind, system, scheme_of(resolved))
        return kind(table, location, _Storage(self, location), self.properties)

    def open_input(self, location: str, key_metadata: bytes | None = None, *, native: bool = False) -> InputFile:
        """Open a file for reading: plain bytes, of an encrypted file too, unless its format decrypts it (``native``).

        Raises ``DecryptionFailed`` for a file that the key in its ``key_metadata`` does not open.
        """
        system, resolved = self._found(location)
        source = as_input_file(system.open_input(resolved), is_remote=FileSystemAbility.REMOTE in system.abilities)
        if key_metadata is None or not is_encrypted(key_metadata):
            return source
        return opened(lambda: self.encryption, source, location, key_metadata, native)

    def read(self, location: str, *, limit: int | None = None, key_metadata: bytes | None = None) -> bytes:
        """Read a whole file. Raises ``InvalidFile`` when it has more than ``limit`` bytes, and as ``open_input``."""
        with self.open_input(location, key_metadata) as source:
            return read_bounded(source, location, limit)

    def read_metadata(self, location: str) -> bytes:
        """Read a metadata file. Raises ``InvalidMetadata``, without reading it, for a file above the size limit."""
        try:
            return self.read(location, limit=MAX_METADATA_BYTES)
        except InvalidFile as error:
            raise InvalidMetadata(f"{error.message}; expire snapshots, if it is one", location=location) from error

    def put(self, location: str, data: bytes, mode: PutMode) -> str | None:
        """Write a whole small file in one step; its entity tag, if the response of the store has one."""
        system, resolved = self._found(location)
        return system.put(resolved, data, mode)

    def open_output(self, location: str) -> OutputStream:
        """Open a stream to a new plain file. Raises ``UnsupportedFeature`` for an encrypted table: see ``create``."""
        if self.key_length is not None:
            raise UnsupportedFeature(
                f"{location} would be plain, and its table is encrypted: this operation has no support for encrypted "
                "tables",
                location=location,
            )
        return self._open_output(location)

    def create(self, location: str, *, native: bool = False) -> NewFile:
        """Open a new file of the table, encrypted if the table is; by its format, if that can do so (``native``)."""
        sink = self._open_output(location)
        if self.key_length is None:
            return NewFile(sink)
        try:
            return created(self.encryption, sink, self.key_length, native)
        except BaseException:
            sink.abort()
            raise

    def _open_output(self, location: str) -> OutputStream:
        system, resolved = self._found(location)
        return system.open_output(resolved)

    def stat(self, location: str) -> FileInfo:
        """Size and time of a file."""
        system, resolved = self._found(location)
        return _renamed(system.stat(resolved), location)

    def exists(self, location: str) -> bool:
        """Whether a file is there."""
        with suppress(FileMissing):
            self.stat(location)
            return True
        return False

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        """Every file below a folder, by the location that opens it, without the files that a map hides."""
        system, resolved = self._found(prefix)
        found = system.list_files(resolved, shallow=shallow)
        if not self._maps and resolved == prefix:
            return found
        return self._as_asked(found, prefix.rstrip("/"), len(resolved.rstrip("/")))

    def delete_many(self, locations: Iterable[str]) -> None:
        """Delete files on any file systems; a missing file is no error."""
        groups: dict[int, tuple[FileSystem, list[str]]] = {}
        for location in locations:
            system, resolved = self._found(location)
            groups.setdefault(id(system), (system, []))[1].append(resolved)
        for system, found in groups.values():
            system.delete_many(found)

    def _as_asked(self, found: Iterable[FileInfo], prefix: str, length: int) -> Iterator[FileInfo]:
        for info in found:
            location = prefix + info.location[length:]
            # A map of a folder below ``prefix`` may lead this location to a file other than the listed file.
            with suppress(LocationRefused):
                if self.resolve(location) == info.location:
                    yield _renamed(info, location)

    def _mapped(self, location: str) -> str:
        for prefix, target in self._maps:
            if location == prefix or location.startswith(prefix if prefix.endswith("/") else prefix + "/"):
                return joined(target, location[len(prefix) :], prefix, location)
            if location + "/" == prefix:  # the folder itself, for a map with a slash at the end
                return target.rstrip("/")
        return location

    def _complete(self, location: str) -> tuple[str, str]:
        """The scheme of a location, and the location with that scheme."""
        if scheme := scheme_of(location, default=""):
            return scheme, location
        if location.startswith("/"):
            whole = location if self.base is None else completed(location, self.base)
            return scheme_of(whole), whole
        raise LocationRefused(
            f"{shown(location)!r} is a relative location: write an absolute one, such as file:///folder/file. (Before "
            "format version 4 metadata has no others; where it does, the property location.map.<prefix> states where "
            "they are)",
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
    """One file system over all file systems of a file IO: each location is resolved before it is used."""

    def __init__(self, io: FileIO, location: str | None) -> None:
        super().__init__(io.properties)
        self._io, self._location = io, location

    @property
    def abilities(self) -> frozenset[FileSystemAbility]:
        return frozenset() if self._location is None else self._io.file_system(self._location).abilities

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._io, self._location)

    def open_input(self, location: str) -> InputFile:
        return self._io.open_input(location)

    def put(self, location: str, data: bytes, mode: PutMode) -> str | None:
        return self._io.put(location, data, mode)

    def open_output(self, location: str) -> OutputStream:
        return self._io._open_output(location)

    def stat(self, location: str) -> FileInfo:
        return self._io.stat(location)

    def stat_many(self, locations: Sequence[str]) -> list[FileInfo | None]:
        found = [self._io._found(location) for location in locations]
        if len({id(system) for system, _ in found}) != 1:
            return super().stat_many(locations)
        infos = found[0][0].stat_many([resolved for _, resolved in found])
        return [info and _renamed(info, location) for info, location in zip(infos, locations, strict=True)]

    def credentials(self, location: str) -> str | None:
        system, resolved = self._io._found(location)
        return system.credentials(resolved)

    def remove_empty_folder(self, location: str) -> None:
        with suppress(IcefieldError):
            system, resolved = self._io._found(location)
            system.remove_empty_folder(resolved)

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        return self._io.list_files(prefix, shallow=shallow)

    def delete_many(self, locations: Iterable[str]) -> None:
        self._io.delete_many(locations)

    def rename(self, source: str, target: str) -> None:
        system, resolved = self._io._found(target)
        system.rename(self._io.resolve(source), resolved)


def _encrypting(given: tuple[Any, ...], length: int) -> FileIO:
    made = FileIO(*given)
    made.key_length = length
    return made


def _renamed(info: FileInfo, location: str) -> FileInfo:
    """The information about a file, under the requested location."""
    return info if info.location == location else replace(info, location=location)
