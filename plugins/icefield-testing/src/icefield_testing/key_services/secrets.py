"""Checks that no credential and no key is in a ``repr``, an error, a log or a pickle."""

from __future__ import annotations

import base64
import copy
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from ssl import SSLContext
from uuid import uuid4

import pytest
from icefield.abc import KeyService

from icefield_testing.fault_model import KINDS
from icefield_testing.key_services.base import KeyServiceChecks, calls_of, error_of, new_key
from icefield_testing.key_services.echoing import EchoingServer
from icefield_testing.planted_secrets import PlantedSecret
from icefield_testing.service_faults import LossyProxy


class KeySecretChecks(KeyServiceChecks):
    """Checks with planted credentials, and with keys that are searched for in several spellings."""

    def test_no_key_and_no_credential_is_shown_said_or_logged(
        self, key_service: KeyService, key_id: str, service_port: int | None, server_tls: SSLContext | None
    ) -> None:
        """If this fails, a ``repr``, an error, its cause or a log holds a key or a credential, maybe since the service
        repeats the request in its error: name the id and the host, redact the rest, and raise ``from None``."""
        key = uuid4().hex[:16].encode()
        secrets = _spellings(key)
        with _watching(secrets):
            wrapped = key_service.wrap(key, key_id)
            _show(secrets, key_service, key, wrapped, [key_id, *self.unknown_key_ids])
            for given in ({"kit.password": "{secret}"}, *self.credentials):
                planted = PlantedSecret(f"the properties {', '.join(sorted(given))}")
                with planted.watching_logs("a key service"):
                    try:
                        made = self.with_properties(key_service, planted.planted(given))
                    except Exception as error:
                        planted.check_error("the constructor", error)
                        continue
                    every = [planted, *secrets]
                    _show(every, made, key, wrapped, [key_id, *self.unknown_key_ids])
                    if service_port is None:
                        continue
                    with EchoingServer(server_tls) as echoing, LossyProxy(service_port) as proxy:
                        proxy.arm(KINDS["stays down"](0))
                        for port in (echoing.port, proxy.port):
                            through = self.key_service_at(port, made, self.time_out_properties)
                            _show(every, through, key, wrapped, [key_id])

    def test_a_key_service_stays_in_its_process(self, key_service: KeyService) -> None:
        """If this fails, a class overrides ``__reduce__`` or ``__getstate__``: credentials would travel to
        executors."""
        for carry in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError):
                carry(key_service)

    def test_a_key_is_not_answered_from_the_memory_of_another_service(
        self, key_service: KeyService, key_id: str, service_port: int | None, server_tls: SSLContext | None
    ) -> None:
        """If this fails, a cache in a class or a module serves all catalogs: it gives keys to callers without access,
        and hides that a master key was disabled. Keep no keys; the kernel does, for ``key_life_seconds``."""
        if service_port is None:
            pytest.skip("the key service is no server (`service_port`)")
        wrapped = key_service.wrap(new_key(), key_id)
        key_service.unwrap(wrapped, key_id)
        with EchoingServer(server_tls) as refusing:
            other = self.key_service_at(refusing.port, key_service, {})
            for name in ("unwrap", "wrap"):
                error = error_of(calls_of(other, key_id, wrapped)[name])
                assert error is not None, f"{name} answers although its service refuses: another's memory answers"


def _spellings(key: bytes) -> list[PlantedSecret]:
    """The key, which is ASCII, as itself, in hexadecimal digits and in base64."""
    forms = {"as bytes": key.decode(), "in hex": key.hex(), "in base64": base64.b64encode(key).decode().rstrip("=")}
    return [PlantedSecret(f"the key {how}", value) for how, value in forms.items()]


@contextmanager
def _watching(secrets: Sequence[PlantedSecret]) -> Iterator[None]:
    with ExitStack() as stack:
        for secret in secrets:
            stack.enter_context(secret.watching_logs("a key service"))
        yield


def _show(
    secrets: Sequence[PlantedSecret], key_service: KeyService, key: bytes, wrapped: bytes, key_ids: Sequence[str]
) -> None:
    """Search the reprs and errors of a key service for secrets."""
    for key_id in key_ids:
        calls: dict[str, Callable[[], object]] = {
            **calls_of(key_service, key_id, wrapped),
            "wrap": lambda key_id=key_id: key_service.wrap(key, key_id),  # type: ignore[misc]
            "wrap of a key too short": lambda key_id=key_id: key_service.wrap(key + key + key, key_id),  # type: ignore[misc]
            "unwrap of damaged bytes": lambda key_id=key_id: key_service.unwrap(wrapped[:-1], key_id),  # type: ignore[misc]
        }
        for name, call in calls.items():
            try:
                answer = call()
            except Exception as error:
                for secret in secrets:
                    secret.check_error(name, error)
            else:
                for secret in secrets:
                    secret.check_texts(f"the repr of the answer of {name}", [] if name == "unwrap" else [repr(answer)])
    for secret in secrets:
        secret.check_texts("the repr of the key service", [f"{key_service!r} {key_service}"])
