"""Checks of the ids of master keys, which come from the properties of tables: anyone may have written them."""

from __future__ import annotations

import posixpath
from collections.abc import Collection
from ssl import SSLContext
from typing import Final
from urllib.parse import unquote, urlsplit

import pytest
from icefield.abc import KeyService
from icefield.errors import AccessDenied, DecryptionFailed, InvalidArgument, KeyUnavailable

from icefield_testing.key_services.base import KeyServiceChecks, calls_of, error_of, new_key
from icefield_testing.key_services.echoing import EchoingServer
from icefield_testing.recording import RecordingServer

_ENDS: Final = ("?", "#", "/", "%00", "\x00", "\n", "\r\nX-Kit: 1", " ", "/..", "%2f..", "?x=1", ";x", "\u00e9")


class KeyIdChecks(KeyServiceChecks):
    """Checks of unknown, denied and hostile ids."""

    def test_an_unknown_master_key_is_unavailable(self, key_service: KeyService, key_id: str) -> None:
        """If this fails, an error of the service for an unknown key has another meaning, or ``wrap`` makes a key with a
        mistyped name: raise ``KeyUnavailable``, with ``key_id``."""
        wrapped = key_service.wrap(new_key(), key_id)
        for unknown in self.unknown_key_ids:
            for name, call in calls_of(key_service, unknown, wrapped).items():
                try:
                    answer = call()
                except KeyUnavailable as error:
                    named = getattr(error, "key_id", None)
                    assert named == unknown, f"the KeyUnavailable of {name} names the key_id {named!r}"
                except Exception as error:
                    raise AssertionError(
                        f"{name} of an unknown master key raises {type(error).__name__}, not KeyUnavailable: {error}"
                    ) from error
                else:
                    assert name == "generate", f"{name} answers for an unknown master key"
                    assert answer is None, "generate makes a key with an unknown master key"

    def test_a_denied_master_key_is_an_error_of_access(
        self, key_service: KeyService, key_id: str, denied_key_ids: Collection[str]
    ) -> None:
        """If this fails, a disabled or forbidden master key works, or its error says that the key is gone or that the
        service is down: raise ``AccessDenied``, so that nobody waits or restores a key in vain."""
        if not denied_key_ids:
            pytest.skip("no master key is denied (`denied_key_ids`)")
        for denied in denied_key_ids:
            denial = error_of(lambda denied=denied: key_service.wrap(new_key(), denied))  # type: ignore[misc]
            assert denial is not None, f"the denied master key '{denied}' wraps"
            assert isinstance(denial, AccessDenied), f"wrap with a denied master key raises {denial!r}"

    def test_an_id_that_only_resembles_one_is_refused(
        self, key_service: KeyService, key_id: str, other_key_id: str
    ) -> None:
        """If this fails, the id is cut, decoded, trimmed or resolved like a path, so that an id from a table reaches
        another key or request: compare the whole id with the form that the service's ids have, and quote it."""
        wrapped = key_service.wrap(new_key(), key_id)
        ids = [
            "",
            *(f"{key_id}{mark}" for mark in _ENDS),
            *(f"{mark}{key_id}" for mark in (" ", "/", "./", "../", "x/../", "%2e/", "\t")),
            f"{other_key_id}/../{key_id}",
            f"{other_key_id}%2f..%2f{key_id}",
        ]
        for given in ids:
            for name, call in calls_of(key_service, given, wrapped).items():
                error = error_of(call)
                if error is None:
                    taken = name != "generate" or call() is not None
                    assert not taken, f"{name} takes the id {given!a} for another"
                    continue
                refused = isinstance(error, AccessDenied | DecryptionFailed | InvalidArgument | KeyUnavailable)
                assert refused, f"{name} with the id {given!a} raises {error!r}"

    def test_no_id_leads_to_another_host_or_path(
        self, key_service: KeyService, key_id: str, service_port: int | None, server_tls: SSLContext | None
    ) -> None:
        """If this fails, an id is a part of an address and is not quoted: a table then chooses the host that gets the
        credentials, or the request that they authorise. Refuse ids with ``/``, ``..``, ``?`` or ``%``."""
        wrapped = key_service.wrap(new_key(), key_id)
        with RecordingServer() as stranger, EchoingServer(server_tls) as own:
            place = f"{stranger.host}:{stranger.port}"
            ids = [f"http://{place}/x", f"//{place}/x", f"@{place}/x", f"https://{place}/{key_id}", f"x@{place}:443/"]
            ids += [f"{'../' * up}sys/{key_id}" for up in range(1, 5)]
            ids += [f"..%2f..%2fsys%2f{key_id}", f"{key_id}/../../sys", f"{key_id}?list=true", f"{key_id}#part"]
            through = key_service
            if service_port is not None:
                through = self.key_service_at(own.port, key_service, {})
                for call in calls_of(through, key_id, wrapped).values():
                    error_of(call)
            known = {_folder(target) for target in own.targets}
            own.targets.clear()
            for given in ids:
                for name, call in calls_of(through, given, wrapped).items():
                    error_of(call)
                    for target in own.targets:
                        leads = _folder(target) not in known or urlsplit(target).query
                        assert not leads, f"{name} with the id {given!r} requests {target}"
                    own.targets.clear()
            stranger.settle()
            assert not stranger.received(), "an id leads to another host"


def _folder(target: str) -> str:
    """The folder of the path of a request as a lenient server would read it."""
    path = urlsplit(target).path
    for _ in range(2):
        path = unquote(path)
    return posixpath.dirname(posixpath.normpath(path))
