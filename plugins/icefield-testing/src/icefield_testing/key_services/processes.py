"""Checks of a key service that threads share, or that a process has before it forks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from icefield.abc import KeyService

from icefield_testing.key_services.base import KeyServiceChecks, new_key
from icefield_testing.processes import ended

_THREADS: Final = 8
_EACH: Final = 6
_MOST_SECONDS: Final = 60.0


class KeySharingChecks(KeyServiceChecks):
    """Checks of threads and forked processes."""

    def test_threads_share_a_key_service(self, key_service: KeyService, key_id: str, other_key_id: str) -> None:
        """If this fails, a call keeps its key or its answer in an attribute, where another thread changes it."""

        def work(number: int) -> None:
            mine = (key_id, other_key_id)[number % 2]
            for _ in range(_EACH):
                key = new_key()
                found = key_service.unwrap(key_service.wrap(key, mine), mine)
                assert found == key, "a thread gets the key of another"

        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(work, range(_THREADS)))

    def test_a_forked_process_uses_the_key_service(self, key_service: KeyService, key_id: str) -> None:
        """If this fails, a forked process uses the connection, the lock or the threads of its parent: make a client for
        each process, by ``os.getpid`` or ``reset_after_fork``. A library for gRPC does not survive a fork."""
        key = new_key()
        wrapped = key_service.wrap(key, key_id)

        def use() -> None:
            assert key_service.unwrap(wrapped, key_id) == key
            assert key_service.unwrap(key_service.wrap(key, key_id), key_id) == key

        status = ended(use, min(_MOST_SECONDS, self.check_seconds / 2))
        assert status == 0, f"a forked process that uses the key service ended with {status}"
        assert key_service.unwrap(wrapped, key_id) == key, "after a fork, the parent gets another key"
