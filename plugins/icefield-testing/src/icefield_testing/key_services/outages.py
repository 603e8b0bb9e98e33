"""Checks of a service that loses requests or replies, stays down, or never answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from icefield.abc import GeneratedKey, KeyService, MasterKey
from icefield.errors import DecryptionFailed, StorageError

from icefield_testing.fault_model import KINDS, walk
from icefield_testing.key_services.base import KeyServiceChecks, calls_of, new_key
from icefield_testing.service_faults import LossyProxy
from icefield_testing.silence import errors_in_silence


class KeyOutageChecks(KeyServiceChecks):
    """Checks with a ``LossyProxy`` before the service. They need ``service_port``."""

    @pytest.fixture
    def proxy(self, service_port: int | None) -> Iterator[LossyProxy]:
        """A relay before the service."""
        if service_port is None:
            pytest.skip("the key service is no server, so no request can be lost (`service_port`)")
        with LossyProxy(service_port) as proxy:
            yield proxy

    @pytest.mark.parametrize("kind", sorted(KINDS))
    def test_a_lost_request_is_an_error_or_the_right_answer(
        self, key_service: KeyService, key_id: str, proxy: LossyProxy, kind: str
    ) -> None:
        """If this fails, an outage lets an error of the client through, says that a key is gone or damaged, or gives an
        answer that no service gave: raise ``StorageError`` with ``retryable=True``. A wrap may be repeated."""
        key = new_key()
        wrapped = key_service.wrap(key, key_id)
        through = self.key_service_at(proxy.port, key_service, self.time_out_properties)
        for name, call in calls_of(through, key_id, wrapped).items():
            for step in walk(proxy, KINDS[kind], kind):
                try:
                    with step:
                        answer = call()
                except StorageError as error:
                    if error.retryable:
                        continue
                    raise AssertionError(f"{name} says that a repetition is of no use: {step}: {error}") from error
                except Exception as error:
                    raise AssertionError(f"{name} raises {type(error).__name__} in an outage: {step}") from error
                right = True
                if name == "unwrap":
                    right = answer == key
                elif isinstance(answer, bytes):
                    right = _unwrapped(key_service, answer, key_id) is not None
                elif isinstance(answer, GeneratedKey):
                    right = _unwrapped(key_service, answer.wrapped, key_id) == answer.key
                elif isinstance(answer, MasterKey):
                    right = answer == key_service.master_key(key_id)
                assert right, f"{name} gives a wrong answer in an outage: {step}"

    def test_a_service_that_never_answers_is_an_error_in_time(
        self, key_service: KeyService, key_id: str, proxy: LossyProxy
    ) -> None:
        """If this fails, a call waits for ever, or takes silence for an answer: set a time-out on each connection and
        each read, and raise ``StorageError`` with ``retryable=True``."""
        if not self.time_out_properties:
            pytest.skip("no short time-out is stated (`time_out_properties`)")
        wrapped = key_service.wrap(new_key(), key_id)
        hasty = self.key_service_at(proxy.port, key_service, self.time_out_properties)
        calls = calls_of(hasty, key_id, wrapped)
        if hasty.generate(key_id, 32) is None:
            del calls["generate"]
        if _asks_nothing(proxy, hasty, key_id):
            del calls["master_key"]
        for name, error in errors_in_silence(proxy, calls, self.silence_seconds).items():
            assert error is not None, f"{name} takes the silence of the service for an answer"
            said = isinstance(error, StorageError) and error.retryable
            assert said, f"{name} does not say that the service is silent: {error!r}"


def _unwrapped(key_service: KeyService, wrapped: bytes, key_id: str) -> bytes | None:
    try:
        return key_service.unwrap(wrapped, key_id)
    except DecryptionFailed:
        return None


def _asks_nothing(proxy: LossyProxy, key_service: KeyService, key_id: str) -> bool:
    """Whether ``master_key`` makes no request, as the default does."""
    proxy.arm(lambda number: None)
    key_service.master_key(key_id)
    asked = proxy.count
    proxy.disarm()
    return asked == 0
