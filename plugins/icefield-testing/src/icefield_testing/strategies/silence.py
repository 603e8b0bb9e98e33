"""Checks of a service that takes a strategy's request and never answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from icefield.abc import FileSystem, Pointer
from icefield.errors import IcefieldError, NoSuchTable

from icefield_testing.service_faults import LossyProxy, RequestFaults
from icefield_testing.silence import errors_in_silence
from icefield_testing.strategies.base import StrategyChecks


class SilentServiceChecks(StrategyChecks):
    """Checks of a service that never answers. They need ``service`` and ``time_out_properties``."""

    def test_a_service_that_never_answers_is_an_error_in_time(
        self, file_system: FileSystem, location: str, service: RequestFaults | None
    ) -> None:
        """If this fails, the service takes a request and never answers, and a load, a commit or a drop waits for ever,
        takes the silence for an answer, or lets an error of the client through: set a time-out on each connection and
        each read, and raise ``CommitStateUnknown`` if the service may have got hold of the commit."""
        if not isinstance(service, LossyProxy):
            pytest.skip("the requests go through no network, so no time-out can strike (`service`)")
        if not self.time_out_properties:
            pytest.skip("no short time-out is stated (`time_out_properties`)")
        pointers = {name: self.create(file_system, f"{location}/{name}") for name in ("load", "commit", "drop")}
        hasty = {name: self.strategy_in_haste(service, file_system, f"{location}/{name}") for name in pointers}
        proposal = self.changed(file_system, pointers["commit"], "mine", "1")
        for name, strategy in hasty.items():
            assert self.pointer(strategy) == pointers[name]  # it has connected
        loaded: list[Pointer | None] = []
        calls: dict[str, Callable[[], object]] = {
            "load": lambda: loaded.append(self.pointer(hasty["load"])),
            "commit": lambda: hasty["commit"].commit(pointers["commit"], proposal),
            "drop": hasty["drop"].drop,
        }
        for name, error in errors_in_silence(service, calls, self.silence_seconds).items():
            if name == "load" and loaded == [pointers["load"]]:
                continue  # this strategy loads without its service
            assert error is not None, f"{name} takes the silence of the service for an answer"
            said = isinstance(error, IcefieldError) and not isinstance(error, NoSuchTable)
            assert said, f"{name} does not say that the service is silent: {error!r}"
