"""File systems that open every location, and a correct one that opens configured locations only."""

from __future__ import annotations

import http.client
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from icefield.abc import FileInfo, InputFile, OutputStream, PutMode
from icefield.builtin.local import LocalFileSystem
from icefield.errors import FileMissing, LocationRefused, StorageError
from icefield.toolkit import credentials_refused, split_location

from mutants import Mutant, of


class Bound(LocalFileSystem):
    """Local files, and servers that a location may name, to which a token goes."""

    def reached(self, location: str) -> None:
        """The methods call this for each location that they receive."""
        host = split_location(location).authority
        if host:
            self.elsewhere(location, host)

    def elsewhere(self, location: str, host: str) -> None:
        raise credentials_refused(location, host, "the warehouse")

    def ask(self, host: str, headers: dict[str, str]) -> None:
        name, _, port = host.partition(":")
        connection = http.client.HTTPConnection(name, int(port), timeout=5)
        connection.request("GET", "/foreign", headers=headers)
        connection.getresponse().read()
        connection.close()

    def open_input(self, location: str) -> InputFile:
        self.reached(location)
        return super().open_input(location)

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        self.reached(location)
        super().put(location, data, mode)

    def open_output(self, location: str) -> OutputStream:
        self.reached(location)
        return super().open_output(location)

    def stat(self, location: str) -> FileInfo:
        self.reached(location)
        return super().stat(location)

    def stat_many(self, locations: Sequence[str]) -> list[FileInfo | None]:
        for location in locations:
            self.reached(location)
        return super().stat_many(locations)

    def list_files(self, prefix: str, *, shallow: bool = False) -> Iterator[FileInfo]:
        self.reached(prefix)
        yield from super().list_files(prefix, shallow=shallow)

    def delete_many(self, locations: Iterable[str]) -> None:
        found = [*locations]
        for location in found:
            self.reached(location)
        super().delete_many(found)

    def rename(self, source: str, target: str) -> None:
        for location in (source, target):
            self.reached(location)
        super().rename(source, target)


class SendsItsTokenAnywhere(Bound):
    """Asks the host of the location, with the token."""

    def elsewhere(self, location: str, host: str) -> None:
        self.ask(host, {"Authorization": f"Bearer {self.properties['test.token']}"})
        raise FileMissing(f"no file {location}", location=location)


class SendsItsTokenThenRefuses(Bound):
    """Refuses with the right error, but only after the host has received the token."""

    def elsewhere(self, location: str, host: str) -> None:
        self.ask(host, {"Authorization": f"Bearer {self.properties['test.token']}"})
        super().elsewhere(location, host)


class SendsItsTokenWhereItDeletes(Bound):
    """Forgets one of the methods."""

    def delete_many(self, locations: Iterable[str]) -> None:
        for location in locations:
            if host := split_location(location).authority:
                self.ask(host, {"Authorization": f"Bearer {self.properties['test.token']}"})
                super().elsewhere(location, host)
            LocalFileSystem.delete_many(self, [location])


class AsksAnybodyThenRefuses(Bound):
    """Sends a request without the token to the host of the location, so that a table chooses a host to contact."""

    def elsewhere(self, location: str, host: str) -> None:
        self.ask(host, {})
        super().elsewhere(location, host)


class RefusesWithoutAdvice(Bound):
    """Refuses, and does not name the setting that would allow it."""

    def elsewhere(self, location: str, host: str) -> None:
        raise LocationRefused(f"{location} is refused", location=location)


class TakesAForeignHostForAnOutage(Bound):
    """Says that the store failed."""

    def elsewhere(self, location: str, host: str) -> None:
        raise StorageError(f"{host} did not answer", location=location)


class ShowsTheTokenThatItKeeps(Bound):
    """Refuses, and shows in the error the token that it did not send."""

    def elsewhere(self, location: str, host: str) -> None:
        said = f"{location} gets no {self.properties['test.token']}; list it in location.credentials-for"
        raise LocationRefused(said, location=location)


class CutsAtZeroBytes(LocalFileSystem):
    """Takes a name up to its first zero byte, as a library in C does."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        super().put(location.partition("\0")[0], data, mode)


class LetsTheSystemRefuse(LocalFileSystem):
    """Lets the system's own error through."""

    def stat(self, location: str) -> FileInfo:
        if "\0" in location:
            raise ValueError("embedded null byte")
        return super().stat(location)


class ReplacesHalfCharacters(LocalFileSystem):
    """Writes a question mark for a character that it cannot encode."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        super().put(location.encode(errors="replace").decode(), data, mode)


_FOREIGN: Final = "test_a_foreign_host_gets_no_credential_and_is_not_asked"
_ZERO: Final = "test_a_name_with_a_zero_byte_or_half_a_character_is_refused"

MUTANTS: list[Mutant] = of(
    {
        SendsItsTokenAnywhere: (_FOREIGN, "leads the credentials to a host that the configuration does not name"),
        SendsItsTokenThenRefuses: (_FOREIGN, "the credential arrived there"),
        SendsItsTokenWhereItDeletes: (_FOREIGN, "delete_many, with test.token: the credential arrived there"),
        AsksAnybodyThenRefuses: (_FOREIGN, "a host that nobody named was asked"),
        RefusesWithoutAdvice: (_FOREIGN, "does not say what to configure"),
        TakesAForeignHostForAnOutage: (_FOREIGN, "does not say that the host of"),
        ShowsTheTokenThatItKeeps: (_FOREIGN, "the secret of a property is in LocationRefused of"),
        CutsAtZeroBytes: (_ZERO, "is cut off"),
        LetsTheSystemRefuse: (_ZERO, "which is no refusal"),
        ReplacesHalfCharacters: (_ZERO, "put(OVERWRITE) takes"),
    }
)
