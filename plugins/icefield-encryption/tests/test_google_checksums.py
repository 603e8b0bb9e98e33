"""Checksums of Google Cloud KMS: a key that changes on its way is never used."""

from __future__ import annotations

import google_crc32c
import pytest
import servers.google_kms
from icefield.errors import StorageError
from icefield_encryption.google_kms import GoogleKms
from servers.google_kms import RING, GoogleKmsDouble

KEY = b"0123456789abcdef"
ORDERS = f"{RING}/orders"


def service(server: GoogleKmsDouble, **properties: str) -> GoogleKms:
    return GoogleKms(
        {
            "encryption.google.endpoint": f"http://127.0.0.1:{server.port}",
            "gcs.oauth2.token": servers.google_kms.TOKEN,
            **properties,
        }
    )


def test_a_request_is_repeated_after_an_answer_that_changed_on_its_way(google_kms: GoogleKmsDouble) -> None:
    kms = service(google_kms)
    google_kms.damaged_answers = 2
    wrapped = kms.wrap(KEY, ORDERS)
    assert google_kms.damaged_answers == 0
    google_kms.damaged_answers = 2
    assert kms.unwrap(wrapped, ORDERS) == KEY


def test_answers_that_always_change_on_their_way_are_refused(google_kms: GoogleKmsDouble) -> None:
    kms = service(google_kms, **{"encryption.kms.max-retries": "1"})
    wrapped = kms.wrap(KEY, ORDERS)
    google_kms.damaged_answers = 100
    for ask in (lambda: kms.wrap(KEY, ORDERS), lambda: kms.unwrap(wrapped, ORDERS)):
        with pytest.raises(StorageError, match="checksum of an answer") as caught:
            ask()
        assert caught.value.retryable


def test_a_service_that_does_not_verify_requests_is_refused(google_kms: GoogleKmsDouble) -> None:
    google_kms.checks_requests = False
    with pytest.raises(StorageError, match="did not verify"):
        service(google_kms, **{"encryption.kms.max-retries": "0"}).wrap(KEY, ORDERS)


class WrongAtFirst:
    """Checksums of which the first is wrong, as if the request changed on its way."""

    def __init__(self) -> None:
        self._wrong = 1

    def value(self, data: bytes) -> int:
        wrong, self._wrong = self._wrong, 0
        return google_crc32c.value(data) ^ wrong


def test_a_request_that_changes_on_its_way_is_refused_by_the_service_and_repeated_anew(
    google_kms: GoogleKmsDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    kms = service(google_kms, **{"encryption.kms.max-retries": "0"})
    monkeypatch.setattr("icefield_encryption.google_kms.google_crc32c", WrongAtFirst())
    with pytest.raises(StorageError, match="checksum of a request") as caught:
        kms.wrap(KEY, ORDERS)
    assert caught.value.retryable
    assert kms.unwrap(kms.wrap(KEY, ORDERS), ORDERS) == KEY
