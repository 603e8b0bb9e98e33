"""Checks of a store that takes a request and never answers: each call ends in time, with an error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import pytest
from icefield.abc import FileSystem, FileSystemAbility
from icefield.errors import FileExists, FileMissing, InvalidFile, StorageError, UnsupportedFeature

from icefield_testing.file_systems.failures import FailureChecks
from icefield_testing.same_bytes import check_bytes
from icefield_testing.service_faults import LossyProxy
from icefield_testing.silence import errors_in_silence

_DATA: Final = bytes(range(251)) * 12_000
_NO_SILENCE: Final = (FileMissing, FileExists, InvalidFile, UnsupportedFeature)


class SilentStoreChecks(FailureChecks):
    """Checks of a store that never answers. They need ``service`` and ``time_out_properties``."""

    def test_a_store_that_never_answers_is_an_error_in_time(
        self, file_system: FileSystem, root: str, service: LossyProxy | None
    ) -> None:
        """If this fails, the store takes a request and never answers, and a call waits for ever, takes the silence for
        an answer, or lets an error of the SDK through: set a time-out on each connection and each read."""
        if service is None:
            pytest.skip("no request of the file system can be stopped on its way (`service`)")
        if not self.time_out_properties:
            pytest.skip("no short time-out is stated (`time_out_properties`)")
        self.raw_put(f"{root}/whole", _DATA)
        self.raw_put(f"{root}/old", b"x")
        hasty = self._reached(self.file_system_through(service, file_system), root, **self.time_out_properties)
        source, sink = hasty.open_input(f"{root}/whole"), hasty.open_output(f"{root}/lost")
        sink.write(b"x")
        read: list[bytes] = []
        calls: dict[str, Callable[[], Any]] = {
            **self._calls(hasty, root),
            "stat": lambda: hasty.stat(f"{root}/whole"),
            "stat_many": lambda: hasty.stat_many([f"{root}/whole", f"{root}/old"]),
            "delete_many": lambda: hasty.delete_many([f"{root}/old"]),
            "read": lambda: read.append(source.read()),
            "close": sink.close,
        }
        if FileSystemAbility.ATOMIC_RENAME in hasty.abilities:
            self.raw_put(f"{root}/before", b"x")
            calls["rename"] = lambda: hasty.rename(f"{root}/before", f"{root}/after")
        errors = errors_in_silence(service, calls, self.silence_seconds)
        for end in (source.close, sink.abort):
            with suppress(Exception):
                end()
        for name, error in errors.items():
            if name == "read" and error is None:  # it was all here
                check_bytes(read[0], _DATA, "the file that was read from a silent store")
                continue
            assert error is not None, f"{name} takes the silence of the store for an answer"
            said = isinstance(error, StorageError) and not isinstance(error, _NO_SILENCE)
            assert said, f"{name} does not say that the store is silent: {error!r}"
