"""Strategies over a service that falls silent, one defect each."""

from __future__ import annotations

from typing import Any

from pointer_service import ServiceStrategy

from mutants import Mutant, of


class WaitsForEver(ServiceStrategy):
    """Sets no time-out."""

    wait_seconds = None  # type: ignore[assignment]


class TakesSilenceForNoTable(ServiceStrategy):
    """Finds no table when no answer comes in time."""

    def read_pointer(self) -> str | None:
        try:
            found: str | None = self.ask("get")
        except TimeoutError:
            return None
        return found


class LetsTimeOutsThrough(ServiceStrategy):
    """Drops a table, and raises the time-out of the socket."""

    def drop(self) -> None:
        try:
            super().drop()
        except Exception as error:
            if isinstance(error.__cause__, TimeoutError):
                raise error.__cause__ from None
            raise


class DropsInSilence(ServiceStrategy):
    """Takes a drop that was sent for one that was done."""

    def ask(self, do: str, **asked: Any) -> Any:
        try:
            return super().ask(do, **asked)
        except TimeoutError:
            if do != "drop":
                raise
            return "dropped"


_SILENCE = "test_a_service_that_never_answers_is_an_error_in_time"

MUTANTS: list[Mutant] = of(
    {
        WaitsForEver: (_SILENCE, "load, commit, drop still waits after 5 s"),
        TakesSilenceForNoTable: (_SILENCE, "load takes the silence of the service for an answer"),
        LetsTimeOutsThrough: (_SILENCE, "drop does not say that the service is silent: TimeoutError"),
        DropsInSilence: (_SILENCE, "drop takes the silence of the service for an answer"),
    }
)
