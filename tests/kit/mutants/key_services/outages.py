"""Key services that take an outage for something else."""

from __future__ import annotations

import http.client
from typing import Any

from icefield.abc import MasterKey
from icefield.errors import IcefieldError, KeyUnavailable, StorageError

from mutants import Mutant, of
from mutants.key_services.right import RightKeyService


class MissesKeysInAnOutage(RightKeyService):
    """Says that the master key is gone."""

    def outage(self, error: Exception) -> IcefieldError:
        return KeyUnavailable("there is no such master key")


class GivesUpForGood(RightKeyService):
    """Says that a repetition is of no use."""

    def outage(self, error: Exception) -> IcefieldError:
        return StorageError("the service does not answer")


class LetsClientErrorsThrough(RightKeyService):
    """Raises the errors of its client."""

    def ask(self, method: str, action: str, key_id: str, body: dict[str, Any] | None) -> dict[str, Any]:
        status, said = self.sent(method, self.path(action, key_id), body)
        if status == 200:
            return dict(said["data"])
        raise self.refusal(status, key_id, " ".join(said.get("errors", [])))


class FailsOpen(RightKeyService):
    """Hands out the key as it is while the service is down."""

    def wrap(self, key: bytes, key_id: str) -> bytes:
        try:
            return super().wrap(key, key_id)
        except StorageError:
            return key


class GuessesInAnOutage(RightKeyService):
    """Names a version although the service does not answer."""

    def master_key(self, key_id: str) -> MasterKey:
        try:
            return super().master_key(key_id)
        except StorageError:
            return MasterKey(key_id)


class WaitsForEver(RightKeyService):
    """Has no time-out."""

    def seconds(self) -> float | None:
        return None


class TakesSilenceForAbsence(RightKeyService):
    """Says after a time-out that there is no key."""

    def outage(self, error: Exception) -> IcefieldError:
        if isinstance(error, TimeoutError):
            return KeyUnavailable("there is no such master key")
        assert isinstance(error, (OSError, http.client.HTTPException))
        return super().outage(error)


_LOST = "test_a_lost_request_is_an_error_or_the_right_answer"
_SILENT = "test_a_service_that_never_answers_is_an_error_in_time"

MUTANTS: list[Mutant] = of(
    {
        MissesKeysInAnOutage: (_LOST, "raises KeyUnavailable in an outage"),
        GivesUpForGood: (_LOST, "says that a repetition is of no use"),
        LetsClientErrorsThrough: (_LOST, "raises RemoteDisconnected in an outage"),
        FailsOpen: (_LOST, "wrap gives a wrong answer in an outage"),
        GuessesInAnOutage: (_LOST, "master_key gives a wrong answer in an outage"),
        WaitsForEver: (_SILENT, "still waits after"),
        TakesSilenceForAbsence: (_SILENT, "does not say that the service is silent"),
    }
)
