"""Checks of hostile locations: no credential goes to an unnamed host, and names that no store holds are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from icefield.abc import FileSystem, FileSystemAbility, PutMode
from icefield.errors import IcefieldError, InvalidArgument, LocationRefused

from icefield_testing.file_systems.base import FileSystemChecks
from icefield_testing.planted_secrets import PlantedSecret
from icefield_testing.recording import RecordingServer

_SETTING: Final = "location.credentials-for"
_PROPERTY: Final = re.compile(r"\bwarehouse\b|\b[a-z][\w-]*\.[a-z][\w.-]+")
_IN_NO_NAME: Final = ("a\0b", "\0", "a\ud800", "\udcff/b")


class PlaceChecks(FileSystemChecks):
    """Checks of hostile locations. They need ``credentials`` and ``foreign_location``."""

    def test_a_foreign_host_gets_no_credential_and_is_not_asked(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a location leads the credentials to a host that the configuration does not name, and whoever
        writes a table chooses its locations: look the host up in ``authorities_named`` and in your own properties, and
        raise ``credentials_refused`` before anything is sent."""
        with RecordingServer() as stranger:
            more = self.foreign_properties(stranger.host, stranger.port)
            named = self.foreign_location(stranger.host, stranger.port)
            scheme = root.partition(":")[0]
            location = named or f"{scheme}://{stranger.host}:{stranger.port}/foreign/file"
            for given in self.credentials or ({"test.token": "{secret}"},):
                secret = PlantedSecret()
                system = self.alone(file_system, **{_SETTING: root, **secret.planted(given), **more})
                calls = _reads(system, location)
                if named is not None:
                    calls |= _writes(system, location, root)
                for name, call in calls.items():
                    what = f"{name}, with {', '.join(given)}"
                    self._check_answer(what, call, location, secret, refused=named is not None)
                    self._check_stranger(what, stranger, secret)
                for quiet in (system.credentials, system.remove_empty_folder):
                    with suppress(IcefieldError):
                        secret.check(f"the result of {quiet.__name__}", quiet(location))
                    self._check_stranger(quiet.__name__, stranger, secret)

    def test_a_name_with_a_zero_byte_or_half_a_character_is_refused(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a zero byte or a lone surrogate in a location, which no store holds in a name, is cut off,
        replaced, or ends in an error of the system: refuse both in every method with ``InvalidArgument`` or
        ``LocationRefused``; ``split_location`` does."""
        for name in _IN_NO_NAME:
            location = f"{root}/{name}"
            for what, call in {**_reads(file_system, location), **_writes(file_system, location, root)}.items():
                error = _raised(call)
                assert error is not None, f"{what} takes {location!a}"
                refused = isinstance(error, InvalidArgument | LocationRefused)
                assert refused, f"{what} of {location!a} raises {error!a}, which is no refusal"
                carried = getattr(error, "data", {}).get("location")
                assert carried == location, f"{what} does not carry the location {location!a}"
        assert self.raw_get(f"{root}/a") is None, "a name was cut off at a zero byte"

    # -- helpers

    def _check_answer(
        self, what: str, call: Callable[[], Any], location: str, secret: PlantedSecret, *, refused: bool
    ) -> None:
        error = _raised(call)
        if error is not None:
            assert isinstance(error, IcefieldError), f"{what}: {type(error).__name__} is none of Icefield's errors"
            secret.check_error(what, error)
        if refused:
            assert error is not None, f"{what} takes a location of a foreign host"
            said = isinstance(error, LocationRefused) and error.data.get("location") == location
            assert said, f"{what}: {error!r} does not say that the host of {location} is not named"
            advice = str(error).replace(location, "")
            assert _PROPERTY.search(advice), f"{what}: {error} does not say what to configure"

    def _check_stranger(self, what: str, stranger: RecordingServer, secret: PlantedSecret) -> None:
        stranger.settle()
        arrived = stranger.received()
        stranger.forget()
        assert not [each for each in arrived if secret.value.encode() in each], f"{what}: the credential arrived there"
        assert not arrived, f"{what}: a host that nobody named was asked"


def _raised(call: Callable[[], Any]) -> Exception | None:
    try:
        call()
    except Exception as error:
        return error
    return None


def _reads(system: FileSystem, location: str) -> dict[str, Callable[[], Any]]:
    calls: dict[str, Callable[[], Any]] = {
        "open_input": lambda: system.open_input(location).read(),
        "stat": lambda: system.stat(location),
        "stat_many": lambda: system.stat_many([location, location]),
    }
    if FileSystemAbility.LIST in system.abilities:
        calls["list_files"] = lambda: [*system.list_files(location)]
        calls["list_files(shallow)"] = lambda: [*system.list_files(location, shallow=True)]
    return calls


def _writes(system: FileSystem, location: str, root: str) -> dict[str, Callable[[], Any]]:
    def write() -> None:
        with system.open_output(location) as sink:
            sink.write(b"x")

    calls: dict[str, Callable[[], Any]] = {
        "put(OVERWRITE)": lambda: system.put(location, b"x", PutMode.OVERWRITE),
        "open_output": write,
        "delete_many": lambda: system.delete_many([location]),
    }
    if FileSystemAbility.ATOMIC_CREATE in system.abilities:
        calls["put(CREATE)"] = lambda: system.put(location, b"x", PutMode.CREATE)
    if FileSystemAbility.ATOMIC_RENAME in system.abilities:
        calls["rename from there"] = lambda: system.rename(location, f"{root}/renamed")
        calls["rename to there"] = lambda: system.rename(f"{root}/to-rename", location)
    return calls
